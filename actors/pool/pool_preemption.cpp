// Preemption: which runs end for another run, and when it is tried again where too few could.

#include "actors/pool/pool.hpp"

#include <algorithm>
#include <string_view>

namespace troupe {

/// Preempts other runs so that `run` gets the slots that it needs, below all limits. Where that is not
/// possible, it returns false and preempts none. Slots of runs that are stopping already count as available,
/// unless they are kept for another run.
bool pool::make_room(actions& out, pool_run& run, time_point now) {
  if (!policy_->may_preempt(run))
    return false;
  const auto lacks = lacks_of(run);
  if (hopeless(run, lacks)) {
    stand_by(run, lacks);
    return false;
  }
  // In a fair pool no job is brought below its share. So a victim that does not help may be the reason why a
  // larger run of the same job is not chosen: the choice is made again without that victim.
  std::set<allocation_id> spared;
  for (int tries = policy_->ranked() ? 1 : 8; tries > 0; --tries) {
    const auto in_vain = preempt_for(out, run, lacks, spared, now);
    if (!in_vain)
      return true;
    if (!*in_vain)
      return false;
    spared.insert(*in_vain);
  }
  return false;
}

/// The same, where `lacks` tells how many slots are missing below which limits, and no run of `spared` is
/// preempted. Returns nothing if it has made room; else the first run that it chose in vain, or an empty id
/// if it could choose none.
std::optional<allocation_id> pool::preempt_for(actions& out, pool_run& run, std::vector<lack> lacks,
                                               const std::set<allocation_id>& spared, time_point now) {
  const auto source = policy_->victims(run, running_, jobs_, now);
  if (!source)
    return allocation_id{};
  const auto helps_limit = [&](const pool_run& one) {
    return std::any_of(lacks.begin(), lacks.end(),
                       [&](const lack& x) { return x.slots > 0 && is_under(one, x.key); });
  };
  source->helps = [&](const pool_run& young) { return !is_lacking(lacks) || helps_limit(young); };
  if (!policy_->ranked())
    source->skips = [&](const pool_run& one) {
      return spared.contains(one.id) ||
             (!helps_limit(one) && std::none_of(one.on.begin(), one.on.end(), [&](const agent_part& part) {
               return refusal(run.terms.rules, part.agent->now.name, part.agent->traits).empty();
             }));
    };
  std::vector<pool_run*> victims;
  const auto next = [&] {
    auto* victim = source->next();
    if (victim) {
      victims.push_back(victim);
      give(lacks, *victim, 1);
    }
    return victim != nullptr;
  };
  const auto failed = [&] {
    remember(run, lacks, source->later());
    return victims.empty() ? allocation_id{} : victims.front()->id;
  };
  while (is_lacking(lacks) && next()) {
  }
  if (is_lacking(lacks))
    return failed();
  bars lifted;
  std::vector<pool_run*> others;
  for (const auto id : keepers_)
    if (auto& keeper = runs_.at(id); policy_->overrides(run, keeper)) {
      lift(lifted, keeper.kept, pool_agent::kept);
      others.push_back(&keeper);
    }
  lift(lifted, run.kept, pool_agent::kept); // the run may use its own reservation
  for (const auto id : stopping_)
    lift(lifted, runs_.at(id).on, pool_agent::held);
  for (const auto* victim : victims)
    lift(lifted, victim->on, pool_agent::held);
  auto on = fit(run, run.need());
  while (on.empty() && next()) {
    lift(lifted, victims.back()->on, pool_agent::held);
    on = fit(run, run.need());
  }
  if (on.empty()) {
    lower(lifted);
    return failed();
  }
  std::sort(victims.begin(), victims.end(), by_rank());
  std::erase_if(victims, [&](auto* victim) { // spares victims without which the run fits as well
    change_slots(victim->on, [&](pool_agent& agent, int slot) {
      set_bars(agent, slot, agent.slots[static_cast<std::size_t>(slot)].bars | pool_agent::held);
    });
    give(lacks, *victim, -1);
    if (!is_lacking(lacks) && !fit(run, run.need()).empty())
      return true;
    give(lacks, *victim, 1);
    change_slots(victim->on, [&](pool_agent& agent, int slot) {
      set_bars(
        agent, slot,
        static_cast<std::uint8_t>(agent.slots[static_cast<std::size_t>(slot)].bars & ~pool_agent::held));
    });
    return false;
  });
  on = fit(run, run.need());
  lower(lifted);
  if (victims.empty() && run.reserved && will_be_free(run.kept))
    return allocation_id{}; // the reservation is as good, and nobody else gets its slots
  drop_kept(&out, run);
  take_from(out, others, on);
  for (auto* victim : victims)
    preempt(out, *victim, run.id, settings_.scheduler == scheduler_kind::fair ? "fair_share" : "priority");
  keep(run, std::move(on), false, now);
  run.loose = victims.empty();
  return std::nullopt;
}

/// Whether nobody holds these slots but runs that are stopping.
bool pool::will_be_free(const agent_parts& on) const {
  bool all = true;
  each_slot(on, [&](const pool_agent& agent, int slot) {
    const auto* holder = agent.slots[static_cast<std::size_t>(slot)].holder;
    all = all && (!holder || holder->state == pool_run::phase::stopping);
  });
  return all;
}

/// Whether it is already known that preemption cannot help a run that lacks room below these limits. It never
/// helps where the job's own limit is full, as no run is preempted for another run of its job.
bool pool::hopeless(const pool_run& run, const std::vector<lack>& lacks) const {
  return std::any_of(lacks.begin(), lacks.end(), [&](const lack& x) {
    const auto most = most_of(x.key);
    const auto known = tried_.find(x.key);
    return x.key.of == run_bar::job || (most && *most < run.need()) ||
           (known != tried_.end() && known->second.rank <= run.job->rank && known->second.need <= run.need());
  });
}

/// Remembers why no runs can be preempted for this one, so that the run is tried again when that changes.
/// `lacks`: how many slots would still be missing below each limit if all possible victims ended; `later`:
/// when a run that is too young now may become another victim.
void pool::remember(const pool_run& run, const std::vector<lack>& lacks, std::optional<time_point> later) {
  const auto waits_for = full_limit(run);
  if (waits_for.of == run_bar::none) { // the run goes on competing
    if (later)
      ripe_ = std::min(ripe_.value_or(time_point::max()), *later);
    return;
  }
  if (later) {
    const auto at = ripe_below_.try_emplace(waits_for, *later).first;
    at->second = std::min(at->second, *later);
  } else if (policy_->ranked()) {
    for (const auto& x : lacks)
      if (x.slots > 0)
        tried_[x.key] = {run.job->rank, run.need()};
  }
  stand_by(run, lacks);
}

/// Lets the run be tried again whenever slots are released, if what it waits for is not only room below the
/// limit for which it stands aside.
void pool::stand_by(const pool_run& run, const std::vector<lack>& lacks) {
  const auto waits_for = full_limit(run);
  const bool only = is_lacking(lacks) && std::all_of(lacks.begin(), lacks.end(), [&](const lack& x) {
                      return x.slots <= 0 || x.key == waits_for;
                    });
  if (!only && waits_for.of > run_bar::job)
    unfit_below_.insert(waits_for);
}

void pool::preempt(actions& out, pool_run& victim, allocation_id wanted_by, const char* reason,
                   std::string detail) {
  if (victim.state != pool_run::phase::holding)
    return;
  victim.state = pool_run::phase::stopping;
  victim.killed = reason == std::string_view("disabled");
  victim.job->stopping += victim.held();
  policy_->changed(*victim.job);
  running_.erase(victim);
  stopping_.insert(victim.id);
  out.push_back(preempt_allocation{victim.id, wanted_by, reason, std::move(detail)});
}

} // namespace troupe
