// Why a run waits, asked of the same indexes, limits and fitting that place it.

#include "actors/pool/pool.hpp"

#include <algorithm>

namespace troupe {
namespace {

std::string slots_text(int n) { return std::to_string(n) + (n == 1 ? " slot" : " slots"); }

std::int64_t seconds_between(time_point from, time_point to) {
  return std::chrono::duration_cast<std::chrono::seconds>(to - from).count();
}

value shown(const std::vector<placement>& on) {
  value list = value::array();
  for (const auto& part : on)
    list.push_back({{"agent", part.agent}, {"slots", part.slots}});
  return list;
}

} // namespace

/// Whether the agents that are there could hold it if nothing were held, drained or disabled.
bool pool::could_ever_hold(const pool_run& run) const { return fits_bare(run, run.terms.rules); }

bool pool::fits_bare(const pool_run& run, const placement_rules& rules) const {
  std::map<std::string, room_index> groups;
  std::vector<agent_room> rooms;
  rooms.reserve(agents_.size());
  for (const auto& [name, agent] : agents_) {
    if (!agent.present || !refusal(rules, name, agent.traits).empty())
      continue;
    const auto label = rules.same_label.empty() ? std::string() : agent.traits.labels.at(rules.same_label);
    const int total = static_cast<int>(agent.slots.size());
    rooms.push_back({name, total, total, total > 0});
    groups.try_emplace(label, settings_.fitting).first->second.insert(rooms.back());
  }
  for (const auto& [label, group] : groups)
    if (!group.fit(run.need(), rules.single_node, settings_.gangs).empty())
      return true;
  return false;
}

std::pair<std::string, std::string> pool::reason(const pool_run& run) {
  switch (run.state) {
  case pool_run::phase::holding:
    return {"running", "it holds " + slots_text(run.held())};
  case pool_run::phase::stopping:
    return {"stopping", "it was preempted, and saves"};
  case pool_run::phase::waiting:
    break;
  }
  const bool any =
    std::any_of(agents_.begin(), agents_.end(), [](const auto& x) { return x.second.present; });
  if (!any)
    return {"no_agents", "the pool has no agents"};
  if (run.slots == 0)
    return aux_reason(run);
  if (!could_hold(run)) {
    placement_rules rules;
    if (!fits_bare(run, rules))
      return {"too_large",
              "it needs " + slots_text(run.need()) + ", and the pool has " + std::to_string(total_)};
    rules.single_node = run.terms.rules.single_node;
    if (!fits_bare(run, rules))
      return {"single_node", "it needs " + slots_text(run.need()) + " on one agent, and none has as many"};
    if (!could_ever_hold(run))
      return {"constraints", "its constraints leave no agents that could hold it"};
    return {"drained", "agents or slots that it needs are drained or disabled"};
  }
  if (const auto limit = full_limit(run); limit.of != run_bar::none) {
    const auto left = room(limit).value_or(0);
    const auto text = [&](const std::string& whose) {
      return "it needs " + slots_text(run.need()) + ", and " + std::to_string(std::max(0, left)) +
             " are left of " + whose;
    };
    if (limit.of == run_bar::job)
      return {"max_slots", text("the max_slots of its experiment")};
    if (limit.of == run_bar::pool)
      return {"pool_max_slots", text("the max_slots of the pool")};
    return {"quota", text(std::string("the quota of ") +
                          (limit.of == run_bar::user ? "user " : "workspace ") + limit.name)};
  }
  if (!run.kept.empty() && !run.reserved)
    return {"preempting", "those that it preempted save and exit"};
  bars lifted;
  for (const auto id : keepers_)
    if (id != run.id)
      lift(lifted, runs_.at(id).kept, pool_agent::kept);
  const bool kept_from_it = !fit_range(run).empty();
  lower(lifted);
  const bool fits_now = !fit_range(run).empty();
  if (kept_from_it && !fits_now)
    return {"reserved", "what is free is kept for another"};
  for (const auto& [shape, runs] : queue_)
    for (const auto* other : runs) {
      if (other != &run && policy_->before(*other, run))
        return {"behind", "others come first"};
      break; // the first of its shape
    }
  return {"busy", "it is next; its slots are held"};
}

std::pair<std::string, std::string> pool::aux_reason(const pool_run& run) const {
  bool allowed = false, units = false, open = false;
  for (const auto& [name, agent] : agents_)
    if (agent.present) {
      units = units || aux_of(agent) > 0;
      if (!refusal(run.terms.rules, name, agent.traits).empty())
        continue;
      allowed = true;
      open = open || !agent.drained;
    }
  if (units && !allowed)
    return {"constraints", "its constraints leave no agents that could hold it"};
  if (units && !open)
    return {"drained", "the agents that could hold it are drained or disabled"};
  return {"aux", "no agent has room for another task without slots"};
}

/// 1 is next.
std::size_t pool::position(const pool_run& run) const {
  std::size_t before = 0;
  for (const auto* other : run.slots > 0 ? waiting_ : aux_waiting_)
    before += other != &run && policy_->before(*other, run);
  return before + 1;
}

value pool::agents_for(const pool_run& run) const {
  value list = value::array();
  for (const auto& [name, agent] : agents_) {
    if (!agent.present)
      continue;
    int free = 0, kept = 0;
    for (const auto& s : agent.slots) {
      const bool own = s.keeper == run.id;
      free += s.bars == 0 || (s.bars == pool_agent::kept && own);
      kept += s.bars == pool_agent::kept && !own;
    }
    auto why = refusal(run.terms.rules, name, agent.traits);
    if (why.empty() && agent.drained)
      why = "is drained or disabled";
    if (why.empty() && run.slots == 0 && agent.aux_used >= aux_of(agent))
      why = "has no aux unit left of " + std::to_string(aux_of(agent));
    if (why.empty() && run.slots > 0 && run.terms.rules.single_node &&
        static_cast<int>(agent.slots.size()) < run.need())
      why = "has " + slots_text(static_cast<int>(agent.slots.size())) + " in all";
    if (why.empty() && run.slots > 0 && free < run.need())
      why = "has " + std::to_string(free) + " of " + std::to_string(agent.slots.size()) + " slots free" +
            (kept > 0 ? ", and keeps " + std::to_string(kept) + " for another" : "");
    const bool fits = why.empty();
    list.push_back({{"agent", name}, {"free", free}, {"fits", fits}, {"why", why}});
  }
  return list;
}

/// Who holds slots that it could use, and whether it ends or may be preempted for it.
value pool::would_free(const pool_run& run, time_point now) {
  constexpr std::size_t most = 100;
  value list = value::array();
  if (!run.waits() || run.slots == 0)
    return list;
  std::set<allocation_id> givers;
  if (const auto source = policy_->victims(run, running_, jobs_, now))
    for (auto* victim = source->next(); victim && givers.size() < most; victim = source->next())
      givers.insert(victim->id);
  std::set<allocation_id> seen;
  for (const auto& [name, agent] : agents_) {
    if (!agent.present || !refusal(run.terms.rules, name, agent.traits).empty())
      continue;
    for (std::size_t i = 0; i < agent.slots.size() && list.size() < most; ++i) {
      const auto id = agent.slots[i].holder;
      if (!id || !agent.open(i) || !seen.insert(id).second)
        continue;
      const auto& holder = runs_.at(id);
      const bool preempted = givers.contains(id) || holder.state == pool_run::phase::stopping;
      value agents = value::array();
      for (const auto& part : holder.on)
        agents.push_back(part.agent);
      const bool known = holder.since != time_point{};
      list.push_back(
        {{"allocation", to_string(id)},
         {"agents", std::move(agents)},
         {"slots", holder.held()},
         {"how", preempted ? "preempted" : "ends"},
         {"costSeconds",
          preempted && known ? value(holder.held() * seconds_between(holder.since, now)) : value()},
         {"expectedSeconds", value()}});
    }
  }
  return list;
}

value pool::explain(allocation_id id, time_point now) {
  const auto it = runs_.find(id);
  if (it == runs_.end())
    return {};
  const auto& run = it->second;
  const auto [code, text] = reason(run);
  return {{"reason", {{"code", code}, {"text", text}}},
          {"position", run.waits() ? value(position(run)) : value()},
          {"agents", agents_for(run)},
          {"wouldFree", would_free(run, now)},
          {"reservation", run.reserved
                            ? value{{"since", seconds_between({}, *run.reserved)}, {"on", shown(run.kept)}}
                            : value()}};
}

value pool::details() {
  value jobs = value::array(), queue = value::array(), quotas = value::array();
  for (const auto& [id, job] : jobs_)
    jobs.push_back({{"experiment", id.value},
                    {"priority", priority_of(job)},
                    {"weight", job.terms.weight},
                    {"maxSlots", job.terms.max_slots < 0 ? value() : value(job.terms.max_slots)},
                    {"share", settings_.scheduler == scheduler_kind::fair ? value(job.share) : value()},
                    {"used", job.held},
                    {"waiting", job.wanted}});
  std::size_t position = 0;
  for (const auto* run : waiting_)
    queue.push_back({{"position", ++position},
                     {"allocation", to_string(run->id)},
                     {"experiment", run->job->terms.job.value},
                     {"slots", run->slots},
                     {"priority", priority_of(*run->job)},
                     {"weight", run->job->terms.weight},
                     {"user", run->job->terms.user},
                     {"since", to_rfc3339(run->since)},
                     {"reason", reason(*run).first}});
  for (const auto& q : settings_.quotas) {
    const auto used = used_.find(q.user.empty() ? limit_key{run_bar::workspace, q.workspace, {}}
                                                : limit_key{run_bar::user, q.user, {}});
    quotas.push_back({{q.user.empty() ? "workspace" : "user", q.user.empty() ? q.workspace : q.user},
                      {"maxSlots", q.max_slots},
                      {"used", used == used_.end() ? 0 : used->second}});
  }
  return {{"scheduler", name(settings_.scheduler)},
          {"preemption", settings_.preemption},
          {"reserved", reserved_slots()},
          {"quotas", quotas},
          {"jobs", jobs},
          {"waiting", queue}};
}

} // namespace troupe
