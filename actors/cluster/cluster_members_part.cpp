#include "actors/cluster/cluster_members_part.hpp"

#include "actors/agent_twin/agent_twin_actor.hpp"
#include "actors/pool/pool_actor.hpp"
#include "actors/provider/provisioner_actor.hpp"
#include "actors/same_secret.hpp"
#include "actors/shells/driven.hpp"
#include "actors/shells/obey.hpp"
#include "model/config/cluster_config.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <limits>

namespace troupe {
namespace {

using waiting_in_pools = std::map<std::string, waiting_listed>;

constexpr std::size_t most_rows_made_here = 1000; ///< for a queue with more rows, queue_writer makes them

value queue_of(const waiting_in_pools& pools) {
  value waiting = value::array();
  for (const auto& [name, listed] : pools) {
    std::size_t with_slots = 0, without = 0; // runs with slots and runs without have positions of their own
    for (const auto& run : listed.runs)
      waiting.push_back({{"position", run.slots > 0 ? ++with_slots : ++without},
                         {"allocation", to_string(run.allocation)},
                         {"trial", run.allocation.trial().value},
                         {"experiment", is_task_job(run.job) ? value() : value(run.job.value)},
                         {"pool", name},
                         {"slots", run.slots},
                         {"priority", run.priority},
                         {"weight", run.weight},
                         {"user", run.user},
                         {"since", to_rfc3339(run.since)},
                         {"reason", run.reason}});
  }
  return {{"waiting", std::move(waiting)}};
}

/// Makes the rows of one long queue, and then ends. The rows of 100,000 runs take about a second.
caf::behavior queue_writer(caf::event_based_actor* self, std::shared_ptr<waiting_in_pools> pools) {
  return {[self, pools](bool) {
    self->quit();
    return answered(queue_of(*pools));
  }};
}

int waiting_in(const std::map<std::string, pool_description>& pools) {
  int waiting = 0;
  for (const auto& [name, pool] : pools)
    waiting += pool.details.at("waiting").get<int>();
  return waiting;
}

/// The sum of all pools. Its `details` count the runs without slots, by agent that has any.
pool_description sum(const std::map<std::string, pool_description>& pools) {
  pool_description all;
  all.details = value::object();
  for (const auto& [name, one] : pools) {
    all.total += one.total;
    all.used += one.used;
    all.agents.insert(one.agents.begin(), one.agents.end());
    for (const auto& [agent, runs] : one.details.at("auxRuns").items())
      all.details[agent] = runs;
  }
  return all;
}

} // namespace

cluster_members::cluster_members(actor_base<cluster_actor>* self, const cluster_setup& setup,
                                 const members& machine, needs with)
    : self_(self), setup_(setup), machine_(machine), with_(std::move(with)) {}

// ---- pools

void cluster_members::run(const make_pool& x) {
  auto& pool = pools_[x.pool];
  pool = spawn_pool(self_->system(), x.pool,
                    x.again || x.after_restart ? pool::phase::recovering : pool::phase::placing);
  self_->monitor(pool);
  if (!x.after_restart) // after a restart, `recovered` introduces the pool once all actors live
    introduce(x.pool, std::chrono::seconds(30));
}

/// An actor that does not answer within `hearing` is no longer waited for. The agents tell the pool what such
/// an actor holds, and the actor tells later what it waits for.
void cluster_members::recovered() {
  recovered_ = true;
  for (const auto& [name, pool] : pools_)
    introduce(name, members::hearing);
}

/// Tells all twins of the pool, its provisioner and all experiments and tasks of the new pool actor, so that
/// they tell it what they hold and wait for. The pool places once each of them has answered, has failed to do
/// so within `patience`, or has died; an actor that has died tells the pool when it is made again.
void cluster_members::introduce(const std::string& name, duration patience) {
  const auto pool = pools_[name];
  auto left = std::make_shared<std::size_t>(1);
  const auto one_less = [this, left, pool] {
    if (--*left == 0)
      self_->send(pool, holders_heard{});
  };
  const auto tell = [&](const auto& who) {
    ++*left;
    self_->request(who, patience, pool_renewed{name, pool})
      .then([one_less](const pool_joined&) { one_less(); }, [one_less](const caf::error&) { one_less(); });
  };
  for (const auto& [agent, link] : links_)
    if (link.twin && machine_.pool_of(agent) == name) {
      self_->send(pool, link.twin, agent);
      tell(link.twin);
    }
  for (const auto& experiment : with_.experiments()) // also those of other pools: a run may have stayed here
    tell(experiment);
  if (const auto provisioner = provisioners_.find(name); provisioner != provisioners_.end())
    tell(provisioner->second);
  for (const auto& task : with_.tasks())
    tell(task);
  one_less();
}

void cluster_members::run(const supply_pool& x) {
  if (const auto known = provisioners_.find(x.pool); known != provisioners_.end())
    return self_->send(known->second, provider_configured{x.settings});
  const auto pool = pools_.find(x.pool);
  if (pool == pools_.end())
    return;
  std::set<std::string> agents;
  for (const auto& [agent, known] : machine_.agents())
    agents.insert(agent);
  auto& provisioner = provisioners_[x.pool];
  provisioner = spawn_provisioner(self_->system(),
                                  {x.pool, x.settings, with_.journal, pool->second, setup_.make_provider,
                                   setup_.say, cluster_actor{self_}, std::move(agents)},
                                  with_.instances_in_journal(x.pool));
  self_->monitor(provisioner);
}

void cluster_members::run(const configure_pool& x) {
  if (auto pool = pools_.find(x.pool); pool != pools_.end())
    self_->send(pool->second, pool_configured{x.settings});
}

void cluster_members::run(const end_pool& x) {
  auto pool = pools_.extract(x.pool);
  if (!pool)
    return;
  self_->demonitor(pool.mapped().address());
  self_->send_exit(pool.mapped(), caf::exit_reason::user_shutdown);
  if (auto provisioner = provisioners_.extract(x.pool)) {
    self_->demonitor(provisioner.mapped().address());
    self_->send_exit(provisioner.mapped(), caf::exit_reason::user_shutdown);
  }
}

void cluster_members::run(const end_run& x) {
  if (const auto twin = twin_of(x.agent))
    self_->send(twin, forget_ordered{x.run});
}

void cluster_members::run(const release_run& x) {
  if (const auto pool = pools_.find(x.pool); pool != pools_.end())
    self_->send(pool->second, slots_released{x.run, x.agent});
}

void cluster_members::ask_capacity(const std::string& name, capacity_callback then) const {
  const auto pool = pools_.find(name);
  if (pool == pools_.end())
    return then(error{errc::not_found, "resource pool '" + name + "' not found"});
  // Shared, as `then` may hold the files of a task, which are large.
  const auto answer = std::make_shared<capacity_callback>(std::move(then));
  self_->request(pool->second, std::chrono::seconds(10), explain_allocation{})
    .then([answer](const allocation_explained& got) { (*answer)(capacity_of(got.why)); },
          [answer](const caf::error& why) { (*answer)(from_caf(why)); });
}

// ---- agents

void cluster_members::run(const make_twin& x) {
  auto& link = links_[x.agent];
  const auto& pool = pools_[x.pool];
  link.twin = spawn_twin(self_->system(), x.agent, setup_.lease, pool);
  self_->monitor(link.twin);
  if (x.again) { // these arrive before the agent registers
    auto open = with_.open_tasks_on(x.agent);
    for (const auto& [run, slots] : x.let_go)
      open.tasks.push_back({run, slots});
    self_->send(link.twin, std::move(open));
    for (const auto& [run, slots] : x.let_go)
      self_->send(link.twin, forget_ordered{run});
  }
  // The twin reaches the pool before any actor that is made later can ask the pool for it.
  self_->send(pool, link.twin, x.agent);
  if (x.again)
    // The agent is up again once it registers with the new twin.
    self_->send(pool, agent_down{x.agent, false, machine_.gives_away(x.agent)});
}

void cluster_members::run(const end_twin& x) {
  auto link = links_.find(x.agent);
  if (link == links_.end() || !link->second.twin)
    return;
  if (auto pool = pools_.find(x.pool); pool != pools_.end())
    self_->send(pool->second, agent_down{x.agent, true});
  self_->demonitor(link->second.twin.address());
  self_->send_exit(link->second.twin, caf::exit_reason::user_shutdown);
  link->second.twin = nullptr;
}

void cluster_members::run(const watch_agent& x) {
  watched_[x.agent] = x.pool;
  look(x.agent, x.pool);
}

/// Asks the pool whether it still holds anything on the agent, and again after a second while it does. The
/// questions end when the agent no longer leaves that pool.
void cluster_members::look(const std::string& agent, const std::string& pool) {
  const auto again = [this] {
    look_at_ = self_->now() + std::chrono::seconds(1);
    with_.arm();
  };
  const auto known = pools_.find(pool);
  if (!recovered_ || known == pools_.end())
    return again();
  self_->request(known->second, std::chrono::seconds(10), look_at_agent{agent})
    .then(
      [this, agent, pool, again](const agent_looked_at& seen) {
        if (!seen.is_idle)
          return again();
        watched_.erase(agent);
        with_.tell(agent_is_idle{agent, pool}, {});
      },
      [again](const caf::error&) { again(); });
}

void cluster_members::time_passed() {
  if (!look_at_ || *look_at_ > self_->now())
    return;
  look_at_.reset();
  std::erase_if(watched_, [this](const auto& x) {
    return !machine_.is_leaving(x.first) || machine_.pool_of(x.first) != x.second;
  });
  for (const auto& [agent, pool] : std::map(watched_))
    look(agent, pool);
}

void cluster_members::run(const order_agent& x) {
  for (const auto& [name, pool] : pools_)
    self_->send(pool, agent_drain{x.agent, x.draining, x.disabled, x.ends, x.ended, x.leaves_for, x.by});
}

void cluster_members::run(const forget_agent& x) {
  links_.erase(x.agent);
  if (auto pool = pools_.find(x.pool); pool != pools_.end())
    self_->send(pool->second, agent_forgotten{x.agent});
}

twin_actor cluster_members::twin_of(const std::string& agent) const {
  auto it = links_.find(agent);
  return it == links_.end() ? twin_actor{} : it->second.twin;
}

void cluster_members::welcome(const std::string& agent, const agent_actor& who, const agent_traits& traits) {
  auto& link = links_[agent];
  link.labels = traits.labels;
  if (link.actor)
    self_->demonitor(link.actor.address());
  link.actor = who;
  link.up_since = self_->now();
  self_->monitor(who);
}

std::optional<members_event> cluster_members::child_down(const caf::down_msg& down) {
  for (const auto& [pool, actor] : pools_)
    if (down.source == actor.address())
      return pool_died{pool, from_caf(down.reason).what};
  for (auto it = provisioners_.begin(); it != provisioners_.end(); ++it)
    if (down.source == it->second.address()) {
      const auto pool = provisioners_.extract(it).key();
      if (!down.reason || down.reason == caf::exit_reason::normal)
        return provider_retired{pool};
      return provisioner_died{pool, from_caf(down.reason).what};
    }
  for (auto& [agent, link] : links_) {
    if (link.twin && down.source == link.twin.address())
      return twin_died{agent, from_caf(down.reason).what};
    if (link.actor && down.source == link.actor.address()) {
      link.actor = nullptr;
      return agent_went_away{agent};
    }
  }
  return std::nullopt;
}

void cluster_members::end_all(const caf::error& why) {
  for (auto& [agent, link] : links_)
    if (link.twin)
      self_->send_exit(link.twin, why);
  for (const auto& [name, provisioner] : provisioners_)
    self_->send_exit(provisioner, why);
  for (const auto& [name, pool] : pools_)
    self_->send_exit(pool, why);
}

// ---- commands

caf::result<command_result> cluster_members::obey(client_command& x) {
  return troupe::obey<commands_here>(x.name, std::move(x.fields), [this, &x](auto order) {
    if constexpr (commands::contains<questions, decltype(order)>)
      return describe(order);
    else
      return on(x.user, std::move(order));
  });
}

caf::result<command_result> cluster_members::on(const std::string&, commands::pool_details x) {
  if (x.name.empty())
    x.name = config::default_pool(machine_.configuration());
  if (!pools_.contains(x.name))
    return refused({errc::not_found, "pool '" + x.name + "' not found"});
  return describe(x);
}

caf::result<command_result> cluster_members::on(const std::string& user, const commands::agent_drain& x) {
  if (x.slot && (*x.slot < 0 || *x.slot > std::numeric_limits<int>::max()))
    return refused({errc::not_found, "agent '" + x.agent + "' has no slot " + std::to_string(*x.slot)});
  return change(agent_ordered{x.agent, x.slot ? static_cast<int>(*x.slot) : -1, x.on, user, false, x.ends});
}

caf::result<command_result> cluster_members::on(const std::string& user, const commands::agent_remove& x) {
  return change(agent_removed{x.agent, user});
}

caf::result<command_result> cluster_members::change(const members_event& ev) {
  if (auto no = machine_.refuses(ev, self_->now()))
    return refused(*no);
  auto promise = self_->make_response_promise<command_result>();
  with_.tell(ev, [promise](const caf::error& why) mutable {
    promise.deliver(why ? refused(from_caf(why)) : answered());
  });
  return promise;
}

caf::result<command_result> cluster_members::on(const std::string&, const commands::fence& claim) {
  const auto token = setup_.fence_token ? setup_.fence_token(claim.agent) : std::string();
  if (token.empty() || !same_secret(claim.token, token))
    return refused({errc::denied, "the fence token is not this agent's"});
  const auto id = parse_allocation(claim.allocation);
  const auto verdict =
    machine_.judge_sandbox(claim.agent, claim.dead, !id || id.task.is_trial(), self_->now());
  if (verdict.tell_twin)
    self_->send(twin_of(claim.agent), death_confirmed{id});
  return answered({{"kill", verdict.kill}});
}

caf::result<command_result> cluster_members::on(const std::string&, commands::agent_slots news) {
  if (setup_.fence_token && !same_secret(news.token, setup_.fence_token(news.agent)))
    return refused({errc::denied, "the token is not this agent's"});
  if (auto link = links_.find(news.agent); link != links_.end())
    link->second.slots = std::move(news.slots);
  return answered();
}

template <class Question>
caf::result<command_result> cluster_members::describe(Question what) {
  if constexpr (std::is_same_v<Question, commands::queue_list>)
    return gather<waiting_listed>(list_waiting{}, [this](waiting_in_pools& pools, answer_promise& to) {
      tell_queue(std::move(pools), to);
    });
  else
    return gather<pool_description>(describe_pool{}, [this, what, experiments = with_.count_experiments()](
                                                       descriptions& pools, answer_promise& to) {
      to.deliver(answered(description(what, experiments, pools)));
    });
}

void cluster_members::tell_queue(std::map<std::string, waiting_listed> pools, answer_promise& to) {
  std::size_t rows = 0;
  for (const auto& [name, listed] : pools)
    rows += listed.runs.size();
  if (rows <= most_rows_made_here) {
    to.deliver(answered(queue_of(pools)));
    return;
  }
  auto& system = self_->system();
  auto all = std::make_shared<waiting_in_pools>(std::move(pools));
  const auto writer = driven_by_test(system) ? system.spawn(queue_writer, std::move(all))
                                             : system.spawn<caf::detached>(queue_writer, std::move(all));
  self_->request(writer, std::chrono::seconds(60), true)
    .then([to](command_result& got) mutable { to.deliver(std::move(got)); },
          [to](const caf::error& why) mutable { to.deliver(refused(from_caf(why))); });
}

template <class Answer, class Question>
caf::result<command_result>
cluster_members::gather(const Question& what,
                        std::function<void(std::map<std::string, Answer>&, answer_promise&)> then) {
  struct gathering {
    std::size_t left = 0;
    std::map<std::string, Answer> pools;
  };
  auto all = std::make_shared<gathering>();
  all->left = pools_.size();
  auto promise = self_->make_response_promise<command_result>();
  for (const auto& [name, pool] : pools_)
    self_->request(pool, std::chrono::seconds(10), what)
      .then(
        [promise, then, all, name = name](Answer& one) mutable {
          all->pools[name] = std::move(one);
          if (--all->left == 0)
            then(all->pools, promise);
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
          {"waiting", waiting_in(pools)},
          {"experiments_active", experiments}};
}
value cluster_members::description(commands::pool_list, std::size_t, const descriptions& pools) const {
  value rows = value::array();
  for (const auto& [name, pool] : pools)
    rows.push_back(pool_row(name, pool));
  return {{"pools", rows}};
}
value cluster_members::description(commands::job_list, std::size_t, const descriptions& pools) const {
  value rows = value::array();
  for (const auto& [name, pool] : pools) {
    auto row = pool_row(name, pool);
    for (const char* key : {"jobs", "fitting", "defaultPriority", "auxPerAgent", "auxUsed", "device"})
      row[key] = pool.details.at(key);
    row["provider"] = limits_of_provider(name);
    rows.push_back(std::move(row));
  }
  return {{"pools", rows}};
}
/// The limits that the cluster file gives, which are known before the provider has answered; null where the
/// pool has no provider.
value cluster_members::limits_of_provider(const std::string& pool) const {
  const auto provider = config::provider_settings(machine_.configuration(), pool);
  if (!provider.is_object())
    return nullptr;
  const auto limits = provisioner_settings_of(provider);
  const auto seconds = [](duration x) { return std::chrono::duration<double>(x).count(); };
  return {{"instanceSlots", limits.instance_slots},
          {"minInstances", limits.min_instances},
          {"maxInstances", limits.max_instances},
          {"maxIdleSeconds", seconds(limits.max_idle)},
          {"maxStartingSeconds", seconds(limits.max_starting)}};
}

value cluster_members::description(const commands::pool_details& what, std::size_t,
                                   const descriptions& pools) const {
  const auto pool = pools.find(what.name);
  if (pool == pools.end()) // the pool ended while it was asked
    return value::object();
  auto row = pool_row(what.name, pool->second);
  row["provider"] = pool->second.details.at("provider");
  for (const char* key : {"quotas", "jobs"})
    row[key] = pool->second.details.at(key);
  return row;
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
      const auto among = [i](const std::vector<int>& list) {
        return std::find(list.begin(), list.end(), i) != list.end();
      };
      slot["enabled"] = !known.draining && !among(known.disabled);
      slot["draining"] = (known.draining && !known.ends) || (among(known.disabled) && !among(known.ended));
      if (held != all.agents.end() && n < held->second.size() && held->second[n])
        slot["allocation"] = to_string(held->second[n]);
      slots.push_back(slot);
    }
    value aux = value::array();
    for (const auto& run : all.details.value(agent, value::array()))
      aux.push_back({{"allocation", run}});
    agents.push_back({{"id", known.id},
                      {"name", agent},
                      {"host", known.host},
                      {"pool", machine_.pool_of(agent)},
                      {"slots", slots},
                      {"aux", aux},
                      {"since", to_rfc3339(link == links_.end() || link->second.up_since == time_point{}
                                             ? known.joined
                                             : link->second.up_since)},
                      {"labels", link == links_.end() ? value::object() : value(link->second.labels)},
                      {"enabled", !known.draining},
                      {"draining", known.draining && !known.ends},
                      {"state", !machine_.is_here(agent)       ? "away"
                                : known.draining && known.ends ? "disabled"
                                : known.draining               ? "draining"
                                                               : "alive"}});
  }
  return agents;
}

value cluster_members::pool_row(const std::string& name, const pool_description& pool) const {
  auto provider = pool.details.at("provider");
  if (provider.is_object()) {
    for (const char* of_one :
         {"faults", "maxSlots", "retryAt", "failedLaunches", "launchFailedAt", "launchFailure"})
      provider.erase(of_one);
  }
  return {
    {"name", name},
    {"default", name == config::default_pool(machine_.configuration())},
    {"scheduler", pool.details.at("scheduler")},
    {"preemption", pool.details.at("preemption")},
    {"slots", {{"total", pool.total}, {"used", pool.used}, {"reserved", pool.details.at("reserved")}}},
    {"agents", pool.agents.size()},
    {"waiting", pool.details.at("waiting").get<int>() + pool.details.at("waitingWithoutSlots").get<int>()},
    {"experiments", machine_.experiments_in(name)},
    {"provider", std::move(provider)}};
}

} // namespace troupe
