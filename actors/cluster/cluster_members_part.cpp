#include "actors/cluster/cluster_members_part.hpp"

#include "actors/agent_twin/agent_twin_actor.hpp"
#include "actors/pool/pool_actor.hpp"
#include "actors/same_secret.hpp"
#include "model/config/cluster_config.hpp"

#include <caf/all.hpp>

#include <algorithm>

namespace troupe {
namespace {

value waiting_in(const std::map<std::string, pool_description>& pools) {
  value waiting = value::array();
  for (const auto& [name, pool] : pools)
    for (const auto& [id, slots] : pool.waiting)
      waiting.push_back({{"allocation", to_string(id)}, {"slots", slots}, {"pool", name}});
  return waiting;
}

pool_description sum(const std::map<std::string, pool_description>& pools) {
  pool_description all;
  for (const auto& [name, one] : pools) {
    all.total += one.total;
    all.used += one.used;
    all.agents.insert(one.agents.begin(), one.agents.end());
  }
  return all;
}

} // namespace

cluster_members::cluster_members(actor_base<cluster_actor>* self, const cluster_setup& setup,
                                 const cluster& machine)
    : self_(self), setup_(setup), machine_(machine), configuration_(setup.configuration) {
  make_pools();
  for (const auto& [agent, known] : machine_.agents())
    make_twin(agent);
}

// ---- pools

void cluster_members::make_pools() {
  for (const auto& pool : config::pool_names(configuration_))
    if (auto& actor = pools_[pool]; !actor) {
      actor = spawn_pool(self_->system(), pool);
      self_->monitor(actor);
    }
}

/// A pool that the configuration no longer names lives as long as an agent is in it.
void cluster_members::drop_unused_pools() {
  for (auto it = pools_.begin(); it != pools_.end();) {
    const auto used =
      config::has_pool(configuration_, it->first) ||
      std::any_of(links_.begin(), links_.end(), [&](const auto& l) { return l.second.pool == it->first; }) ||
      experiments_in(it->first) > 0;
    if (used) {
      ++it;
      continue;
    }
    self_->demonitor(it->second.address());
    self_->send_exit(it->second, caf::exit_reason::user_shutdown);
    it = pools_.erase(it);
  }
}

std::ptrdiff_t cluster_members::experiments_in(const std::string& pool) const {
  return std::count_if(pool_of_.begin(), pool_of_.end(), [&](const auto& one) { return one.second == pool; });
}

result<void> cluster_members::may_configure(const value& wanted) const {
  for (const auto& [pool, actor] : pools_)
    if (!config::has_pool(wanted, pool) && config::has_pool(configuration_, pool) &&
        !configuration_.is_null() && experiments_in(pool) > 0)
      return error{errc::conflict, "pools." + pool + ": " + std::to_string(experiments_in(pool)) +
                                     " experiments run in it; end them before the pool goes"};
  return {};
}

void cluster_members::configure(const value& wanted) {
  configuration_ = wanted; // an experiment that came in between keeps its pool's actor alive
  make_pools();
  settle_agents();
}

pool_actor cluster_members::enter_pool(experiment_id id, const value& settings) {
  auto wanted = config::pool_of_experiment(configuration_, settings);
  const auto pool = wanted ? *wanted : config::default_pool(configuration_);
  pool_of_[id] = pool;
  return pools_[pool];
}

void cluster_members::leave_pool(experiment_id id) {
  pool_of_.erase(id);
  settle_agents();
}

void cluster_members::release(const allocation_id& run) {
  for (const auto& [name, pool] : pools_)
    self_->send(pool, slots_released{run});
}

// ---- agents

cluster_members::agent_link& cluster_members::make_twin(const std::string& agent) {
  auto& link = links_[agent];
  if (!link.twin) {
    link.pool = wanted_pool(agent);
    auto& pool = pools_[link.pool];
    link.twin = spawn_twin(self_->system(), agent, setup_.lease, pool);
    self_->monitor(link.twin);
    self_->send(pool, link.twin,
                agent); // before anybody that the cluster actor makes later asks the pool for it
  }
  return link;
}

cluster_members::agent_link* cluster_members::find(const std::string& agent) {
  auto it = links_.find(agent);
  return it == links_.end() ? nullptr : &it->second;
}

bool cluster_members::is_taken(const std::string& agent, const agent_actor& by) const {
  auto known = links_.find(agent);
  if (known == links_.end())
    return false;
  const auto& link = known->second;
  return link.actor ? link.actor != by : self_->now() < link.since + setup_.lease.give_away;
}

std::string cluster_members::wanted_pool(const std::string& agent) const {
  return config::pool_of_agent(configuration_, agent);
}

/// An agent changes its pool when no experiment runs in the old one, so that nobody waits for the twin that
/// ends. The agent notices its end, and registers anew.
void cluster_members::settle_agents() {
  for (auto& [agent, link] : links_) {
    if (!link.twin || link.pool == wanted_pool(agent) || experiments_in(link.pool) > 0)
      continue;
    self_->send(pools_[link.pool], agent_down{agent});
    self_->demonitor(link.twin.address());
    self_->send_exit(link.twin, caf::exit_reason::user_shutdown);
    link.twin = nullptr;
    link.pool.clear();
  }
  drop_unused_pools();
}

caf::error cluster_members::child_down(const caf::down_msg& down) {
  for (const auto& [pool, actor] : pools_)
    if (down.source == actor.address())
      return to_caf({errc::internal, "the resource pool " + pool + " died: " + from_caf(down.reason).what});
  for (auto& [agent, link] : links_) {
    if (link.twin && down.source == link.twin.address())
      return to_caf({errc::internal, "the twin of agent " + agent + " died: " + from_caf(down.reason).what});
    if (link.actor && down.source == link.actor.address()) {
      link.actor = nullptr;
      link.since = self_->now();
    }
  }
  return caf::none;
}

void cluster_members::end_all(const caf::error& why) {
  for (auto& [agent, link] : links_)
    if (link.twin)
      self_->send_exit(link.twin, why);
  for (const auto& [name, pool] : pools_)
    self_->send_exit(pool, why);
}

// ---- commands

command_result cluster_members::drain(const commands::agent_drain& order) {
  const auto& [agent, on] = order;
  if (!machine_.agents().contains(agent))
    return refused({errc::not_found, "no agent '" + agent + "'"});
  if (on)
    draining_.insert(agent);
  else
    draining_.erase(agent);
  for (const auto& [name, pool] : pools_) // it may change its pool meanwhile
    self_->send(pool, agent_drain{agent, on});
  return answered();
}

command_result cluster_members::fence(const commands::fence& claim) {
  const auto token = setup_.fence_token ? setup_.fence_token(claim.agent) : std::string();
  if (token.empty() || !same_secret(claim.token, token))
    return refused({errc::denied, "the fence token is not this agent's"});
  auto link = links_.find(claim.agent);
  const bool away = link != links_.end() && !link->second.actor;
  if (claim.dead) {
    if (away)
      self_->send(link->second.twin, death_confirmed{parse_allocation(claim.allocation)});
    return answered({{"kill", false}});
  }
  return answered({{"kill", away}});
}

command_result cluster_members::hear_slots(commands::agent_slots news) {
  if (setup_.fence_token && !same_secret(news.token, setup_.fence_token(news.agent)))
    return refused({errc::denied, "the token is not this agent's"});
  if (auto link = links_.find(news.agent); link != links_.end())
    link->second.slots = std::move(news.slots);
  return answered();
}

caf::result<command_result> cluster_members::gather(std::function<value(const descriptions&)> shape) {
  struct gathering {
    std::size_t left = 0;
    descriptions pools;
  };
  auto all = std::make_shared<gathering>();
  all->left = pools_.size();
  auto promise = self_->make_response_promise<command_result>();
  for (const auto& [name, pool] : pools_)
    self_->request(pool, std::chrono::seconds(10), describe_pool{})
      .then(
        [promise, shape, all, name = name](pool_description& one) mutable {
          all->pools[name] = std::move(one);
          if (--all->left == 0)
            promise.deliver(answered(shape(all->pools)));
        },
        [promise, all](const caf::error& why) mutable {
          if (all->left != 0)
            promise.deliver(refused(from_caf(why)));
          all->left = 0;
        });
  return promise;
}

value cluster_members::description(commands::status, std::size_t experiments,
                                   const descriptions& pools) const {
  const auto all = sum(pools);
  return {{"slots", {{"total", all.total}, {"used", all.used}}},
          {"agents", all.agents.size()},
          {"waiting", waiting_in(pools).size()},
          {"experiments_active", experiments}};
}
value cluster_members::description(commands::queue_list, std::size_t, const descriptions& pools) const {
  return {{"waiting", waiting_in(pools)}};
}
value cluster_members::description(commands::pool_list, std::size_t, const descriptions& pools) const {
  return {{"pools", pool_rows(pools)}};
}
value cluster_members::description(commands::agent_list, std::size_t, const descriptions& pools) const {
  return {{"agents", agent_rows(sum(pools))}};
}

value cluster_members::agent_rows(const pool_description& all) const {
  value agents = value::array();
  for (const auto& [agent, known] : machine_.agents()) {
    auto link = links_.find(agent);
    auto slots = value::array();
    auto held = all.agents.find(agent);
    for (int i = 0; i < known.slots; ++i) {
      const auto n = static_cast<std::size_t>(i);
      value slot{{"id", i}, {"device", "cpu"}, {"enabled", true}};
      if (link != links_.end() && n < link->second.slots.size())
        slot.update(link->second.slots[n]);
      if (held != all.agents.end() && n < held->second.size() && held->second[n])
        slot["allocation"] = to_string(held->second[n]);
      slots.push_back(slot);
    }
    agents.push_back({{"id", known.id},
                      {"name", agent},
                      {"host", known.host},
                      {"pool", link == links_.end() ? std::string() : link->second.pool},
                      {"slots", slots},
                      {"since", to_rfc3339(link == links_.end() ? time_point{} : link->second.up_since)},
                      {"state", link == links_.end() || !link->second.actor ? "away"
                                : draining_.contains(agent)                 ? "draining"
                                                                            : "alive"}});
  }
  return agents;
}

value cluster_members::pool_rows(const descriptions& pools) const {
  value rows = value::array();
  for (const auto& [name, pool] : pools)
    rows.push_back({{"name", name},
                    {"default", name == config::default_pool(configuration_)},
                    {"slots", {{"total", pool.total}, {"used", pool.used}}},
                    {"agents", pool.agents.size()},
                    {"waiting", pool.waiting.size()},
                    {"experiments", experiments_in(name)}});
  return rows;
}

} // namespace troupe
