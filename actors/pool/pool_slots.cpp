// The slots of a pool: which are available, which are kept for a run, and where a run fits.

#include "actors/pool/pool.hpp"

#include <algorithm>

namespace troupe {

pool_agent& pool::agent_named(const std::string& name) {
  if (auto* known = known_agent(name))
    return *known;
  const auto made = agents_.try_emplace(name).first;
  made->second.now.name = made->second.empty.name = name;
  made->second.now.of = &made->second;
  by_name_.emplace(made->first, &made->second);
  number(made);
  return made->second;
}

/// Gives a new agent a number between those of its neighbours; gives all agents new numbers where no number
/// is left between these.
void pool::number(agent_map::iterator one) {
  constexpr std::uint64_t step = std::uint64_t{1} << 32;
  const auto next = std::next(one);
  const auto before = one == agents_.begin() ? 0 : std::prev(one)->second.now.order;
  const auto after = next == agents_.end() ? before + 2 * step : next->second.now.order;
  auto& now = one->second.now;
  now.order = before + (after - before) / 2;
  if (now.order == before || after < before) {
    std::uint64_t order = 0;
    for (auto& [name, agent] : agents_)
      agent.now.order = agent.empty.order = order += step;
  }
  one->second.empty.order = now.order;
}

pool_agent* pool::known_agent(const std::string& name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

void pool::set_bars(pool_agent& agent, int slot, std::uint8_t bars) {
  auto& s = agent.slots[static_cast<std::size_t>(slot)];
  const bool indexed = !agent.changing && (s.bars == 0) != (bars == 0);
  if (indexed)
    begin_change(agent);
  set_bars(agent, s, bars);
  if (indexed)
    end_change(agent);
}

void pool::begin_change(pool_agent& agent) {
  agent.changing = true;
  index(agent, false);
}

void pool::end_change(pool_agent& agent) {
  agent.changing = false;
  agent.now.idle = agent.now.free > 0 && agent.now.free == agent.empty.free;
  index(agent, true);
}

void pool::index(pool_agent& agent, bool in) {
  for (auto* group : agent.groups)
    if (in)
      group->now.insert(agent.now);
    else
      group->now.erase(agent.now);
}

/// To be called when the traits of the agent, or what may be placed on it, have changed.
void pool::refresh(pool_agent& agent) {
  for (auto* group : agent.groups) {
    group->now.erase(agent.now);
    group->empty.erase(agent.empty);
  }
  agent.groups.clear();
  open_ -= agent.empty.free;
  agent.now.total = agent.empty.total = static_cast<int>(agent.slots.size());
  agent.now.free = agent.empty.free = 0;
  for (std::size_t i = 0; i < agent.slots.size(); ++i) {
    auto& s = agent.slots[i];
    kept_free_ -= s.bars == pool_agent::kept;
    s.bars =
      static_cast<std::uint8_t>((s.bars & ~pool_agent::closed) | (agent.open(i) ? 0 : pool_agent::closed));
    kept_free_ += s.bars == pool_agent::kept;
    agent.empty.free += agent.open(i);
    agent.now.free += s.bars == 0;
  }
  agent.empty.idle = agent.empty.free > 0;
  agent.now.idle = agent.now.free > 0 && agent.now.free == agent.empty.free;
  open_ += agent.empty.free;
  if (agent.present)
    join_views(agent);
  for (const auto& s : agent.slots)
    if (s.holder)
      count_promisable(*s.holder);
}

void pool::join_views(pool_agent& agent) {
  for (auto& [rules, view] : views_)
    join(agent, view);
}

void pool::join(pool_agent& agent, agent_view& view) {
  if (!refusal(view.rules, agent.now.name, agent.traits).empty())
    return;
  const auto& label = view.rules.same_label;
  auto& group =
    view.groups
      .try_emplace(label.empty() ? std::string() : agent.traits.labels.at(label),
                   agent_view::group{room_index(settings_.fitting), room_index(settings_.fitting)})
      .first->second;
  agent.groups.push_back(&group);
  group.now.insert(agent.now);
  group.empty.insert(agent.empty);
}

/// The view of the agents that `rules` allow. Preferences and `single_node` do not matter for it.
agent_view* pool::view_of(placement_rules rules) {
  rules.prefer_labels.clear();
  rules.single_node = false;
  auto [it, made] = views_.try_emplace(rules);
  auto& view = it->second;
  if (made) {
    view.number = next_view_++;
    view.rules = std::move(rules);
    for (auto& [name, agent] : agents_)
      if (agent.present)
        join(agent, view);
  }
  return &view;
}

void pool::use_views(pool_run& run, bool use) {
  if (use) {
    run.view = view_of(run.terms.rules);
    run.preferred = nullptr;
    if (!run.terms.rules.prefer_labels.empty()) {
      auto rules = run.terms.rules;
      bool any = true; // of the agents that may hold it
      for (const auto& [label, values] : rules.prefer_labels) {
        const auto [wanted, fresh] = rules.labels.try_emplace(label, values);
        if (!fresh)
          std::erase_if(wanted->second, [&values = values](const std::string& x) {
            return std::find(values.begin(), values.end(), x) == values.end();
          });
        any = any && !wanted->second.empty();
      }
      if (any)
        run.preferred = view_of(std::move(rules));
    }
  }
  for (auto* view : {run.view, run.preferred}) {
    if (!view)
      continue;
    view->users += use ? 1 : -1;
    if (view->users > 0 || view->rules == placement_rules{})
      continue;
    for (auto& [name, agent] : agents_)
      agent.groups.erase(std::remove_if(agent.groups.begin(), agent.groups.end(),
                                        [&](auto* group) {
                                          for (const auto& [label, one] : view->groups)
                                            if (group == &one)
                                              return true;
                                          return false;
                                        }),
                         agent.groups.end());
    views_.erase(placement_rules(view->rules));
  }
  if (!use)
    run.view = run.preferred = nullptr;
}

agent_parts pool::fit(const pool_run& run, int slots) const {
  for (const auto* view : {run.preferred, run.view}) {
    if (!view)
      continue;
    if (run.preferred && view == run.view)
      return fit_beside_preferred(run, slots);
    agent_shares best;
    for (const auto& [label, group] : view->groups)
      if (auto parts = group.now.fit(slots, run.single_node, settings_.gangs);
          !parts.empty() && (best.empty() || group.now.better(parts, best)))
        best = std::move(parts);
    if (!best.empty())
      return placed(best);
  }
  return {};
}

/// The parts of a run that does not fit on its preferred agents alone.
agent_parts pool::fit_beside_preferred(const pool_run& run, int slots) const {
  agent_shares best;
  std::ptrdiff_t best_count = 0; // how many of its agents are preferred
  for (const auto& [label, group] : run.view->groups) {
    const auto liked = run.preferred->groups.find(label);
    const bool some = liked != run.preferred->groups.end() && !run.single_node && slots > 1;
    auto parts = some ? group.now.fit_beside(liked->second.now, slots, settings_.gangs)
                      : group.now.fit(slots, run.single_node, settings_.gangs);
    if (parts.empty())
      continue;
    const auto count = some
                         ? std::count_if(parts.begin(), parts.end(),
                                         [&](const auto& x) { return liked->second.now.contains(*x.agent); })
                         : 0;
    const bool decides = parts.size() == best.size() && count != best_count;
    if (best.empty() || (decides ? count > best_count : group.now.better(parts, best))) {
      best = std::move(parts);
      best_count = count;
    }
  }
  return placed(best);
}

/// Whether the present agents could hold the run if no other run held any slot.
bool pool::could_hold(const pool_run& run) const {
  for (const auto& [label, group] : run.view->groups)
    if (group.empty.holds(run.need(), run.slots, run.single_node, settings_.gangs))
      return true;
  return false;
}

agent_parts pool::placed(const agent_shares& parts) const {
  agent_parts on;
  on.reserve(parts.size());
  for (const auto& part : parts) {
    auto& agent = *static_cast<const pool_agent::room*>(part.agent)->of;
    auto& here = on.emplace_back(agent_part{&agent, {}});
    for (std::size_t i = 0; i < agent.slots.size() && static_cast<int>(here.slots.size()) < part.slots; ++i)
      if (agent.slots[i].bars == 0)
        here.slots.push_back(static_cast<int>(i));
  }
  return on;
}

/// A placement with the largest number of slots, between `least` and `slots` of the run, that fits and that
/// no limit forbids.
agent_parts pool::fit_range(const pool_run& run) const {
  if (run.need() == run.slots)
    return fit(run, run.slots);
  int most = 0;
  for (const auto& [label, group] : run.view->groups)
    most = std::max(most, run.single_node ? group.now.most() : group.now.free());
  for (int slots = std::min({run.slots, most, most_within_limits(run)}); slots >= run.need(); --slots)
    if (auto on = fit(run, slots); !on.empty())
      return on;
  return {};
}

// ---- what if

void pool::lift(bars& lifted, pool_agent& agent, int slot, std::uint8_t bar) {
  const auto bars_now = agent.slots[static_cast<std::size_t>(slot)].bars;
  if (!(bars_now & bar))
    return;
  lifted.emplace_back(&agent, slot << 8 | bar);
  set_bars(agent, slot, static_cast<std::uint8_t>(bars_now & ~bar));
}

void pool::lift(bars& lifted, const agent_parts& on, std::uint8_t bar) {
  change_slots(on, [&](pool_agent& agent, int slot) { lift(lifted, agent, slot, bar); });
}

void pool::lower(const bars& lifted) {
  for (auto it = lifted.rbegin(); it != lifted.rend();) {
    auto* const agent = it->first;
    begin_change(*agent);
    for (; it != lifted.rend() && it->first == agent; ++it) {
      const int slot = it->second >> 8;
      set_bars(
        *agent, slot,
        static_cast<std::uint8_t>(agent->slots[static_cast<std::size_t>(slot)].bars | (it->second & 0xff)));
    }
    end_change(*agent);
  }
}

// ---- kept for one run

void pool::keep(pool_run& run, agent_parts on, bool reserve, time_point now) {
  TROUPE_ASSERT(run.kept.empty() && !on.empty());
  leave_queue(run);
  run.kept = std::move(on);
  if (reserve) {
    run.reserved = now;
    reserved_for_ = run.id;
  } else {
    run.job->claimed += slots_in(run.kept);
  }
  keepers_.insert(run.id);
  change_slots(run.kept, [&](pool_agent& agent, int slot) {
    auto& s = agent.slots[static_cast<std::size_t>(slot)];
    TROUPE_ASSERT(!s.keeper);
    s.keeper = &run;
    set_bars(agent, slot, s.bars | pool_agent::kept);
    if (s.holder)
      count_promisable(*s.holder);
  });
  compete(run);
}

/// The run no longer keeps slots. `out` gets the action drop_reservation; null where the run is granted slots
/// now.
void pool::drop_kept(actions* out, pool_run& run) {
  if (run.kept.empty())
    return;
  const auto bar = run.bar;
  leave_queue(run);
  change_slots(run.kept, [&](pool_agent& agent, int slot) {
    auto& s = agent.slots[static_cast<std::size_t>(slot)];
    if (s.keeper != &run)
      return;
    s.keeper = nullptr;
    set_bars(agent, slot, static_cast<std::uint8_t>(s.bars & ~pool_agent::kept));
    if (s.holder)
      count_promisable(*s.holder);
  });
  if (run.reserved) {
    reserved_for_ = {};
    if (out)
      out->push_back(drop_reservation{run.id});
  } else {
    run.job->claimed -= slots_in(run.kept);
  }
  run.kept.clear();
  run.loose = false;
  run.reserved.reset();
  keepers_.erase(run.id);
  for (const auto& key : limits_of(run)) // the kept slots counted as used
    eased_.insert(key);
  if (bar.of == run_bar::none)
    compete(run);
  else
    step_aside(run, bar);
}

/// To be called when agents or their slots have changed. Runs that no agents can hold now stand aside, and
/// runs that can be held again compete. Kept slots of which one is gone are dropped and chosen again later.
void pool::topology_changed(actions& out) {
  unjudged_ = excluding_;
  if (settings_.preempts())
    ease_all();
  for (const auto id : std::set(keepers_)) {
    auto& run = runs_.at(id);
    bool lost = false;
    int there = 0;
    each_slot(run.kept, [&](pool_agent& agent, int slot) {
      ++there;
      lost = lost || !agent.open(static_cast<std::size_t>(slot));
    });
    if (lost || there < slots_in(run.kept))
      drop_kept(&out, run);
  }
  std::vector<pool_run*> gone, back;
  const auto append = [](std::vector<pool_run*>& to, const ranked_runs& runs) {
    const auto all = runs.list();
    to.insert(to.end(), all.begin(), all.end());
  };
  for (const auto& [shape, runs] : queue_)
    if (!runs.empty() && !could_hold(*runs.first()))
      append(gone, runs);
  if (auto it = aside_.find({run_bar::impossible, {}, {}}); it != aside_.end())
    for (const auto& [shape, runs] : it->second)
      if (could_hold(*runs.first()))
        append(back, runs);
  for (auto* run : gone) {
    drop_kept(&out, *run);
    leave_queue(*run);
    step_aside(*run, {run_bar::impossible, {}, {}});
  }
  for (auto* run : back) {
    leave_queue(*run);
    compete(*run);
  }
}

int pool::used_slots() const {
  int n = 0;
  for (const auto& [name, agent] : agents_)
    if (agent.present)
      for (const auto& s : agent.slots)
        n += s.holder != nullptr;
  return n;
}

int pool::reserved_slots() const { return reserved_for_ ? slots_in(runs_.at(reserved_for_).kept) : 0; }

} // namespace troupe
