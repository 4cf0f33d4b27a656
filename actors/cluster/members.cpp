#include "actors/cluster/members.hpp"

#include "model/config/cluster_config.hpp"

#include <algorithm>

namespace troupe {

members::members(members_setup setup)
    : give_away_(setup.give_away), first_give_away_(std::max(setup.give_away, setup.first_give_away)),
      start_(setup.start), configuration_(std::move(setup.configuration)) {
  remember_providers(configuration_);
}

std::optional<error> members::refuses(const members_event& ev, time_point now) const {
  return std::visit([&](const auto& x) { return no(x, now); }, ev);
}

members_step members::apply(const members_event& ev, time_point now) {
  members_step s;
  // `configured` is not refused here, as the configuration is durable already. A job that has entered a
  // dropped pool meanwhile keeps that pool alive.
  if (std::holds_alternative<configured>(ev) || !refuses(ev, now))
    std::visit([&](const auto& x) { on(s, x, now); }, ev);
  return s;
}

std::vector<members_action> members::resume() {
  std::vector<members_action> out;
  for (const auto& [pool, all] : providers_)
    if (!config::has_pool(configuration_, pool) && pools_.insert(pool).second)
      out.push_back(make_pool{pool}); // instances of its providers may be left
  make_pools(out);
  for (const auto& [agent, known] : agents_)
    place_twin(out, agent);
  for (auto& action : out)
    if (auto* made = std::get_if<make_pool>(&action))
      made->after_restart = true;
  stay_in_.clear();
  settle(out);
  return out;
}

// ---- agents

std::optional<error> members::no(const agent_asked& ev, time_point now) const {
  if (ev.who.agent.empty() || ev.who.agent.size() > 128)
    return error{errc::invalid, "an agent's name has 1 to 128 characters"};
  const auto known = agents_.find(ev.who.agent);
  const auto* there = find(ev.who.agent);
  const bool taken = there && (there->here || (there->since && now < gives_away(ev.who.agent)));
  if (known != agents_.end() && known->second.id != ev.who.id && taken)
    return error{errc::conflict,
                 "another agent named '" + ev.who.agent + "' is alive; give this one another --name"};
  if (known != agents_.end() && known->second.id == ev.who.id && there && ev.life != 0 &&
      ev.life < there->life)
    return error{errc::conflict, "a later process of agent '" + ev.who.agent + "' has registered"};
  // An agent that holds runs of a pool that the configuration no longer names comes back to that pool.
  const bool stays = there && there->pool == ev.who.pool;
  if (!ev.who.pool.empty() && !stays && !config::has_pool(configuration_, ev.who.pool)) {
    std::string all;
    for (const auto& name : config::pool_names(configuration_))
      all += (all.empty() ? "" : ", ") + name;
    return error{errc::invalid, "agent '" + ev.who.agent + "': there is no pool '" + ev.who.pool +
                                  "' in this cluster\nhint: --pool " + all};
  }
  return std::nullopt;
}

void members::on(members_step& s, const agent_asked& ev, time_point) {
  const auto known = agents_.find(ev.who.agent);
  if (known == agents_.end() || known->second.id != ev.who.id || known->second.slots != ev.who.slots ||
      known->second.host != ev.who.host || known->second.pool != ev.who.pool)
    note(s, ev.who);
  auto& there = presence_[ev.who.agent];
  there.here = true;
  there.life = ev.life;
  there.twin_made.reset();
  settle(s.actions); // the agent may ask for another pool than before
  place_twin(s.actions, ev.who.agent);
}

void members::on(members_step&, const agent_went_away& ev, time_point now) {
  if (auto it = presence_.find(ev.agent); it != presence_.end() && std::exchange(it->second.here, false))
    it->second.since = now;
}

std::optional<error> members::no(const agent_ordered& ev, time_point) const {
  const auto known = agents_.find(ev.agent);
  if (known == agents_.end())
    return error{errc::not_found, "no agent '" + ev.agent + "'"};
  if (ev.slot < -1 || ev.slot >= known->second.slots)
    return error{errc::not_found, "agent '" + ev.agent + "' has no slot " + std::to_string(ev.slot)};
  if (ev.taken_over && told_of_.contains(ev.agent))
    return error{errc::conflict, "facts already tell what was ordered of agent '" + ev.agent + "'"};
  return std::nullopt;
}

void members::on(members_step& s, const agent_ordered& ev, time_point now) {
  const auto& known = agents_.at(ev.agent);
  agent_changed fact{now, ev.agent, known.draining, known.disabled, ev.by, known.ends, known.ended};
  std::erase(fact.disabled, ev.slot);
  std::erase(fact.ended, ev.slot);
  if (ev.slot < 0) {
    fact.draining = ev.off;
    fact.ends = ev.off && ev.ends;
  } else if (ev.off) {
    fact.disabled.push_back(ev.slot);
    if (ev.ends)
      fact.ended.push_back(ev.slot);
  }
  std::sort(fact.disabled.begin(), fact.disabled.end());
  std::sort(fact.ended.begin(), fact.ended.end());
  if (fact.draining == known.draining && fact.disabled == known.disabled && fact.ends == known.ends &&
      fact.ended == known.ended)
    return; // the order is a repeat
  note(s, fact);
  s.actions.push_back(order_of(ev.agent));
}

std::optional<error> members::no(const agent_removed& ev, time_point now) const {
  if (!agents_.contains(ev.agent))
    return error{errc::not_found, "no agent '" + ev.agent + "'"};
  const auto* there = find(ev.agent);
  if (there && there->here)
    return error{errc::conflict,
                 "agent '" + ev.agent + "' is connected, so it is not gone\nhint: stop it, then remove it"};
  if (const auto left = gives_away(ev.agent) - now; left > duration{})
    return error{errc::conflict, "agent '" + ev.agent +
                                   "' went away only lately, and its runs are not given away yet\nhint: "
                                   "remove it in " +
                                   std::to_string((left + 999ms) / 1s) + " s"};
  return std::nullopt;
}

void members::on(members_step& s, const agent_removed& ev, time_point now) {
  const auto pool = pool_of(ev.agent);
  note(s, agent_left{now, ev.agent, agents_.at(ev.agent).id, ev.by});
  presence_.erase(ev.agent);
  if (!pool.empty())
    s.actions.push_back(end_twin{ev.agent, pool});
  for (const auto& each : pools_)
    s.actions.push_back(forget_agent{ev.agent, each});
  settle(s.actions);
}

members::verdict members::judge_sandbox(const std::string& agent, bool dead, bool saved,
                                        time_point now) const {
  const auto* there = find(agent);
  const bool away = there && !there->here;
  const bool late = away && now >= gives_away(agent);
  // `up FILE` starts the agents of its host after the master. So an agent that has not registered since the
  // master's start may still register and adopt its tasks, until the time `hearing` is over.
  const bool may_come = away && !there->since && now < start_ + hearing;
  return {away && !dead && ((saved && !may_come) || late), away && dead};
}

/// The twin counts from the last message of the agent. A twin that was made later does not know that message
/// and counts from the time when it was made. This function is never earlier than the twin, so that the
/// master does not take a run for given away before the twin has given it away.
time_point members::gives_away(const std::string& agent) const {
  const auto* there = find(agent);
  const auto at = there && there->since ? *there->since + give_away_ : start_ + first_give_away_;
  return there && there->twin_made ? std::max(at, *there->twin_made + first_give_away_) : at;
}

/// Makes a twin for an agent that has none, in the pool where its open runs are, or else in the pool that the
/// configuration names.
void members::place_twin(std::vector<members_action>& out, const std::string& agent) {
  auto& there = presence_[agent];
  if (!there.pool.empty())
    return;
  const auto stays = stay_in_.find(agent);
  there.pool = stays == stay_in_.end() ? wanted_pool(agent) : stays->second;
  if (pools_.insert(there.pool).second)
    out.push_back(make_pool{there.pool}); // the configuration no longer names this pool
  out.push_back(make_twin{agent, there.pool});
}

std::string members::wanted_pool(const std::string& agent) const {
  const auto known = agents_.find(agent);
  return config::pool_of_agent(configuration_, agent, known == agents_.end() ? "" : known->second.pool);
}

const members::presence* members::find(const std::string& agent) const {
  auto it = presence_.find(agent);
  return it == presence_.end() ? nullptr : &it->second;
}

std::string members::pool_of(const std::string& agent) const {
  const auto* there = find(agent);
  return there ? there->pool : std::string();
}

bool members::is_here(const std::string& agent) const {
  const auto* there = find(agent);
  return there && there->here;
}

bool members::is_leaving(const std::string& agent) const {
  const auto* there = find(agent);
  return there && there->leaves;
}

// ---- pools

void members::make_pools(std::vector<members_action>& out) {
  for (const auto& pool : config::pool_names(configuration_))
    if (pools_.insert(pool).second)
      out.push_back(make_pool{pool});
  for (const auto& pool : pools_) {
    configure(out, pool);
    supply(out, pool);
  }
  tell_orders(out);
}

/// A provider that the configuration drops ends its idle instances and launches none. The journal knows its
/// instances, and the settings with which the provider can be called.
void members::supply(std::vector<members_action>& out, const std::string& pool) {
  auto settings = config::provider_settings(configuration_, pool);
  if (settings.is_null())
    settings = value::object();
  if (const auto all = providers_.find(pool); all != providers_.end())
    for (const auto& one : all->second)
      if (one.value("type", value()) != settings.value("type", value()))
        settings["former"].push_back(one);
  if (settings.empty())
    return; // the pool never had a provider
  if (!config::has_pool(configuration_, pool))
    settings["dropped"] = true;
  if (const auto known = supplied_.find(pool); known != supplied_.end() && known->second == settings)
    return;
  retired_.erase(pool);
  supplied_[pool] = settings;
  out.push_back(supply_pool{pool, std::move(settings)});
}

void members::remember_providers(const value& configuration) {
  for (const auto& pool : config::pool_names(configuration))
    if (auto settings = config::provider_settings(configuration, pool); settings.is_object()) {
      auto& all = providers_[pool];
      std::erase_if(
        all, [&](const value& one) { return one.value("type", value()) == settings.value("type", value()); });
      all.insert(all.begin(), std::move(settings));
    }
}

bool members::has_provider_left(const std::string& pool) const {
  return supplied_.contains(pool) && !retired_.contains(pool);
}

/// A pool that the configuration no longer names keeps its settings until the pool ends.
void members::configure(std::vector<members_action>& out, const std::string& pool) {
  if (!config::has_pool(configuration_, pool))
    return;
  auto settings = config::pool_settings(configuration_, pool);
  auto& told = told_.try_emplace(pool, value::object()).first->second;
  if (told == settings)
    return;
  told = settings;
  out.push_back(configure_pool{pool, std::move(settings)});
}

void members::tell_orders(std::vector<members_action>& out) const {
  for (const auto& [agent, known] : agents_)
    if (const auto* there = find(agent);
        known.draining || !known.disabled.empty() || (there && there->leaves))
      out.push_back(order_of(agent));
}

/// What an operator ordered of the agent. An agent that leaves its pool counts as drained, too.
order_agent members::order_of(const std::string& agent) const {
  const auto known = agents_.find(agent);
  const auto* there = find(agent);
  const auto& as = known == agents_.end() ? known_agent() : known->second;
  const bool leaves = there && there->leaves;
  auto to = leaves ? wanted_pool(agent) : std::string();
  // An agent that is about to be told that it stays, or that will be refused as its own pool is gone, leaves
  // for no pool.
  if (leaves && (to == there->pool || (!as.pool.empty() && !config::has_pool(configuration_, as.pool))))
    to.clear();
  return {agent, as.draining || leaves, as.disabled, as.ends, as.ended, std::move(to), as.by};
}

std::ptrdiff_t members::jobs_in(const std::string& pool) const {
  return std::count_if(pool_of_.begin(), pool_of_.end(), [&](const auto& one) { return one.second == pool; });
}

std::ptrdiff_t members::experiments_in(const std::string& pool) const {
  return std::count_if(pool_of_.begin(), pool_of_.end(),
                       [&](const auto& one) { return one.second == pool && !is_task_job(one.first); });
}

/// The jobs of a pool as the subject and verb of a sentence: "2 experiments and 1 other task are".
std::string members::jobs_text(const std::string& pool) const {
  const auto experiments = experiments_in(pool), tasks = jobs_in(pool) - experiments;
  const auto some = [](std::ptrdiff_t n, const char* what) {
    return n == 0 ? std::string() : std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  };
  const auto one = some(experiments, "experiment"), other = some(tasks, experiments ? "other task" : "task");
  return one + (one.empty() || other.empty() ? "" : " and ") + other +
         (experiments + tasks == 1 ? " is" : " are");
}

std::string members::pool_of(experiment_id id) const {
  auto it = pool_of_.find(id);
  return it == pool_of_.end() ? std::string() : it->second;
}

std::optional<error> members::no(const configured& ev, time_point) const {
  for (const auto& pool : pools_)
    if (!config::has_pool(ev.configuration, pool) && config::has_pool(configuration_, pool) &&
        !configuration_.is_null() && jobs_in(pool) > 0)
      return error{errc::conflict, "pools." + pool + ": " + jobs_text(pool) +
                                     " in it; end or move them before the pool goes"};
  return std::nullopt;
}

void members::on(members_step& s, const configured& ev, time_point) {
  configuration_ = ev.configuration;
  remember_providers(configuration_);
  make_pools(s.actions);
  settle(s.actions);
}

/// The pool is the one that an operator chose, or else the one that the configuration of the experiment
/// names, or else, where that pool is gone, the default pool.
void members::on(members_step&, const experiment_entered& ev, time_point) {
  auto wanted = config::pool_of_experiment(configuration_, ev.settings);
  pool_of_[ev.id] = config::has_pool(configuration_, ev.pool) ? ev.pool
                    : wanted                                  ? *wanted
                                                              : config::default_pool(configuration_);
}

std::optional<error> members::no(const experiment_placed& ev, time_point) const {
  const auto fine = config::all_pools(configuration_).check(ev.pool);
  return fine ? std::nullopt : std::optional(fine.error());
}

void members::on(members_step& s, const experiment_placed& ev, time_point) {
  if (auto it = pool_of_.find(ev.id); it != pool_of_.end() && it->second != ev.pool) {
    it->second = ev.pool;
    settle(s.actions);
  }
}

void members::on(members_step& s, const experiment_gone& ev, time_point) {
  if (pool_of_.erase(ev.id) > 0)
    settle(s.actions);
}

void members::on(members_step& s, const agent_is_idle& ev, time_point) {
  const auto at = presence_.find(ev.agent);
  if (at == presence_.end() || !at->second.leaves || at->second.pool != ev.pool)
    return;
  at->second.leaves = false;
  at->second.leaves_for.clear();
  at->second.pool.clear();
  s.actions.push_back(end_twin{ev.agent, ev.pool});
  s.actions.push_back(order_of(ev.agent));
  settle(s.actions);
}

/// An agent changes its pool when its old pool holds nothing on it for any job, so that no allocation waits
/// for the twin that ends; until then the agent gets no new work. A pool that the configuration no longer
/// names lives as long as it has jobs, agents or a provider.
void members::settle(std::vector<members_action>& out) {
  for (auto& [agent, there] : presence_) {
    const bool leaves = !there.pool.empty() && there.pool != wanted_pool(agent);
    const bool before = std::exchange(there.leaves, leaves);
    if (!leaves && !before)
      continue;
    auto order = order_of(agent);
    const bool elsewhere = std::exchange(there.leaves_for, order.leaves_for) != order.leaves_for;
    if (leaves != before || elsewhere)
      out.push_back(std::move(order));
    if (leaves && !before)
      out.push_back(watch_agent{agent, there.pool});
  }
  for (auto it = pools_.begin(); it != pools_.end();) {
    const bool used =
      config::has_pool(configuration_, *it) || jobs_in(*it) > 0 || has_provider_left(*it) ||
      std::any_of(presence_.begin(), presence_.end(), [&](const auto& p) { return p.second.pool == *it; });
    if (!used)
      out.push_back(end_pool{*it});
    if (!used) {
      told_.erase(*it);
      supplied_.erase(*it);
      retired_.erase(*it);
    }
    it = used ? std::next(it) : pools_.erase(it);
  }
}

// ---- actors that died

void members::on(members_step& s, const pool_died& ev, time_point now) {
  if (!pools_.contains(ev.pool))
    return;
  if (!restarts_.again("pool/" + ev.pool, now)) {
    s.actions.push_back(
      give_up{{errc::internal, "the resource pool " + ev.pool + " died again and again: " + ev.why}});
    return;
  }
  s.actions.push_back(make_pool{ev.pool, true});
  told_.erase(ev.pool);
  configure(s.actions, ev.pool);
  tell_orders(s.actions);
}

void members::on(members_step& s, const provisioner_died& ev, time_point now) {
  const auto known = supplied_.find(ev.pool);
  if (known == supplied_.end())
    return;
  if (restarts_.again("provider/" + ev.pool, now))
    s.actions.push_back(supply_pool{ev.pool, known->second});
  else
    s.actions.push_back(
      give_up{{errc::internal, "the provider of pool " + ev.pool + " died again and again: " + ev.why}});
}

/// Where the configuration has named the provider again meanwhile, the provider is made again.
void members::on(members_step& s, const provider_retired& ev, time_point) {
  const auto known = supplied_.find(ev.pool);
  if (known == supplied_.end())
    return;
  if (known->second.contains("type")) {
    s.actions.push_back(supply_pool{ev.pool, known->second});
    return;
  }
  retired_.insert(ev.pool);
  settle(s.actions);
}

void members::on(members_step& s, const twin_died& ev, time_point now) {
  const auto pool = pool_of(ev.agent);
  if (pool.empty())
    return;
  if (restarts_.again("agent/" + ev.agent, now)) {
    presence_[ev.agent].twin_made = now;
    make_twin again{ev.agent, pool, true, {}};
    for (const auto& [run, its] : let_go_)
      for (const auto& part : its.on)
        if (part.agent == ev.agent)
          again.let_go[run] = part.slots;
    s.actions.push_back(std::move(again));
  } else
    s.actions.push_back(
      give_up{{errc::internal, "the twin of agent " + ev.agent + " died again and again: " + ev.why}});
}

/// A twin that ends the processes holds their slots until they are dead. Where an agent has no twin, nothing
/// of the run can live: its slots are free at once.
void members::on(members_step& s, const run_let_go& ev, time_point now) {
  std::erase_if(let_go_, [&](const auto& x) { return now > x.second.at + 2 * first_give_away_; });
  std::set<std::string> holding; // pools in which slots are held on
  for (const auto& part : ev.on)
    if (const auto pool = pool_of(part.agent); !pool.empty()) {
      let_go_[ev.run] = {now, ev.on};
      holding.insert(pool);
      s.actions.push_back(end_run{part.agent, ev.run});
    }
  for (const auto& pool : pools_)
    if (!holding.contains(pool))
      s.actions.push_back(release_run{pool, ev.run, {}});
    else
      for (const auto& part : ev.on)
        if (pool_of(part.agent).empty())
          s.actions.push_back(release_run{pool, ev.run, part.agent});
}

// ---- facts

void members::note(members_step& s, cluster_fact fact) {
  replay(fact);
  s.facts.push_back(std::move(fact));
}

void members::replay(const cluster_fact& fact) {
  std::visit(overloaded{
               [this](const agent_joined& f) {
                 auto& known = agents_[f.agent];
                 known.id = f.id;
                 known.slots = f.slots;
                 known.host = f.host;
                 known.pool = f.pool;
                 known.joined = f.at;
               },
               [this](const agent_changed& f) {
                 auto& known = agents_[f.agent];
                 known.draining = f.draining;
                 known.disabled = f.disabled;
                 known.ends = f.ends;
                 known.ended = f.ended;
                 known.by = f.by;
                 told_of_.insert(f.agent);
               },
               [this](const agent_left& f) {
                 agents_.erase(f.agent);
                 told_of_.insert(f.agent);
               },
               [this](const configuration_changed& f) { // may tell of leases that an earlier life granted
                 remember_providers(f.configuration);
                 first_give_away_ = std::max(first_give_away_, config::leases(f.configuration).give_away);
               },
               [](const auto&) {},
             },
             fact);
}

std::string members::snapshot() const {
  std::vector<std::tuple<std::string, std::string, int, std::string, bool, std::vector<int>, std::string,
                         bool, std::vector<int>, time_point, std::string>>
    agents;
  for (const auto& [name, a] : agents_)
    agents.emplace_back(name, a.id, a.slots, a.host, a.draining, a.disabled, a.pool, a.ends, a.ended,
                        a.joined, a.by);
  return pack(std::tuple{agents, told_of_});
}

value members::describe() const {
  value agents = value::object(), pools = value::object();
  for (const auto& [name, a] : agents_)
    agents[name] = {{"id", a.id},
                    {"slots", a.slots},
                    {"host", a.host},
                    {"here", is_here(name)},
                    {"pool", pool_of(name)},
                    {"draining", a.draining},
                    {"disabled", a.disabled},
                    {"ends", a.ends}};
  for (const auto& pool : pools_)
    pools[pool] = {{"experiments", experiments_in(pool)}};
  return {{"agents", agents}, {"pools", pools}};
}

} // namespace troupe
