// Advises what would start a run that waits: a command with the values that it needs. It asks the same
// indexes, limits and fitting that place the run.

#include "actors/pool/pool.hpp"
#include "actors/pool/stays_drained.hpp"

#include <algorithm>
#include <set>

namespace troupe {

/// Where more runs than these would have to start first, no advice is given.
constexpr std::size_t most_before = 1000;

/// The runs of the same job that wait for slots and come before the run, in their order; without those that
/// no agents could hold. Where there are more than `most_before`, not all of them.
std::vector<const pool_run*> pool::siblings_before(const pool_run& run) const {
  std::vector<const pool_run*> siblings;
  for (const auto* runs : queues())
    if (const auto* line = runs->line_of(*run.job))
      for (const auto& one : *line) {
        if (!by_rank()(one.run, &run) || siblings.size() > most_before)
          break;
        if (one.run->bar.of != run_bar::impossible)
          siblings.push_back(one.run);
      }
  std::sort(siblings.begin(), siblings.end(), by_rank());
  return siblings;
}

/// The least urgent priority, which is the largest number, with which no run of another job would be before
/// the run, and enough slots for the runs of its own job before it and for itself: free slots, slots that are
/// kept for less urgent runs and, where the pool preempts, slots of those that it would preempt. In a pool
/// that does not preempt, it is enough that the run is first.
std::optional<int> pool::priority_that_starts(const pool_run& run) {
  if (settings_.scheduler != scheduler_kind::priority)
    return std::nullopt;
  int first = run.job->rank.priority;
  for (const auto& [id, job] : jobs_)
    for (const auto& line : job.queue) { // runs that stand aside, or are about to, hold no other run up
      if (&job == run.job || job.rank.priority > first)
        break;
      if (const auto* head = line.runs->begin()->run;
          by_rank()(head, &run) && barred_by(*head).of == run_bar::none)
        first = job.rank.priority - 1;
    }
  // Siblings below a full limit get slots only where the run may: by preemption, or where both wait for it.
  const bool below_full = settings_.preempts() || barred_by(run).of != run_bar::none;
  auto siblings = siblings_before(run);
  if (siblings.size() > most_before)
    return std::nullopt;
  std::erase_if(siblings, [&](const pool_run* one) {
    const auto bar = barred_by(*one).of;
    return (bar == run_bar::job && run.job->stopping == 0) || (bar != run_bar::none && !below_full);
  });
  const bool is_first = siblings.empty();
  std::erase_if(siblings, [](const pool_run* one) { // their slots become free, as their victims stop
    return !one->kept.empty() && !one->reserved;
  });
  int before = 0; // slots that the siblings get: as many as they ask for; reserved ones count as used already
  for (const auto* one : siblings)
    before += one->kept.empty() ? one->slots : 0;
  auto lacks = lacks_of(run, before);
  agent_parts taken; // slots of the siblings, which are held while the others are tried
  auto sibling = siblings.begin();
  const auto has_enough = [&] {
    for (; sibling != siblings.end(); ++sibling) {
      const auto on = fit(**sibling, (*sibling)->slots);
      if (on.empty())
        return false;
      change_slots(on, [&](pool_agent& agent, int slot) { set_bars(agent, slot, pool_agent::held); });
      taken.insert(taken.end(), on.begin(), on.end());
    }
    return !is_lacking(lacks) && !fit(run, run.need()).empty();
  };
  std::vector<const pool_run*> keepers; // runs that keep slots from it, the least urgent first
  for (const auto id : keepers_)
    if (const auto& keeper = runs_.at(id); keeper.job != run.job && !policy_->overrides(run, keeper))
      keepers.push_back(&keeper);
  std::stable_sort(keepers.begin(), keepers.end(), [](const auto* x, const auto* y) {
    return x->job->rank.priority > y->job->rank.priority;
  });
  bars lifted;
  lift(lifted, run.kept, pool_agent::kept);
  for (const auto* one : siblings)
    lift(lifted, one->kept, pool_agent::kept);
  for (const auto id : keepers_)
    if (const auto& keeper = runs_.at(id); policy_->overrides(run, keeper))
      lift(lifted, keeper.kept, pool_agent::kept);
  if (settings_.preempts())
    for (const auto id : stopping_)
      lift(lifted, runs_.at(id).on, pool_agent::held);
  bool enough = has_enough();
  std::size_t tried = 0; // above 1000 runs to preempt there is no advice
  ranked_runs::walk running(running_, true);
  const auto next_victim = [&]() -> const pool_run* {
    const auto* victim = settings_.preempts() && ++tried <= 1000 ? running.next() : nullptr;
    while (victim && victim->job == run.job) // its priority changes with that of the run
      victim = ++tried <= 1000 ? running.next() : nullptr;
    return victim;
  };
  const auto* victim = next_victim();
  const int turn = first; // the priority with which the run is first
  for (auto keeper = keepers.begin(); !enough && first >= 1 && (victim || keeper != keepers.end());
       enough = has_enough()) {
    const bool keeps =
      keeper != keepers.end() && (!victim || (*keeper)->job->rank.priority >= victim->job->rank.priority);
    const auto& loser = keeps ? **keeper : *victim;
    if (keeps) {
      lift(lifted, loser.kept, pool_agent::kept);
      for (auto& x : lacks) // a run that goes before the keeper has its room below the limits, too
        x.slots -= is_under(loser, x.key) ? loser.need() : 0;
      ++keeper;
    } else {
      lift(lifted, loser.on, pool_agent::held);
      give(lacks, loser, 1);
      victim = next_victim();
    }
    first = std::min(first, loser.job->rank.priority - 1);
  }
  change_slots(taken, [&](pool_agent& agent, int slot) { set_bars(agent, slot, 0); });
  lower(lifted);
  if (!enough && (settings_.preempts() || is_lacking(lacks) || !is_first))
    return std::nullopt;
  first = enough ? first : turn;
  return first >= 1 && first < run.job->rank.priority ? std::optional(first) : std::nullopt;
}

/// The orders that open drained agents and disabled slots for the run: the fewest that are enough together,
/// or each one that is enough alone. Empty where no order helps. Slots of agents that leave for another pool
/// count only where the run needs them, too.
std::string pool::enabling_text(const pool_run& run) const {
  constexpr std::size_t most_named = 5, most_tried = 64;
  struct order {
    const pool_agent* agent;
    int slot; ///< below 0: the agent itself
    int gain; ///< number of slots that the order opens
    std::string text() const {
      const auto& name = agent->now.name;
      return slot < 0 ? "troupe agent enable " + name
                      : "troupe slot enable " + name + " " + std::to_string(slot);
    }
  };
  const auto enabled = [](const pool_agent& x) {
    return static_cast<int>(x.slots.size() - x.disabled.size());
  };
  std::vector<order> orders;
  for (const auto& [name, agent] : agents_) {
    if (!agent.present || !agent.leaves_for.empty() || supply_.ended.contains(name) ||
        !refusal(run.terms.rules, name, agent.traits).empty())
      continue;
    if (agent.drained && (run.slots > 0 || aux_of(agent) > 0))
      orders.push_back({&agent, -1, enabled(agent)});
    for (const int slot : run.slots > 0 ? agent.disabled : std::set<int>())
      orders.push_back({&agent, slot, 1});
  }
  std::stable_sort(orders.begin(), orders.end(),
                   [](const auto& x, const auto& y) { return x.gain > y.gain; });
  bool with_leaving = false;
  const auto suffice = [&](const std::vector<order>& chosen) {
    if (run.slots == 0)
      return !chosen.empty();
    std::set<const pool_agent*> opened; // never iterated, as the order of pointers means nothing
    std::map<const pool_agent*, int> more;
    for (const auto& x : chosen)
      if (x.slot < 0)
        opened.insert(x.agent);
      else
        ++more[x.agent];
    return fits_with(run, run.terms.rules, [&](const pool_agent& agent) {
      const bool closed =
        agent.leaves_for.empty() ? agent.drained && !opened.contains(&agent) : !with_leaving;
      const auto its = more.find(&agent);
      return !agent.present || closed ? 0 : enabled(agent) + (its == more.end() ? 0 : its->second);
    });
  };
  with_leaving = !suffice(orders);
  const auto first_ones = [&](std::size_t n) {
    return std::vector<order>(orders.begin(), orders.begin() + static_cast<std::ptrdiff_t>(n));
  };
  std::size_t few = 0, enough = orders.size(); // the first `few` orders do not suffice
  while (few + 1 < enough) {
    const auto middle = few + (enough - few) / 2;
    (suffice(first_ones(middle)) ? enough : few) = middle;
  }
  auto chosen = first_ones(enough);
  for (auto i = chosen.size(); i-- > 0 && chosen.size() > 1 && enough <= most_tried;) {
    auto fewer = chosen;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (suffice(fewer))
      chosen = std::move(fewer);
  }
  std::vector<std::string> texts;
  for (const auto& x : chosen)
    texts.push_back(x.text());
  const bool alone = texts.size() == 1;
  for (std::size_t i = 0; alone && i < std::min(orders.size(), most_tried); ++i)
    if (orders[i].text() != texts.front() && suffice({orders[i]}))
      texts.push_back(orders[i].text());
  std::string text = alone && texts.size() > 1 ? "one of: " : "";
  for (std::size_t i = 0; i < std::min(texts.size(), most_named); ++i)
    text += (i == 0 ? "" : alone ? ", " : ", and ") + texts[i];
  return text +
         (texts.size() > most_named ? ", and " + std::to_string(texts.size() - most_named) + " more" : "");
}

std::string pool::advice(const pool_run& run, const std::string& code, time_point now) {
  const auto set = run.id.task.is_trial()
                     ? "troupe experiment set " + std::to_string(run.job->terms.job.value)
                     : "troupe task set " + to_string(run.id.task);
  if (code == "no_agents")
    return away_for(run, now).returning.empty() ? "start an agent of this pool" : "";
  if (code == "too_large" && supply_can_hold(run))
    return std::string("set ") + (run.id.task.is_trial() ? "resources.slots_per_trial" : "resources.slots") +
           " to a multiple of " + std::to_string(supply_.instance_slots);
  if (code == "too_large" || code == "single_node" || code == "constraints") {
    auto [how, names, returning] = away_for(run, now);
    std::erase_if(names, [&](const std::string& name) { return agents_.at(name).back_until > now; });
    if (!returning.empty() && (how != away_agents::together || names.empty()))
      return {}; // the run may start when these agents are back
    if (!names.empty()) {
      if (how != away_agents::together)
        names.resize(1);
      auto text = (names.size() == 1 ? "start agent " : "start agents ") + names_text(names) + " again";
      for (const auto& name : names)
        if (stays_drained(agents_, name))
          text += ", and troupe agent enable " + name;
      return text;
    }
  }
  if (code == "too_large" || code == "single_node") {
    const bool is_elastic = most_supplied() > 0;
    const bool more = code == "too_large" && run.need() > most_supplied();
    return std::string("lower ") +
           (run.id.task.is_trial() ? "resources.slots_per_trial" : "resources.slots") + ", or " +
           (!is_elastic ? (code == "too_large" ? "start more or larger agents" : "start larger agents")
            : more      ? "raise max_instances of the pool's provider"
                        : "raise instance_slots of the pool's provider");
  }
  if (code == "constraints")
    return "loosen resources.constraints, or start agents that meet them";
  if (code == "drained") {
    if (auto orders = enabling_text(run); !orders.empty())
      return orders;
    const pool_agent* leaving = nullptr; // no command keeps an agent that leaves
    for (const auto& [name, agent] : agents_)
      if (agent.present && !agent.leaves_for.empty() && !leaving &&
          refusal(run.terms.rules, name, agent.traits).empty())
        leaving = &agent;
    if (leaving && run.id.task.is_trial())
      return set + " --pool " + leaving->leaves_for;
  }
  if ((code == "quota" || code == "pool_max_slots") && never_fits(run))
    return std::string("lower ") +
           (run.id.task.is_trial() ? "resources.slots_per_trial" : "resources.slots") +
           ", or raise that limit in the cluster file";
  if (code == "provider_failed")
    return "troupe pool describe shows what its provider says";
  if (code == "max_slots" && run.id.task.is_trial()) {
    std::int64_t most = run.job->held + run.need();
    const auto siblings = siblings_before(run);
    for (const auto* one : siblings)
      most += one->slots;
    if (siblings.size() <= most_before &&
        most <= std::max<std::int64_t>(total_, most_supplied())) // above it no limit helps
      return set + " --max-slots " + std::to_string(most);
  }
  if (code == "behind" || code == "busy" || code == "reserved" || code == "quota" || code == "pool_max_slots")
    if (const auto priority = priority_that_starts(run))
      return set + " --priority " + std::to_string(*priority);
  if (code == "behind" || code == "busy") // a gang that can be smaller gives back what a limit forbids
    for (const auto* one : spared_for(run, now))
      if (const int share = one->job->share; one->id.task.is_trial() && one->need() <= share)
        return "troupe experiment set " + std::to_string(one->job->terms.job.value) + " --max-slots " +
               std::to_string(share);
  return {};
}

} // namespace troupe
