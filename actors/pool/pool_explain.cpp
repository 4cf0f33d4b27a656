// Explains why a run waits. The answer comes from the same indexes, limits and fitting that place the run.

#include "actors/pool/pool.hpp"
#include "actors/pool/stays_drained.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

namespace troupe {
namespace {

std::string slots_text(int n) { return std::to_string(n) + (n == 1 ? " slot" : " slots"); }

std::string name_of(const pool_run& run) {
  return std::string(name(run.id.task.kind())) + " " + to_string(run.id.task);
}

std::int64_t seconds_between(time_point from, time_point to) {
  return std::chrono::duration_cast<std::chrono::seconds>(to - from).count();
}

/// Adds a field to an object whose fields so far have smaller keys. In a list of hundreds of objects this
/// costs a third of what a braced list of fields does, which makes an array of each field first.
template <class T>
void append(value& object, const char* key, T&& x) {
  auto& fields = object.get_ref<value::object_t&>();
  fields.emplace_hint(fields.end(), key, std::forward<T>(x));
}

value or_null(time_point at) { return at == time_point{} ? value() : value(to_rfc3339(at)); }

value shown(const agent_parts& on) {
  value list = value::array();
  for (const auto& part : on)
    list.push_back(
      {{"agent", part.agent->now.name}, {"slots", std::vector<int>(part.slots.begin(), part.slots.end())}});
  return list;
}

} // namespace

/// Whether the present agents could hold the run if no slot were held, drained or disabled.
bool pool::could_ever_hold(const pool_run& run) const {
  const bool all_open = open_ == total_; // nothing is drained or disabled, so the indexes tell the same
  return all_open && run.slots > 0 ? could_hold(run) : fits_bare(run, run.terms.rules);
}

bool pool::fits_bare(const pool_run& run, const placement_rules& rules) const {
  return fits_with(run, rules, [](const pool_agent& agent) {
    return agent.present ? static_cast<int>(agent.slots.size()) : 0;
  });
}

/// Whether agents with as many usable slots as `slots_of` says could hold the run if no run held any of them.
bool pool::fits_with(const pool_run& run, const placement_rules& rules,
                     const std::function<int(const pool_agent&)>& slots_of) const {
  std::map<std::string, room_index> groups;
  std::vector<agent_room> rooms;
  rooms.reserve(agents_.size());
  for (const auto& [name, agent] : agents_) {
    const int usable = slots_of(agent);
    if (usable <= 0 || !refusal(rules, name, agent.traits).empty())
      continue;
    const auto label = rules.same_label.empty() ? std::string() : agent.traits.labels.at(rules.same_label);
    rooms.push_back({name, static_cast<int>(agent.slots.size()), usable, true});
    groups.try_emplace(label, settings_.fitting).first->second.insert(rooms.back());
  }
  for (const auto& [label, group] : groups)
    if (group.holds(run.need(), run.slots, rules.single_node, settings_.gangs))
      return true;
  return false;
}

/// The agents that are away and that the run lacks; none if the present agents could hold it. The pool knows
/// only the names of agents that have not registered since the master's start. They count if the run names
/// them, and while their leases are not over.
pool::away_agents pool::away_for(const pool_run& run, time_point now) const {
  const auto& rules = run.terms.rules;
  if (run.slots > 0 && could_ever_hold(run))
    return {};
  std::vector<std::string> alone, unseen, returning;
  std::vector<const pool_agent*> others;
  placement_rules named; // all that can be checked of an agent of which only the name is known
  named.agents = rules.agents;
  named.not_agents = rules.not_agents;
  for (const auto& [name, agent] : agents_) {
    const bool may = refusal(rules, name, agent.traits).empty();
    const bool holds = run.slots > 0 ? std::ssize(agent.slots) >= run.need() : aux_of(agent) > 0;
    const auto& asked = rules.agents;
    if (agent.present && run.slots == 0 && may && holds)
      return {};
    if (agent.present || !may_return(agent))
      continue;
    if (agent.back_until > now && (agent.seen ? may : refusal(named, name, {}).empty()))
      returning.push_back(name);
    if (agent.seen && may && holds)
      alone.push_back(name);
    else if (agent.seen && may)
      others.push_back(&agent);
    else if (!agent.seen && std::find(asked.begin(), asked.end(), name) != asked.end())
      unseen.push_back(name);
  }
  away_agents out;
  if (!alone.empty())
    out = {away_agents::each, std::move(alone), {}};
  else if (auto together = away_together(run, run.slots == 0 ? decltype(others)() : others); // one agent
           !together.empty())
    out = {away_agents::together, std::move(together), {}};
  else
    out = {away_agents::asked_for, std::move(unseen), {}};
  std::erase_if(returning, [&](const std::string& name) { // one that has been seen and would not help
    return agents_.at(name).seen && std::find(out.names.begin(), out.names.end(), name) == out.names.end();
  });
  out.returning = std::move(returning);
  return out;
}

/// Those of `away` that together with the present agents could hold the run; none if all could not. Where
/// these are few, none of them is superfluous.
std::vector<std::string> pool::away_together(const pool_run& run,
                                             const std::vector<const pool_agent*>& away) const {
  constexpr std::size_t most_tried = 8;                       // each try looks at all agents of the pool
  std::set<const pool_agent*> with(away.begin(), away.end()); // never iterated
  const auto hold = [&] {
    return fits_with(run, run.terms.rules, [&](const pool_agent& agent) {
      return agent.present || with.contains(&agent) ? static_cast<int>(agent.slots.size()) : 0;
    });
  };
  if (away.empty() || !hold())
    return {};
  if (away.size() <= most_tried) {
    auto smallest_first = away;
    std::stable_sort(smallest_first.begin(), smallest_first.end(),
                     [](const auto* a, const auto* b) { return a->slots.size() < b->slots.size(); });
    for (const auto* one : smallest_first) {
      with.erase(one);
      if (!hold())
        with.insert(one);
    }
  }
  std::vector<std::string> names;
  for (const auto* one : away)
    if (with.contains(one))
      names.push_back(one->now.name);
  return names;
}

std::string pool::away_text(const pool_run& run, time_point now) const {
  auto [how, names, returning] = away_for(run, now);
  std::string back;
  if (!returning.empty()) {
    time_point until;
    for (const auto& name : returning)
      until = std::max(until, agents_.at(name).back_until);
    back = " expected back within " +
           std::to_string(std::chrono::ceil<std::chrono::seconds>(until - now).count()) + " s";
  }
  const auto is = [](const auto& list) { return list.size() == 1 ? " is" : " are"; };
  const auto agents = [](const auto& list) {
    return (list.size() == 1 ? "; agent " : "; agents ") + names_text(list);
  };
  const bool all_return = std::includes(returning.begin(), returning.end(), names.begin(), names.end());
  if (all_return && !names.empty())
    std::erase_if(returning, [&](const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    });
  const auto others = returning.empty() ? "" : agents(returning) + is(returning) + back;
  if (names.empty())
    return others;
  const bool one = names.size() == 1;
  const char* what = how == away_agents::asked_for ? "which it asks for"
                     : how == away_agents::each
                       ? (one ? "which could hold it" : "each of which could hold it")
                     : one ? "with which the pool could hold it"
                           : "with which together the pool could hold it";
  return agents(names) + ", " + what + "," + is(names) + (all_return ? back : " away") +
         (one && stays_drained(agents_, names.front()) ? " and drained" : "") + others;
}

/// Which agents that the run may use get no new work. Those that leave for another pool are named, and those
/// whose instances end.
std::string pool::closed_text(const pool_run& run) const {
  constexpr std::size_t most = 5;
  std::vector<const pool_agent*> leaving;
  std::vector<std::string> ended;
  bool others = false;
  for (const auto& [name, agent] : agents_) {
    if (!agent.present || !refusal(run.terms.rules, name, agent.traits).empty())
      continue;
    if (!agent.leaves_for.empty())
      leaving.push_back(&agent);
    else if (supply_.ended.contains(name))
      ended.push_back(name);
    else
      others = others || agent.drained || !agent.disabled.empty();
  }
  const auto ends =
    "the instances of agents that it needs end: " + names_text(ended); // where there are such agents
  if (leaving.empty() && !others && !ended.empty())
    return ends;
  const auto ordered =
    "agents or slots that it needs are drained or disabled" + (ended.empty() ? "" : "; " + ends);
  if (leaving.empty())
    return ordered;
  auto text = others ? ordered + ", or leave this pool: " : "agents that it needs leave this pool: ";
  for (std::size_t i = 0; i < leaving.size() && i < most; ++i)
    text += (i ? ", " : "") + leaving[i]->now.name + " for " + leaving[i]->leaves_for;
  return text +
         (leaving.size() > most ? " and " + std::to_string(leaving.size() - most) + " more" : std::string());
}

/// Whether the end of other runs cannot help: neither the present agents, when empty, nor instances that may
/// come hold the run, or a limit is below what the run needs.
bool pool::never_fits(const pool_run& run) const {
  if (!could_hold(run) && !is_launched_for(run))
    return true;
  const auto limits = limits_of(run);
  return std::any_of(limits.begin(), limits.end(), [&](const limit_key& limit) {
    const auto most = most_of(limit);
    return most && *most < run.need();
  });
}

/// Why the run is killed. What was disabled may be enabled again before the run has ended.
std::string pool::killed_text(const pool_run& run) {
  const auto disabled = disabled_text(run);
  return (disabled.empty() ? "its agent or its slots were disabled" : disabled) + ", so it is killed";
}

std::vector<pool::reason_text> pool::reasons(const pool_run& run, const pool_run* next, time_point now) {
  switch (run.state) {
  case pool_run::phase::holding:
    return {{"running", "it holds " + slots_text(run.held())}};
  case pool_run::phase::stopping:
    return {{"stopping", (run.killed ? killed_text(run) : "it was preempted, and saves") +
                           (heir_of(run) ? "; its slots go to " + name_of(*heir_of(run)) : "")}};
  case pool_run::phase::waiting:
    break;
  }
  const bool any =
    std::any_of(agents_.begin(), agents_.end(), [](const auto& x) { return x.second.present; });
  const auto may_fill_instances =
    [&] { // within its limits; one that is below its need is a reason of its own
      int most = run.slots;
      for (const auto& limit : limits_of(run))
        most = std::min(most, most_of(limit).value_or(most));
      return run.slots == 0 || most < run.need() || this->launched_for(run, most) > 0;
    };
  const bool launched_for = is_launched_for(run) && may_fill_instances();
  const auto supply = launched_for ? supply_reason(run) : std::nullopt;
  if (!any && !launched_for && (most_supplied() == 0 || run.guest)) // no instances come for a guest
    return {{"no_agents", "the pool has no agents" + away_text(run, now)}};
  if (!any && launched_for && !supply)
    return {{"no_agents", "the agents of all instances of the pool are away" + away_text(run, now)}};
  if (run.slots == 0 && supply)
    return {*supply};
  if (run.slots == 0 && any) {
    auto why = aux_reason(run);
    return {{why.first, why.second + (why.first == "constraints" ? away_text(run, now) : "")}};
  }
  if (!launched_for && (run.slots == 0 || !could_hold(run))) { // for a run without slots no agent is present
    auto why = impossible_reason(run);
    return {{why.first, why.second + away_text(run, now)}};
  }
  if (launched_for && !supply && run.slots > 0 && !could_hold(run)) { // no further instance may come
    if (could_ever_hold(run))
      return {{"drained", closed_text(run)}};
    return {{"no_agents", "no further instance may come, and those that are there could not hold it" +
                            away_text(run, now)}};
  }
  std::vector<reason_text> all;
  bool room_is_kept = false; // the room below a limit is kept for a run with a reservation
  for (const auto& limit : full_limits(run)) {
    const auto left = room(limit).value_or(0);
    if (left >= run.need()) {
      room_is_kept = true;
      continue;
    }
    const auto text = [&](const std::string& whose) {
      const auto needs = "it needs " + slots_text(run.need()) + ", and ";
      if (const auto most = most_of(limit); most && *most < run.need())
        return needs + whose + " is " + std::to_string(*most); // the run waits until the limit is raised
      return needs + std::to_string(std::max(0, left)) + (left == 1 ? " is left of " : " are left of ") +
             whose;
    };
    if (limit.of == run_bar::job)
      all.push_back({"max_slots", text(std::string("the max_slots of its ") +
                                       (run.id.task.is_trial() ? "experiment" : "task"))});
    else if (limit.of == run_bar::pool)
      all.push_back({"pool_max_slots", text("the max_slots of the pool")});
    else
      all.push_back({"quota", text(std::string("the quota of ") +
                                   (limit.of == run_bar::user ? "user " + run.job->terms.user
                                                              : "workspace " + run.job->terms.workspace))});
  }
  const bool fits_now = !fit_range(run).empty();
  // A run that waits for a limit, or that fits behind others, could not use more agents.
  if (supply && all.empty() && !room_is_kept && !fits_now &&
      this->launched_for(run, std::min(run.slots, most_within_limits(run))) > 0)
    all.push_back(*supply);
  if (!run.kept.empty() && !run.reserved && !run.loose) {
    all.push_back({"preempting", "those that it preempted save and exit"});
    return all;
  }
  bars lifted;
  for (const auto id : keepers_)
    if (id != run.id)
      lift(lifted, runs_.at(id).kept, pool_agent::kept);
  const bool kept_from_it = !fit_range(run).empty();
  lower(lifted);
  if (room_is_kept)
    all.push_back({"reserved", "what is left below a limit is kept for another"});
  else if (kept_from_it && !fits_now)
    all.push_back({"reserved", "what is free is kept for another"});
  if (const auto* ahead = ahead_of(run, next))
    all.push_back({"behind", "waits for " + slots_text(run.need()) + " behind " + name_of(*ahead)});
  else if (all.empty())
    all.push_back({"busy", (next == &run ? "it is next, and waits for " : "waits for ") +
                             slots_text(run.need()) + ", which others hold"});
  return all;
}

/// Why neither the present agents, when empty, nor instances that may come hold the run. The reasons are
/// tried in this order: size, a single agent, constraints, drains. The first without which the run would fit
/// is given.
pool::reason_text pool::impossible_reason(const pool_run& run) const {
  const auto needs = "it needs " + slots_text(run.need());
  const auto could = [&](const placement_rules& rules) {
    return fits_bare(run, rules) || (!run.guest && supply_could_hold(run, rules));
  };
  placement_rules rules;
  if (!could(rules)) {
    const auto most = std::max<std::int64_t>(total_, run.guest ? 0 : most_supplied());
    if (run.need() <= most)
      return {"too_large", needs + ", and no whole agents of the pool make up as many"};
    return {"too_large",
            needs + ", and the pool " + (most > total_ ? "grows to " : "has ") + std::to_string(most)};
  }
  if (supply_can_hold(run) && !run.guest && !could_ever_hold(run))
    return {"too_large", needs + ", and instances start for whole multiples of " +
                           std::to_string(supply_.instance_slots) + " alone"};
  rules.single_node = run.terms.rules.single_node;
  if (!could(rules))
    return {"single_node", needs + " on one agent, and none has as many"};
  if (!could_ever_hold(run))
    return {"constraints", "its constraints leave no agents that could hold it"};
  return {"drained", closed_text(run)};
}

/// What the provider does for a run for which instances are launched. Nothing where the provider has launched
/// all that it may, and its instances could hold the run.
std::optional<pool::reason_text> pool::supply_reason(const pool_run& run) const {
  if (supply_.instances >= supply_.max_instances && supply_.starting == 0 &&
      (run.slots == 0 ? aux_reason(run).first == "aux" : could_hold(run)))
    return std::nullopt;
  if (!supply_.error.empty())
    return reason_text{"provider_failed", "the provider of the pool failed: " + supply_.error};
  if (supply_.starting > 0)
    return reason_text{"scaling", std::to_string(supply_.starting) +
                                    (supply_.starting == 1 ? " instance of " : " instances of ") +
                                    slots_text(supply_.instance_slots) +
                                    (supply_.starting == 1 ? " starts" : " start")};
  if (supply_.instances >= supply_.max_instances)
    return std::nullopt;
  if (supply_.instances + supply_.stopping >= supply_.max_instances) // the provider may have no more of them
    return reason_text{"scaling", std::to_string(supply_.stopping) +
                                    (supply_.stopping == 1 ? " instance ends" : " instances end") +
                                    " before the provider is asked for others"};
  return reason_text{"scaling", "the provider is asked for instances"};
}

/// The first run of the queue in turn. A run above a limit, which competes until a pass sets it aside, holds
/// nobody up and does not count, nor do those of its job and shape.
const pool_run* pool::next_in_turn() const {
  const pool_run* next = nullptr;
  for (const auto& [id, job] : jobs_) {
    if (next && policy_->job_before(*next->job, job))
      continue;
    for (const auto& line : job.queue)
      if (const auto* first = line.runs->begin()->run;
          (!next || policy_->before(*first, *next)) && barred_by(*first).of == run_bar::none)
        next = first;
  }
  return next;
}

const pool_run* pool::ahead_of(const pool_run& run, const pool_run* next) const {
  return next && next != &run && policy_->before(*next, run) ? next : nullptr;
}

pool::reason_text pool::aux_reason(const pool_run& run) const {
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
    return {"drained", closed_text(run)};
  return {"aux", "no agent has room for another task without slots"};
}

/// Whether a limit is full for these runs of one job and shape, or no agents could hold them.
bool pool::is_held_back(const ranked_runs::line& line) const {
  const auto& first = *line.begin()->run;
  return first.bar.of != run_bar::none || barred_by(first).of != run_bar::none;
}

/// The place of the run in the queue; 1 is next. Runs that are held back come after all others.
std::size_t pool::position(const pool_run& run) const {
  if (run.slots == 0)
    return (run.guest ? aux_waiting_.size() : aux_waiting_.before(run)) + 1;
  struct waiting_job {
    std::vector<const ranked_runs::line*> aside;
    std::size_t back = 0; // number of its runs that are held back
  };
  // Only these jobs have runs that are held back. All others are counted without a look at their runs.
  std::map<const pool_job*, waiting_job> some; // never iterated, as the order of pointers means nothing
  std::vector<const ranked_runs::line*> lines;
  for (const auto& [key, queue] : aside_)
    for (const auto& [shape, runs] : queue)
      runs.collect_lines(lines);
  for (const auto* line : lines) {
    auto& of = some[line->begin()->run->job];
    of.aside.push_back(line);
    of.back += is_held_back(*line) ? line->size() : 0;
  }
  for (const auto& [id, job] : jobs_)
    if (!unlimited(job))
      for (const auto& line : job.queue)
        if (is_held_back(*line.runs))
          some[&job].back += line.runs->size();

  const auto lines_of = [&](const pool_job& job) {
    std::vector<const ranked_runs::line*> all;
    for (const auto& line : job.queue)
      all.push_back(line.runs);
    if (const auto it = some.find(&job); it != some.end())
      all.insert(all.end(), it->second.aside.begin(), it->second.aside.end());
    return all;
  };
  bool own = false; // whether the run is held back
  if (!run.guest)
    for (const auto* line : lines_of(*run.job))
      own = own || (line->contains({run.rank.started, const_cast<pool_run*>(&run)}) && is_held_back(*line));

  std::size_t before = 0;
  for (const auto& [id, job] : jobs_) {
    const auto it = some.find(&job);
    const auto back = it == some.end() ? 0 : it->second.back;
    const auto front = static_cast<std::size_t>(job.waits) - back;
    if (run.guest) {
      before += back + front;
      continue;
    }
    if (own)
      before += front;
    const bool of_rank = policy_->ranked() && !(job.rank < run.job->rank) && !(run.job->rank < job.rank);
    if (&job == run.job || of_rank) {
      for (const auto* line : lines_of(job))
        if (is_held_back(*line) == own)
          before += static_cast<std::size_t>(
            std::count_if(line->begin(), line->end(), [&](const auto& x) { return x.run->rank < run.rank; }));
    } else if (policy_->ranked() ? job.rank < run.job->rank : policy_->job_before(job, *run.job)) {
      before += own ? back : front;
    }
  }
  return before + 1;
}

/// The present agents, by name. Where there are more than `most`, those are chosen that the run may use, with
/// the most free slots first; of equal agents the first ones by name.
std::vector<const pool_agent*> pool::agents_shown(const pool_run& run, std::ptrdiff_t most) const {
  std::vector<const pool_agent*> shown;
  const auto by_free = [](const pool_agent* a, const pool_agent* b) {
    return a->now.free != b->now.free ? a->now.free > b->now.free : a->now.name < b->now.name;
  };
  const auto by_name = [](const pool_agent* a, const pool_agent* b) { return a->now.name < b->now.name; };
  // Mostly the agents that the run may use suffice: those with free slots are in an index, and of the others
  // the first ones are found soon.
  for (const auto& [label, group] : run.view->groups)
    for (const auto* room : group.now.largest(static_cast<int>(most)))
      shown.push_back(static_cast<const pool_agent::room*>(room)->of);
  std::sort(shown.begin(), shown.end(), by_free);
  if (std::ssize(shown) > most)
    shown.resize(static_cast<std::size_t>(most));
  const auto may_use = [&](const std::string& name, const pool_agent& agent) {
    return run.view->rules == placement_rules{} || refusal(run.terms.rules, name, agent.traits).empty();
  };
  for (auto it = agents_.begin(); it != agents_.end() && std::ssize(shown) < most; ++it)
    if (it->second.present && it->second.now.free == 0 && may_use(it->first, it->second))
      shown.push_back(&it->second);
  std::vector<const pool_agent*> refused;
  if (std::ssize(shown) < most)
    for (const auto& [name, agent] : agents_)
      if (agent.present && !may_use(name, agent))
        refused.push_back(&agent);
  const auto count = std::min(std::ssize(refused), most - std::ssize(shown));
  std::partial_sort(refused.begin(), refused.begin() + count, refused.end(), by_free);
  shown.insert(shown.end(), refused.begin(), refused.begin() + count);
  std::sort(shown.begin(), shown.end(), by_name);
  return shown;
}

value pool::agents_for(const pool_run& run, time_point now) const {
  constexpr std::ptrdiff_t most = 200;
  value list = value::array();
  list.get_ref<value::array_t&>().reserve(most);
  for (const auto* one : agents_shown(run, most)) {
    const auto& agent = *one;
    int free = 0, kept = 0;
    for (const auto& s : agent.slots) {
      const bool own = s.keeper == &run;
      free += s.bars == 0 || (s.bars == pool_agent::kept && own);
      kept += s.bars == pool_agent::kept && !own;
    }
    auto why = refusal(run.terms.rules, agent.now.name, agent.traits);
    if (why.empty() && agent.drained)
      why = !agent.leaves_for.empty()                ? "leaves for pool " + agent.leaves_for
            : supply_.ended.contains(agent.now.name) ? "is on an instance that ends"
                                                     : "is drained or disabled";
    if (why.empty() && run.slots == 0 && agent.aux_used >= aux_of(agent))
      why = "has no aux unit left of " + std::to_string(aux_of(agent));
    if (why.empty() && run.slots > 0 && run.terms.rules.single_node &&
        static_cast<int>(agent.slots.size()) < run.need())
      why = "has " + slots_text(static_cast<int>(agent.slots.size())) + " in all";
    if (why.empty() && run.slots > 0 && free < run.need())
      why = "has " + std::to_string(free) + " of " + std::to_string(agent.slots.size()) + " slots free" +
            (kept > 0 ? ", and keeps " + std::to_string(kept) + " for another" : "");
    const bool fits = why.empty();
    auto& shown = list.emplace_back(value::object());
    append(shown, "agent", agent.now.name);
    append(shown, "fits", fits);
    append(shown, "free", free);
    append(shown, "why", std::move(why));
  }
  const auto away = run.waits() ? away_for(run, now) : away_agents();
  std::set<std::string> names(away.names.begin(), away.names.end());
  names.insert(away.returning.begin(), away.returning.end());
  for (const auto& name : names)
    if (std::ssize(list) < most)
      list.push_back({{"agent", name},
                      {"free", 0},
                      {"fits", false},
                      {"why", agents_.at(name).back_until > now ? "is away, and expected back" : "is away"}});
  return list;
}

bool pool::is_preemptible(const pool_run& run) const { return settings_.preempts() && run.terms.preemptible; }

/// The run for which slots of this one are kept; null: none.
const pool_run* pool::heir_of(const pool_run& run) {
  for (const auto& part : run.on)
    for (const int slot : part.slots)
      if (const auto& s = part.agent->slots[static_cast<std::size_t>(slot)]; s.holder == &run && s.keeper)
        return s.keeper;
  return nullptr;
}

/// The runs that hold slots which this run could use or, where it waits for a limit, slots that count against
/// the limit. For each: whether it would be preempted, and when if not now, or was and saves, and for which
/// run; what it would lose; and, where only a more urgent run preempts it, the least urgent such priority.
value pool::would_free(const pool_run& run, time_point now) {
  constexpr std::size_t most = 100;
  auto limits = full_limits(run);
  std::erase_if(limits, [&](const limit_key& limit) { return room(limit).value_or(0) >= run.need(); });
  const auto counts = [&](const pool_run& holder) {
    const auto of = limits_of(holder);
    return std::find_first_of(limits.begin(), limits.end(), of.begin(), of.end()) != limits.end();
  };
  value list = value::array();
  if (!run.waits() || run.slots == 0 || never_fits(run))
    return list;
  const auto victims = victims_of(run, now);
  std::set<allocation_id> seen;
  for (const auto& [name, agent] : agents_) {
    if (list.size() >= most)
      break;
    if (!agent.present || (limits.empty() && !refusal(run.terms.rules, name, agent.traits).empty()))
      continue;
    for (std::size_t i = 0; i < agent.slots.size() && list.size() < most; ++i) {
      if (!agent.slots[i].holder)
        continue;
      const auto& holder = *agent.slots[i].holder;
      const auto id = holder.id;
      if (!(limits.empty() ? agent.open(i) : counts(holder)) || !seen.insert(id).second)
        continue;
      const bool stopping = holder.state == pool_run::phase::stopping;
      const auto young = victims.later.find(id); // it is preempted once it has run for min_run
      const bool is_young = young != victims.later.end();
      const bool preempted = victims.now.contains(id) || is_young || stopping;
      const auto* heir = stopping ? heir_of(holder) : nullptr;
      value agents = value::array();
      agents.get_ref<value::array_t&>().reserve(holder.on.size());
      for (const auto& part : holder.on)
        agents.push_back(part.agent->now.name);
      const bool known = holder.since != time_point{};
      const int from = priority_of(*holder.job) - 1; // the least urgent priority that preempts the holder
      const bool by_priority = !preempted && settings_.scheduler == scheduler_kind::priority &&
                               is_preemptible(holder) && holder.job != run.job && from >= 1 &&
                               from < priority_of(*run.job);
      auto& shown = list.emplace_back(value::object());
      append(shown, "agents", std::move(agents));
      append(shown, "allocation", to_string(id));
      append(shown, "costSeconds",
             (preempted || is_preemptible(holder)) && known
               ? holder.held() * seconds_between(holder.since, now)
               : 0);
      append(shown, "expectedSeconds", is_young ? value(std::ceil(young->second)) : value());
      append(shown, "fromPriority", by_priority ? value(from) : value());
      append(shown, "how", preempted ? "preempted" : "ends");
      append(shown, "preemptedFor", heir ? value(to_string(heir->id)) : value());
      append(shown, "slots", holder.held());
      append(shown, "stopping", stopping);
    }
  }
  return list;
}

value pool::explain(allocation_id id, time_point now) {
  const auto it = runs_.find(id);
  if (it == runs_.end())
    return {};
  refresh_turns();
  return explain(it->second, reasons(it->second, next_in_turn(), now).front(), now);
}

value pool::explain(const pool_run& run, const reason_text& reason, time_point now) {
  auto text = reason.second;
  const bool is_held = reason.first == "busy" || reason.first == "behind";
  if (const auto spared = is_held ? spared_for(run, now) : std::vector<const pool_run*>(); !spared.empty()) {
    std::vector<std::string> names;
    for (const auto* one : spared)
      names.push_back(name_of(*one));
    text += "; " + names_text(names) +
            (names.size() == 1 ? " is not preempted, as its experiment would fall below its share of " +
                                   slots_text(spared.front()->job->share)
                               : " are not preempted, as their experiments would fall below their shares");
  }
  if (reason.first == "provider_failed" && supply_.retry_at > now)
    text += "; it is tried again in " +
            std::to_string(std::chrono::ceil<std::chrono::seconds>(supply_.retry_at - now).count()) + " s";
  return {{"reason", {{"code", reason.first}, {"text", std::move(text)}}},
          {"position", run.waits() ? value(position(run)) : value()},
          {"agents", agents_for(run, now)},
          {"wouldFree", would_free(run, now)},
          {"reservation", run.reserved
                            ? value{{"since", seconds_between({}, *run.reserved)}, {"on", shown(run.kept)}}
                            : value()}};
}

// ---- what others know of the holders, and what would help

/// The runs of jobs above their shares that are not preempted for this run, as without one of them its job
/// would be below its share. None where the run may not preempt, or where others can be preempted for it.
std::vector<const pool_run*> pool::spared_for(const pool_run& run, time_point now) {
  std::vector<const pool_run*> spared;
  if (policy_->ranked() || !run.waits() || run.slots == 0 || !policy_->may_preempt(run))
    return spared;
  if (const auto victims = victims_of(run, now); !victims.now.empty() || !victims.later.empty())
    return spared;
  for (const auto& [id, job] : jobs_)
    if (const int held = job.held - job.stopping; held > job.share)
      if (const auto* line = running_.line_of(job))
        for (const auto& one : *line)
          if (held - one.run->held() < job.share)
            spared.push_back(one.run);
  return spared;
}

/// Those who may be preempted for the run, now or once they have run for min_run. In a pool of shares as many
/// of a job as leave it its share.
pool::possible_victims pool::victims_of(const pool_run& run, time_point now) {
  constexpr std::size_t most = 100;
  possible_victims out;
  if (!run.kept.empty() && !run.reserved)
    return out; // those that stop already suffice
  const auto source = policy_->victims(run, running_, jobs_, now);
  if (!source)
    return out;
  std::vector<const pool_run*> young;
  source->helps = [&](const pool_run& one) {
    young.push_back(&one);
    return false;
  };
  std::map<const pool_job*, int> taken; // slots of each job's victims; never iterated
  for (auto* victim = source->next(); victim && out.now.size() < most; victim = source->next()) {
    out.now.insert(victim->id);
    taken[victim->job] += victim->held();
  }
  std::sort(young.begin(), young.end(), [](const auto* a, const auto* b) {
    return std::tie(a->since, a->id) < std::tie(b->since, b->id);
  });
  for (const auto* one : young) {
    const auto& job = *one->job;
    if (!policy_->ranked() && job.held - job.stopping - taken[&job] - one->held() < job.share)
      continue;
    taken[&job] += one->held();
    out.later.emplace(one->id, std::chrono::duration<double>(one->since + settings_.min_run - now).count());
  }
  return out;
}

/// Whether another run that waits may take what becomes free below the limits of `lacks` before this run has
/// enough of it: `first`: it comes before this run; `smaller`: it needs less, and passes.
std::pair<bool, bool> pool::rivals_below(const pool_run& run, const std::vector<lack>& lacks) const {
  bool first = false, smaller = false;
  std::vector<const ranked_runs::line*> lines;
  for (const auto* runs : lacks.empty() ? std::vector<const ranked_runs*>() : queues())
    runs->collect_lines(lines);
  for (const auto* line : lines) {
    const auto& other = *line->begin()->run;
    const bool earlier = policy_->before(other, run), less = other.need() < run.need();
    if (&other == &run || (!earlier && !less) ||
        std::none_of(lacks.begin(), lacks.end(), [&](const lack& x) { return is_under(other, x.key); }) ||
        never_fits(other))
      continue;
    first = first || earlier;
    smaller = smaller || less;
  }
  return {first, smaller};
}

/// In a pool of turns: a run of another job whose turn comes before this run once the runs `ended` have
/// ended, as its job has less then; null: none.
const pool_run* pool::comes_before(const pool_run& run, const std::vector<const pool_run*>& ended) const {
  if (policy_->ranked())
    return nullptr;
  std::map<const pool_job*, int> released; // never iterated
  for (const auto* holder : ended)
    released[holder->job] += holder->held();
  const pool_run* first = nullptr;
  for (const auto* holder : ended) {
    const auto& job = *holder->job;
    const int count = std::exchange(released[&job], 0); // each job is looked at once
    if (count == 0 || &job == run.job || job.queue.empty())
      continue;
    pool_job later; // the job once these runs have ended: only the fields that decide its turn
    later.held = job.held - count;
    later.stopping = job.stopping;
    later.claimed = job.claimed;
    later.share = job.share;
    later.terms = job.terms;
    const auto& one = *std::min_element(job.queue.begin(), job.queue.end(), [](const auto& a, const auto& b) {
                         return a.first < b.first;
                       })->first.run;
    if (policy_->job_before(later, *run.job) && (!first || one.id < first->id))
      first = &one;
  }
  return first;
}

/// When enough of the holders will have ended. It is known only where nobody comes before the run and the
/// outlooks of the holders are known. There is no estimate where preemption frees slots before the holders
/// end, as it is not known how long a preempted run saves; and none where another run gets these slots when
/// they become free: `rival` is that run.
value pool::estimate(const pool_run& run, const pool_run* next, const std::vector<run_outlook>& outlooks,
                     time_point now, const pool_run*& rival) {
  if (!run.waits() || run.slots == 0 || (!run.kept.empty() && !run.reserved) ||
      (!run.reserved && ahead_of(run, next)) || never_fits(run))
    return {};
  std::vector<lack> lacking;
  for (const auto& key : full_limits(run))
    lacking.push_back({key, run.need() - room_for(run, key, false).value_or(run.need())});
  const auto [first, smaller] = rivals_below(run, lacking);
  if (first)
    return {};
  // While the run waits for a limit, others may take what becomes free until the last holder has ended.
  const bool shared = !lacking.empty() && (smaller || (next && next != &run));
  const auto enough = [&](std::vector<run_outlook> ends) {
    std::sort(ends.begin(), ends.end(), [](const auto& a, const auto& b) {
      return std::tie(a.seconds, a.allocation) < std::tie(b.seconds, b.allocation);
    });
    auto lacks = lacking;
    bars lifted;
    lift(lifted, run.kept, pool_agent::kept); // the run may use its own reservation
    std::optional<run_outlook> last;
    for (const auto& x : ends) {
      if (shared) {
        lacks = lacking;
        lower(std::exchange(lifted, {}));
        lift(lifted, run.kept, pool_agent::kept);
      }
      const auto& holder = runs_.at(x.allocation);
      lift(lifted, holder.on, pool_agent::held);
      give(lacks, holder, 1);
      if (is_lacking(lacks) || fit(run, run.need()).empty())
        continue;
      last = x;
      break;
    }
    lower(lifted);
    return last;
  };
  auto ends = outlooks;
  std::erase_if(ends, [&](const run_outlook& x) {
    const auto it = runs_.find(x.allocation);
    return x.seconds < 0 || it == runs_.end() || it->second.state != pool_run::phase::holding;
  });
  // Slots of a holder below a limit go to a run before this one that waits for that limit.
  for (const auto& [key, shapes] : aside_)
    if (key.of != run_bar::impossible && std::any_of(shapes.begin(), shapes.end(), [&](const auto& one) {
          const auto* first = one.second.first();
          return first && first != &run && policy_->before(*first, run);
        }))
      std::erase_if(ends, [&](const run_outlook& x) { return is_under(runs_.at(x.allocation), key); });
  const auto found = enough(ends);
  if (!found)
    return {};
  const auto after = std::chrono::duration_cast<duration>(std::chrono::duration<double>(found->seconds));
  if (!run.reserved && !(was_passed(run) && run.since + settings_.reserve_after <= now + after)) {
    std::vector<const pool_run*> ended;
    for (const auto& x : ends)
      if (x.seconds <= found->seconds)
        ended.push_back(&runs_.at(x.allocation));
    rival = comes_before(run, ended);
    if (rival)
      return {};
  }
  auto victims = victims_of(run, now);
  for (const auto id : victims.now)
    victims.later[id] = 0;
  for (auto& x : ends)
    if (const auto it = victims.later.find(x.allocation); it != victims.later.end()) {
      x.seconds = std::min(x.seconds, it->second);
      victims.later.erase(it);
    }
  for (const auto& [id, seconds] : victims.later)
    ends.push_back({id, seconds, "", {}});
  if (const auto sooner = enough(std::move(ends)); sooner && sooner->seconds < found->seconds)
    return {};
  return {{"at", to_rfc3339(now + after)}, {"seconds", found->seconds}, {"from", found->from}};
}

value pool::explain(allocation_id id, const std::vector<run_outlook>& outlooks, time_point now) {
  const auto it = runs_.find(id);
  if (it == runs_.end())
    return {};
  const auto& run = it->second;
  refresh_turns();
  const auto* next = next_in_turn();
  const auto all = reasons(run, next, now);
  auto said = explain(run, all.front(), now);
  for (auto& one : said["wouldFree"]) {
    const auto holder = runs_.find(parse_allocation(one["allocation"].get<std::string>()));
    const auto known = std::find_if(outlooks.begin(), outlooks.end(),
                                    [&](const auto& x) { return x.allocation == holder->first; });
    if (known == outlooks.end())
      continue;
    const auto& until = one["expectedSeconds"]; // where it is preempted: until it may be; null: it may be now
    const bool before = until.is_number() && known->seconds < until.get<double>();
    if (known->seconds >= 0 && (one["how"] == "ends" || before)) {
      one["expectedSeconds"] = known->seconds;
      one["how"] = "ends";
    }
    if ((one["how"] == "preempted" || is_preemptible(holder->second)) && known->saved != time_point{})
      one["costSeconds"] = holder->second.held() * seconds_between(known->saved, now);
  }
  auto also = value::array();
  for (std::size_t i = 1; i < all.size(); ++i)
    also.push_back({{"code", all[i].first}, {"text", all[i].second}});
  const auto* ahead = run.waits() && run.slots > 0             ? ahead_of(run, next)
                      : run.state == pool_run::phase::stopping ? heir_of(run)
                                                               : nullptr;
  said["behind"] = ahead ? value(to_string(ahead->id)) : value();
  const pool_run* rival = nullptr;
  said["estimate"] = estimate(run, next, outlooks, now, rival);
  if (rival)
    also.push_back({{"code", "behind"},
                    {"text", "once these slots become free it is the turn of " + name_of(*rival) +
                               ": its job has fewer slots then, or as many and is older"}});
  said["also"] = std::move(also);
  const auto asks = run.since + settings_.fallback_after; // when it asks the pools of `fallback`
  const bool will_ask = patient_.contains({asks, run.id});
  if (run.waits() && (run.fell_back || will_ask)) {
    auto& text = said["reason"]["text"].get_ref<std::string&>();
    text += run.fell_back ? "; it asks" : "; in " + std::to_string(seconds_between(now, asks)) + " s it asks";
    for (std::size_t i = 0; i < settings_.fallback.size(); ++i)
      text +=
        (i == 0 ? settings_.fallback.size() == 1 ? " pool " : " the pools " : ", ") + settings_.fallback[i];
    text += " too";
    // How soon one of these takes it is not known here.
    if (auto& at = said["estimate"];
        at.is_object() && (run.fell_back || at["seconds"] > seconds_between(now, asks)))
      at = value();
  }
  said["advice"] = run.waits() ? advice(run, all.front().first, now) : std::string();
  said["slots"] = run.slots;
  said["priority"] = priority_of(*run.job);
  said["weight"] = run.job->terms.weight;
  said["user"] = run.job->terms.user;
  said["since"] = or_null(run.since);
  said["waitedSeconds"] = run.waits() ? value(seconds_between(run.since, now)) : value();
  if (auto& reserved = said["reservation"]; reserved.is_object())
    reserved["since"] = to_rfc3339(*run.reserved);
  return said;
}

/// All jobs in the order in which they get their turn, as position() counts them; of equal jobs the older
/// first. To be called after refresh_turns().
std::vector<const pool_job*> pool::jobs_in_turn() const {
  std::vector<const pool_job*> jobs;
  for (const auto& [id, job] : jobs_)
    jobs.push_back(&job);
  std::sort(jobs.begin(), jobs.end(), [&](const pool_job* a, const pool_job* b) {
    return policy_->job_before(*a, *b) || (!policy_->job_before(*b, *a) && older(*a, *b));
  });
  return jobs;
}

value pool::details() {
  refresh_turns();
  value jobs = value::array(), quotas = value::array();
  std::map<const pool_job*, int> impossible; // slots of runs that no agents could hold, which `wanted` lacks
  if (const auto it = aside_.find({run_bar::impossible, {}, {}}); it != aside_.end())
    for (const auto& [shape, runs] : it->second)
      for (const auto* run : runs.list())
        impossible[run->job] += run->slots;
  std::map<const pool_job*, int> guests; // number of each job's runs that wait in their own pool as well
  for (const auto* run : guests_.list())
    ++guests[run->job];
  int waiting = 0;
  std::map<const pool_job*, task_id> tasks; // jobs that are tasks, not experiments
  for (const auto& [id, run] : runs_)
    if (!id.task.is_trial())
      tasks.emplace(run.job, id.task);
  for (const auto* one : jobs_in_turn()) {
    const auto& job = *one;
    const auto task = tasks.find(one);
    if (const auto its = guests.find(one); its != guests.end() && its->second == job.runs)
      continue; // all runs of the job are guests, so it is a job of another pool
    const auto more = impossible.find(one);
    waiting += job.waits;
    jobs.push_back({{"experiment", job.terms.job.value},
                    {"task", task == tasks.end() ? value() : value(to_string(task->second))},
                    {"priority", priority_of(job)},
                    {"weight", job.terms.weight},
                    {"maxSlots", job.terms.max_slots < 0 ? value() : value(job.terms.max_slots)},
                    {"share", settings_.scheduler == scheduler_kind::fair ? value(job.share) : value()},
                    {"used", job.held},
                    {"waiting", job.wanted + (more == impossible.end() ? 0 : more->second)}});
  }
  for (const auto& q : settings_.quotas) {
    int used = 0; // for "*": the largest use by one of these users
    for (const auto& [key, slots] : used_)
      if (quota_of(key) == &q)
        used = std::max(used, slots);
    quotas.push_back({{q.user.empty() ? "workspace" : "user", q.user.empty() ? q.workspace : q.user},
                      {"maxSlots", q.max_slots},
                      {"used", used}});
  }
  int aux_used = 0;
  bool devices = false;
  for (const auto& [agent_name, agent] : agents_) {
    aux_used += agent.aux_used;
    devices = devices || (agent.present && !agent.slots.empty() && !is_processor(agent.traits.device));
  }
  value aux_runs = value::object(); // by agent
  for (const auto id : aux_holders_)
    for (const auto& part : runs_.at(id).on)
      if (part.slots.empty())
        aux_runs[part.agent->now.name].push_back(to_string(id));
  return {{"scheduler", name(settings_.scheduler)},
          {"fitting", settings_.fitting == fitting_order::best ? "best" : "worst"},
          {"defaultPriority", settings_.default_priority},
          {"auxPerAgent", settings_.aux_per_agent},
          {"auxUsed", aux_used},
          {"auxRuns", std::move(aux_runs)},
          {"device", devices ? "cuda" : "cpu"},
          {"preemption", settings_.preemption},
          {"reserved", reserved_slots()},
          {"provider",
           supply_.type.empty() && supply_.instances + supply_.stopping == 0 && supply_.error.empty()
             ? value()
             : value{{"type", supply_.type.empty() ? value() : value(supply_.type)},
                     {"instances", supply_.instances + supply_.stopping},
                     {"starting", supply_.starting},
                     {"stopping", supply_.stopping},
                     {"error", supply_.error.empty() ? value() : value(supply_.error)},
                     {"faults", supply_.faults},
                     {"retryAt", or_null(supply_.retry_at)},
                     {"failedLaunches", supply_.failed_launches},
                     {"launchFailedAt", or_null(supply_.launch_failed_at)},
                     {"launchFailure", supply_.launch_failure},
                     {"maxSlots", supply_.type.empty()
                                    ? value()
                                    : value(std::int64_t{supply_.max_instances} * supply_.instance_slots)}}},
          {"quotas", quotas},
          {"jobs", jobs},
          {"waiting", waiting},
          {"waitingWithoutSlots", aux_waiting_.size()}};
}

std::vector<queued_run> pool::waiting_runs() {
  refresh_turns();
  auto queue = queued_by_turns();
  std::set<const pool_run*> back; // never iterated, as the order of pointers means nothing
  std::vector<const ranked_runs::line*> lines;
  for (const auto* runs : queues())
    runs->collect_lines(lines);
  for (const auto* line : lines)
    if (is_held_back(*line))
      for (const auto& one : *line)
        back.insert(one.run);
  if (!back.empty()) // these come last, as position() counts
    std::stable_partition(queue.begin(), queue.end(), [&](auto* run) { return !back.contains(run); });
  const auto without_slots = aux_waiting_.list(); // runs without slots have a queue of their own
  queue.insert(queue.end(), without_slots.begin(), without_slots.end());
  const auto* next = next_in_turn();
  std::vector<queued_run> out;
  out.reserve(queue.size());
  std::map<std::pair<const pool_job*, run_shape>, std::string> told;
  for (const auto* run : queue) {
    auto& code = told[{run->job, run->shape()}];
    // Runs of the same job and shape have the reason of the first one. Where the first one is next ("busy"),
    // the next run is asked for its own reason.
    if (code.empty() || code == "busy")
      code = reasons(*run, next, now_).front().first;
    const auto& job = *run->job;
    out.push_back({run->id, job.terms.job, run->slots, priority_of(job), job.terms.weight, job.terms.user,
                   run->since, code});
  }
  return out;
}

} // namespace troupe
