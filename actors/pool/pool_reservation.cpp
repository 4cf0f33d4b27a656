// Reservations: a run that has waited for long while others pass it gets slots that no run behind it may
// have.

#include "actors/pool/pool.hpp"

#include <algorithm>

namespace troupe {
namespace {

using agent_slots = std::vector<std::pair<pool_agent*, int>>;

/// A choice of slots, which their holders have to leave first. The fewer holders the better, and then the
/// longer these have run.
struct offer {
  agent_parts on;
  std::vector<time_point> holders; ///< since when each holder runs, ascending
  bool better_than(const offer& b) const {
    if (on.empty() || b.on.empty())
      return !on.empty();
    return holders.size() != b.holders.size() ? holders.size() < b.holders.size() : holders < b.holders;
  }
};

/// The slots in parts by agent, in the order of agents' names and slot numbers.
agent_parts grouped(agent_slots slots) {
  std::sort(slots.begin(), slots.end(), [](const auto& a, const auto& b) {
    return a.first == b.first ? a.second < b.second : a.first->now.name < b.first->now.name;
  });
  agent_parts on;
  for (const auto& [agent, slot] : slots) {
    if (on.empty() || on.back().agent != agent)
      on.push_back({agent, {}});
    on.back().slots.push_back(slot);
  }
  return on;
}

struct holder_slots {
  allocation_id id;
  time_point since;
  agent_slots slots;
};

offer take(int slots, const agent_slots& free, std::vector<holder_slots> holders) {
  agent_slots chosen;
  offer out;
  const auto use = [&](const auto& list) {
    for (const auto& one : list)
      if (slots > 0) {
        chosen.push_back(one);
        --slots;
      }
  };
  use(free);
  std::vector<int> sizes;
  for (const auto& h : holders)
    sizes.push_back(static_cast<int>(h.slots.size()));
  std::sort(sizes.rbegin(), sizes.rend());
  std::size_t count = 0; // least number of holders that have enough slots: the largest ones
  int reach = 0;         // number of slots that the `count` largest holders have
  for (; reach < slots && count < sizes.size(); ++count)
    reach += sizes[count];
  std::sort(holders.begin(), holders.end(),
            [](const auto& a, const auto& b) { return std::tie(a.since, a.id) < std::tie(b.since, b.id); });
  for (auto it = holders.begin(); it != holders.end() && slots > 0 && count > 0; ++it) {
    // The holder that has run longest is taken, if it and the largest of the others still have enough slots.
    const int size = static_cast<int>(it->slots.size()), smallest = sizes[count - 1];
    if (reach - std::max(0, smallest - size) < slots)
      continue;
    reach -= std::max(size, smallest);
    sizes.erase(std::find(sizes.begin(), sizes.end(), size));
    --count;
    use(it->slots);
    out.holders.push_back(it->since);
  }
  if (slots > 0)
    return {};
  out.on = grouped(std::move(chosen));
  return out;
}

bool usable(const pool_agent& agent, std::size_t slot) {
  return agent.open(slot) && !agent.slots[slot].keeper;
}

/// The usable slots of these agents that have the fewest holders.
offer offer_of(const std::vector<pool_agent*>& agents, int slots) {
  agent_slots free;
  std::vector<holder_slots> holders;
  std::unordered_map<const pool_run*, std::size_t> numbers; // index in `holders` of each holder
  const pool_run* last = nullptr;
  std::size_t number = 0; // index of the holder `last`
  for (auto* agent : agents)
    for (std::size_t i = 0; i < agent->slots.size(); ++i) {
      if (!usable(*agent, i))
        continue;
      const auto* holder = agent->slots[i].holder;
      if (!holder) {
        free.emplace_back(agent, static_cast<int>(i));
        continue;
      }
      if (holder != last) { // most slots stand beside slots of the same holder
        const auto [known, fresh] = numbers.try_emplace(holder, holders.size());
        if (fresh)
          holders.push_back({holder->id, holder->since, {}});
        number = known->second;
        last = holder;
      }
      holders[number].slots.emplace_back(agent, static_cast<int>(i));
    }
  return take(slots, free, std::move(holders));
}

/// The holders of `slots` held slots, chosen as take() does; empty: fewer slots are held.
std::vector<const pool_run*> fewest_holders(const held_runs& held, int slots) {
  struct of_size {
    int slots;
    held_line::const_iterator first, end; ///< `first` has run longest of those not looked at
    std::size_t left;                     ///< number of runs that are not chosen
  };
  std::vector<of_size> sizes; // the largest size first
  std::size_t count = 0;      // least number of holders that have enough slots
  int reach = 0;              // number of slots that the `count` largest holders have
  for (const auto& [size, runs] : held) {
    sizes.push_back({size, runs.begin(), runs.end(), runs.size()});
    for (std::size_t i = 0; i < runs.size() && reach < slots; ++i, ++count)
      reach += size;
  }
  if (reach < slots)
    return {};
  std::vector<const pool_run*> chosen;
  while (slots > 0) {
    int smallest = 0; // size of the smallest of the `count` largest holders
    for (std::size_t i = 0, n = 0; n < count; ++i) {
      n += sizes[i].left;
      smallest = sizes[i].slots;
    }
    // A holder that is too small now stays too small.
    of_size* longest = nullptr;
    for (auto& one : sizes)
      if (one.first != one.end && reach - std::max(0, smallest - one.slots) >= slots &&
          (!longest || *one.first < *longest->first))
        longest = &one;
    chosen.push_back(longest->first++->run);
    --longest->left;
    --count;
    reach -= std::max(longest->slots, smallest);
    slots -= std::min(slots, longest->slots);
  }
  return chosen;
}

/// Orders second turns by what their jobs had.
bool has_less(const std::pair<pool_policy::standing, time_point>& turn, const pool_policy::standing& what) {
  return turn.first < what;
}

} // namespace

void pool::age(time_point now) {
  while (!young_.empty() && young_.front().since + settings_.reserve_after <= now) {
    auto& run = young_.front();
    young_.pop_front();
    run.aged = true;
    old_ += run.queue != nullptr;
    index_aged(run);
  }
}

void pool::index_aged(pool_run& run) {
  if (run.aged && run.waits() && run.bar.of == run_bar::none && (policy_->ranked() || run.passed))
    aged_.insert(run);
}

void pool::grows_old(pool_run& run) {
  auto at = young_.end();
  if (phase_ == phase::recovering) // requests arrive in any order
    unsorted_ = unsorted_ || (!young_.empty() && waits_longer(run, young_.back()));
  else // a run that enters is mostly the newest
    while (at != young_.begin() && waits_longer(run, *std::prev(at)))
      --at;
  young_.insert(at, run);
}

bool pool::waits_longer(const pool_run& a, const pool_run& b) { return a.since < b.since; }

bool pool::was_passed(const pool_run& run) const {
  if (run.passed)
    return true;
  if (!policy_->ranked()) {
    const auto again =
      std::lower_bound(second_turns_.begin(), second_turns_.end(), policy_->standing_of(*run.job), has_less);
    const auto waits_since = std::max(run.since, run.job->served);
    // Where more jobs compete than there are slots, the share of the youngest is 0, so that others come first
    // for ever. With preemption they would take back what a run above its share got.
    if (run.job->effective() == 0 && run.job->terms.weight > 0 && !settings_.preempts() &&
        !second_turns_.empty() && second_turns_.front().second > waits_since)
      return true;
    return again != second_turns_.end() && again->second > waits_since;
  }
  const auto later = std::upper_bound(grants_.begin(), grants_.end(), run.entered,
                                      [](auto entered, const auto& grant) { return entered < grant.first; });
  return later != grants_.end() && run_rank{run.job->rank, run.rank} < later->second;
}

/// To be called before a run of the job gets slots. Whoever waits, has not more than this job, and got
/// nothing since the job's former turn ended, is passed by its second one: where a job's runs end, it has as
/// little as those who wait, and where it is the older one its turn comes before theirs, again and again.
void pool::note_second_turn(const pool_job& job) {
  if (job.served == time_point{})
    return;
  const auto what = policy_->standing_of(job);
  auto end = std::lower_bound(second_turns_.begin(), second_turns_.end(), what, has_less);
  if (end != second_turns_.end() && end->second >= job.served)
    return;
  if (end != second_turns_.end() && end->first == what)
    ++end;
  // The new entry takes the place of those before `end` that are no later.
  const auto at = std::partition_point(second_turns_.begin(), end,
                                       [&](const auto& turn) { return turn.second > job.served; });
  second_turns_.insert(second_turns_.erase(at, end), {what, job.served});
}

/// The first run that has waited for reserve_after and that `run` would pass if it started now; null where
/// there is none, or a reservation exists. Such a run gets a reservation before it is passed.
pool_run* pool::passed_by(const pool_run& run, const std::vector<pool_run*>& behind) {
  if (reserved_for_ || unreservable_ || !policy_->passes())
    return nullptr;
  const auto may = [&](const pool_run& one) {
    return &one != &run && one.aged && one.waits() && one.bar.of == run_bar::none && one.kept.empty() &&
           full_limit(one).of == run_bar::none;
  };
  if (policy_->ranked()) {
    ranked_runs::walk aged(aged_);
    while (auto* one = aged.next())
      if (by_rank()(&run, one))
        break;
      else if (may(*one))
        return one;
    return nullptr;
  }
  pool_run* first = nullptr;
  for (auto* one : behind)
    if (may(*one) && (!first || policy_->before(*one, *first)))
      first = one;
  return first;
}

void pool::reserve(actions& out, time_point now) {
  age(now);
  if (reserved_for_ || !policy_->passes())
    return;
  pool_run* first = nullptr;
  bool fresh = false;
  // In a pool of turns, whose job has least, and of these whose job had slots the longest ago: where older
  // jobs, each of which has nothing in its turn, came first, they would take turns with each other alone.
  const auto comes_before = [this](const pool_run& a, const pool_run& b) {
    if (policy_->ranked() || a.job == b.job)
      return policy_->before(a, b);
    const auto key = [this](const pool_job& job) {
      const auto [tier, has] = policy_->standing_of(job);
      return std::tuple{tier == pool_policy::only_leftovers, has, job.served};
    };
    const auto key_a = key(*a.job), key_b = key(*b.job);
    return key_a != key_b ? key_a < key_b : policy_->before(a, b);
  };
  ranked_runs::walk aged(aged_);
  while (auto* run = aged.next()) {
    if (policy_->ranked() && !run->passed &&
        (grants_.empty() || grants_.front().second < run_rank{run->job->rank, run->rank}))
      break; // no run behind this one has been served
    if (!run->kept.empty() || !was_passed(*run) || full_limit(*run).of != run_bar::none)
      continue;
    if (first && !std::exchange(fresh, true))
      refresh_turns();
    if (!first || comes_before(*run, *first))
      first = run;
    if (policy_->ranked())
      break;
  }
  if (!policy_->ranked() && old_ > 0 && !second_turns_.empty()) {
    if (!fresh)
      refresh_turns();
    const pool_run* next = first;
    policy_->first([&](const pool_run& run) {
      if (run.aged && run.kept.empty() && was_passed(run) && full_limit(run).of == run_bar::none &&
          (!next || comes_before(run, *next)))
        next = &run;
      return false; // all are looked at
    });
    first = next ? &runs_.at(next->id) : nullptr;
  }
  if (first)
    reserve_for(out, *first, now);
}

bool pool::reserve_for(actions& out, pool_run& run, time_point now) {
  auto on = chosen_for(run);
  if (on.empty())
    return false;
  out.push_back(reserve_slots{run.id, placements(on)});
  keep(run, std::move(on), true, now);
  return true;
}

agent_parts pool::chosen_for(const pool_run& run) const {
  for (const auto* view : {run.preferred, run.view}) {
    if (!view)
      continue;
    const bool one_agent = run.terms.rules.single_node && run.need() > 1;
    if (view->rules == placement_rules{} && settings_.gangs == gang_rule::any && !one_agent)
      return chosen_of_all(run);
    offer best;
    for (const auto& [label, group] : view->groups) {
      std::vector<pool_agent*> agents;
      for (const auto& [name, agent] : agents_)
        if (std::find(agent.groups.begin(), agent.groups.end(), &group) != agent.groups.end())
          agents.push_back(agent.now.of);
      offer one{chosen_in(run, agents), {}};
      std::set<const pool_run*> holders; // never iterated, as the order of pointers means nothing
      for (const auto& part : one.on)
        for (const int slot : part.slots)
          if (const auto* holder = part.agent->slots[static_cast<std::size_t>(slot)].holder;
              holder && holders.insert(holder).second)
            one.holders.push_back(holder->since);
      std::sort(one.holders.begin(), one.holders.end());
      if (one.better_than(best))
        best = std::move(one);
    }
    if (!best.on.empty())
      return best.on;
  }
  return {};
}

/// The same result as chosen_in() for all agents, found by the index of runs that hold slots.
agent_parts pool::chosen_of_all(const pool_run& run) const {
  const auto& groups = views_.at({}).groups;
  if (groups.empty())
    return {};
  const auto& now = groups.begin()->second.now;
  const int need = run.need();
  if (now.free() >= need) { // a single agent may have enough free slots
    std::vector<pool_agent*> agents;
    for (const auto* one : now.with_room())
      agents.push_back(static_cast<const pool_agent::room*>(one)->of);
    return chosen_in(run, agents);
  }
  const auto holders = fewest_holders(held_, need - now.free());
  if (holders.empty())
    return {};
  // A single agent is better than several ones where it takes as few holders that have run as long. Such an
  // agent has one of these holders.
  std::vector<time_point> since;
  for (const auto* holder : holders)
    since.push_back(holder->since);
  std::vector<pool_agent*> one_of;
  const bool may_be_one = groups.begin()->second.empty.most() >= need;
  for (const auto& [size, runs] : held_)
    for (auto it = runs.lower_bound(held_entry{since.front(), nullptr});
         may_be_one && it != runs.end() && it->since == since.front(); ++it)
      for (const auto& part : it->run->on)
        if (part.agent->empty.free >= need)
          one_of.push_back(part.agent);
  std::sort(one_of.begin(), one_of.end(), [](auto* a, auto* b) { return a->now.name < b->now.name; });
  one_of.erase(std::unique(one_of.begin(), one_of.end()), one_of.end());
  for (auto* agent : one_of)
    if (auto one = offer_of({agent}, need); one.holders == since)
      return one.on;
  agent_slots chosen;
  for (const auto* room : now.with_room()) {
    auto* agent = static_cast<const pool_agent::room*>(room)->of;
    for (std::size_t i = 0; i < agent->slots.size(); ++i)
      if (agent->slots[i].bars == 0)
        chosen.emplace_back(agent, static_cast<int>(i));
  }
  for (const auto* holder : holders) {
    agent_slots theirs;
    for (const auto& part : holder->on)
      for (const int slot : part.slots)
        if (usable(*part.agent, static_cast<std::size_t>(slot)))
          theirs.emplace_back(part.agent, slot);
    for (const auto& part : grouped(std::move(theirs)))
      for (const int slot : part.slots)
        if (chosen.size() < static_cast<std::size_t>(need))
          chosen.emplace_back(part.agent, slot);
  }
  return grouped(std::move(chosen));
}

/// The slots of these agents that hold the run and have the fewest holders.
agent_parts pool::chosen_in(const pool_run& run, const std::vector<pool_agent*>& among) const {
  const int need = run.need();
  offer best;
  for (auto* agent : among)
    if (agent->empty.free >= need)
      if (auto one = offer_of({agent}, need); one.better_than(best))
        best = std::move(one);
  if (run.terms.rules.single_node || need == 1)
    return best.on;
  if (settings_.gangs == gang_rule::any) {
    if (auto spread = offer_of(among, need); spread.better_than(best))
      best = std::move(spread);
    return best.on;
  }
  if (!best.on.empty())
    return best.on; // a single agent is better than several ones
  // Whole agents are taken by the fewest holders, all of one size, or, where sizes may mix, the largest
  // first.
  struct whole_agent {
    int size;
    offer all;
  };
  std::vector<whole_agent> idle;
  for (auto* agent : among) {
    int size = 0;
    for (std::size_t i = 0; i < agent->slots.size(); ++i)
      size += usable(*agent, i);
    if (size > 0 && size == agent->empty.free)
      idle.push_back({size, offer_of({agent}, size)});
  }
  std::stable_sort(idle.begin(), idle.end(), [](const auto& a, const auto& b) {
    return a.size != b.size ? a.size > b.size : a.all.better_than(b.all);
  });
  for (std::size_t from = 0; from < idle.size();) {
    auto to = from;
    while (to < idle.size() && idle[to].size == idle[from].size)
      ++to;
    const int size = idle[from].size;
    if (need % size == 0 && static_cast<int>(to - from) >= need / size) {
      offer equal;
      for (auto i = from; i < from + static_cast<std::size_t>(need / size); ++i) {
        equal.on.push_back(idle[i].all.on.front());
        equal.holders.insert(equal.holders.end(), idle[i].all.holders.begin(), idle[i].all.holders.end());
      }
      if (equal.better_than(best))
        best = std::move(equal);
    }
    from = to;
  }
  if (best.on.empty() && settings_.gangs == gang_rule::whole_mixed) {
    int left = need;
    for (const auto& x : idle)
      if (x.size <= left) {
        best.on.push_back(x.all.on.front());
        left -= x.size;
      }
    if (left > 0)
      best.on.clear();
  }
  return best.on;
}

} // namespace troupe
