#include "actors/pool/pool.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// How long an agent has to kill what only its inventory names, before other instances are launched for the
/// runs that wait for these slots.
constexpr duration stray_patience = 30s;

} // namespace

pool_settings pool::first_come() {
  pool_settings settings;
  settings.scheduler = scheduler_kind::fifo;
  return settings;
}

pool::pool(phase begin, pool_settings settings)
    : settings_(std::move(settings)), policy_(make_policy(settings_)), phase_(begin) {
  view_of({}); // most runs have no rules and use this view
}

std::vector<pool_action> pool::apply(const pool_event& ev, time_point now) { return decided({&ev, 1}, now); }
std::vector<pool_action> pool::apply(const std::vector<pool_event>& events, time_point now) {
  return decided(events, now);
}

std::vector<pool_action> pool::decided(std::span<const pool_event> events, time_point now) {
  actions out;
  out.reserve(11); // as many as a small block of the heap holds
  now_ = now;
  // A reservation that was due before these events is made first. Where a run leaves, its slots may serve the
  // run that waits, which then needs no reservation.
  const auto leaves = [](const pool_event& ev) { return std::holds_alternative<slots_released>(ev); };
  if (phase_ == phase::placing && std::none_of(events.begin(), events.end(), leaves))
    reserve(out, now);
  for (const auto& ev : events)
    std::visit([&](const auto& x) { on(out, x); }, ev);
  if (!unheld_.empty())
    report_unheld(out);
  if (phase_ == phase::placing)
    decide(out, now);
  if (queue_.empty() && !left_.empty()) { // nobody waits whom these could pass
    left_.clear();
    leavers_.clear();
  }
  return out;
}

std::optional<time_point> pool::deadline() const {
  if (phase_ == phase::recovering)
    return std::nullopt;
  auto next = ripe_;
  if (!reserved_for_ && !young_.empty())
    next = std::min(next.value_or(time_point::max()), young_.front().since + settings_.reserve_after);
  if (!patient_.empty())
    next = std::min(next.value_or(time_point::max()), patient_.begin()->first);
  for (const auto& [limit, ripe] : ripe_below_)
    next = std::min(next.value_or(time_point::max()), ripe);
  if (!supply_.type.empty() && now_ < strays_until_)
    next = std::min(next.value_or(time_point::max()), strays_until_);
  return next;
}

// ---- agents

void pool::on(actions& out, const agent_up& ev) {
  auto& agent = agent_named(ev.agent);
  total_ -= agent.present ? static_cast<int>(agent.slots.size()) : 0;
  // A grant of this pool stands whatever the inventory says, as the order to start may still be on its way.
  // All other holders are taken from the inventory, as a task that the agent has killed is missing there.
  forget_strays(agent, std::max(0, ev.slots));
  agent.present = agent.expected = agent.seen = true;
  agent.traits = ev.traits;
  if (is_of_instance(ev.agent))
    learn_of_instance(agent);
  agent.slots.resize(static_cast<std::size_t>(std::max(0, ev.slots)),
                     pool_agent::slot{nullptr, nullptr, pool_agent::closed});
  total_ += static_cast<int>(agent.slots.size());
  refresh(agent);
  for (const auto& [text, numbers] : ev.busy) {
    const auto id = parse_allocation(text);
    agent_parts on{agent_part{&agent, {}}};
    for (const int number : numbers)
      if (number >= 0 && number < ev.slots && !agent.slots[static_cast<std::size_t>(number)].holder)
        on[0].slots.push_back(number);
    if (on[0].slots.empty() || !id)
      continue;
    auto known = runs_.find(id);
    if (known == runs_.end()) {
      hold(enter(id, {}, slots_in(on), 0), std::move(on), {});
      strays_until_ = now_ + stray_patience;
    } else if (auto& run = known->second; run.waits()) { // the run holds slots that an earlier pool granted
      drop_kept(&out, run);
      stop_waiting(run);
      out.push_back(grant_slots{run.id, placements(on), false});
      hold(run, std::move(on), now_);
    }
  }
  topology_changed(out);
}

/// Forgets holders that only an earlier inventory named, and drops what is kept on slots that no longer
/// exist.
void pool::forget_strays(pool_agent& agent, int slots) {
  std::map<allocation_id, pool_run*> strays;
  for (const auto& s : agent.slots)
    if (s.holder && !s.holder->granted)
      strays.emplace(s.holder->id, s.holder);
  for (std::size_t i = static_cast<std::size_t>(slots); i < agent.slots.size(); ++i)
    if (auto* holder = agent.slots[i].holder)
      strays.emplace(holder->id, holder);
  for (const auto& [id, stray] : strays) {
    auto& run = *stray;
    let_go(run, &agent);
    if (run.on.empty() && !run.granted)
      forget(run);
  }
  for (std::size_t i = static_cast<std::size_t>(slots); i < agent.slots.size(); ++i)
    if (auto* keeper = agent.slots[i].keeper)
      drop_kept(nullptr, *keeper);
}

void pool::on(actions& out, const agent_down& ev) {
  if (ev.gone && !known_agent(ev.agent))
    return;
  auto& agent = agent_named(ev.agent);
  agent.expected = !ev.gone;
  agent.back_until = ev.until;
  unjudged_ = excluding_;
  if (!agent.present)
    return;
  forget_strays(agent, static_cast<int>(agent.slots.size()));
  total_ -= static_cast<int>(agent.slots.size());
  agent.present = false;
  refresh(agent);
  topology_changed(out);
}

void pool::on(actions& out, const agent_drain& ev) {
  auto& agent = agent_named(ev.agent);
  agent.drained = ev.on;
  agent.disabled = {ev.disabled.begin(), ev.disabled.end()};
  agent.ends = ev.ends;
  agent.ended = {ev.ended.begin(), ev.ended.end()};
  agent.ordered_by = ev.by;
  agent.leaves_for = ev.leaves_for;
  refresh(agent);
  if (agent.ends || !agent.ended.empty())
    for (auto* run : holders())
      end_disabled(out, *run);
  topology_changed(out);
}

/// The runs that hold slots or aux units, in the order of their ids.
std::vector<pool_run*> pool::holders() {
  std::vector<pool_run*> all;
  for (auto& [id, run] : runs_)
    if (!run.waits())
      all.push_back(&run);
  std::sort(all.begin(), all.end(), [](const auto* a, const auto* b) { return a->id < b->id; });
  return all;
}

/// Which agent or slot that the run holds was disabled, and by whom, where an operator wants nothing to run;
/// empty: none.
std::string pool::disabled_text(const pool_run& run) {
  for (const auto& part : run.on) {
    const auto& agent = *part.agent;
    const auto off = std::find_if(part.slots.begin(), part.slots.end(),
                                  [&](int slot) { return agent.ended.contains(slot); });
    if (agent.ends || off != part.slots.end())
      return (agent.ends ? std::string() : "slot " + std::to_string(*off) + " of ") + "agent " +
             agent.now.name + " was disabled" + (agent.ordered_by.empty() ? "" : " by " + agent.ordered_by);
  }
  return {};
}

/// Ends the run where it holds slots on which an operator wants nothing to run, even where the run was
/// already preempted and is saving. A run that only an inventory has named is ended once its allocation says
/// what it holds, as nobody could take the order before.
void pool::end_disabled(actions& out, pool_run& run) {
  auto why = disabled_text(run);
  if (!run.granted || run.waits() || why.empty())
    return;
  if (run.state == pool_run::phase::holding) {
    preempt(out, run, {}, "disabled", std::move(why));
  } else {
    run.killed = true;
    out.push_back(preempt_allocation{run.id, {}, "disabled", std::move(why)});
  }
}

void pool::on(actions& out, const agent_forgotten& ev) {
  const auto it = agents_.find(ev.agent);
  if (it == agents_.end())
    return;
  on(out, agent_down{ev.agent});
  for (auto* run : holders()) // also runs that hold aux units there
    if (std::any_of(run->on.begin(), run->on.end(), [&](const auto& x) { return x.agent == &it->second; }))
      let_go(*run, &it->second);
  by_name_.erase(ev.agent);
  agents_.erase(it);
  unjudged_ = excluding_;
}

// ---- runs

void pool::on(actions& out, const slots_requested& ev) {
  if (auto known = runs_.find(ev.allocation); known != runs_.end()) {
    auto& run = known->second;
    if (run.guest && ev.home.empty()) { // its job has moved to this pool
      stop_waiting(run);
      run.since = now_;
      run.entered = ++clock_;
      wait_at_home(run);
      return;
    }
    if (run.waits()) {
      if (!run.guest && !run.terms.excluded.empty())
        judge_excluded(run.id); // the allocation may have missed the answer that waiting makes no sense
      return;
    }
    if (!run.granted) { // only an inventory has named it
      const auto since = run.since;
      auto on = run.on;
      out.push_back(grant_slots{run.id, placements(on)});
      let_go(run, nullptr);
      forget(run);
      take_holder(out, ev.allocation, ev.run, {ev.slots, ev.least}, std::move(on), since);
      return;
    }
    if (run.least != ev.least || run.slots != ev.slots) {
      run.slots = std::max(ev.slots, run.held());
      run.least = ev.least;
      if (run.least > 0 && run.held() < run.slots)
        elastic_.insert(run.id);
    }
    out.push_back(grant_slots{run.id, placements(run.on)}); // the first answer may be lost
    return;
  }
  auto& run = enter(ev.allocation, dated(ev.run), std::max(0, ev.slots), ev.least);
  run.granted = true;
  // A request that a new pool hears while it recovers has waited since its run began, not only since now.
  const bool waited = phase_ == phase::recovering && run.terms.started != time_point{};
  run.since = waited ? std::min(now_, run.terms.started) : now_;
  run.entered = ++clock_;
  if (!ev.home.empty()) {
    run.guest = true;
    guests_.insert(run);
    new_guests_.insert(run.id);
    return;
  }
  wait_at_home(run);
}

/// Puts a run that no other pool is the home of into the indexes of runs that wait.
void pool::wait_at_home(pool_run& run) {
  if (!run.terms.excluded.empty())
    judge_excluded(run.id);
  if (!settings_.fallback.empty())
    patient_.insert({run.since + settings_.fallback_after, run.id});
  if (run.slots == 0) {
    aux_waiting_.insert(run);
    return;
  }
  ++run.job->waits;
  run.job->wanted += run.slots;
  if (policy_->passes())
    grows_old(run);
  if (could_hold(run)) {
    compete(run);
    return;
  }
  step_aside(run, {run_bar::impossible, {}, {}});
  unheld_.push_back(run.id);
}

/// Tells those runs that have just asked and that the pool could not hold. A run that `give_up_excluded` ends
/// hears only that, as it does not wait.
void pool::report_unheld(actions& out) {
  for (const auto id : std::exchange(unheld_, {}))
    if (const auto it = runs_.find(id); it != runs_.end() && it->second.waits() && total_ > 0 &&
                                        !could_hold(it->second) && !could_ever_hold(it->second) &&
                                        !(unjudged_.contains(id) && lacks_excluded(it->second)))
      out.push_back(report_unplaceable{id, it->second.need(), total_});
}

/// A job that does not say when it was submitted gets the time of the first of its runs.
run_terms pool::dated(run_terms terms) const {
  if (terms.job.submitted == time_point{})
    if (const auto job = jobs_.find(terms.job.job); job != jobs_.end())
      terms.job.submitted = job->second.terms.submitted;
  return terms;
}

/// Takes back the request of a waiting run and forgets the run.
void pool::withdraw(actions& out, pool_run& run) {
  if (!run.waits())
    return;
  if (run.came_from.of != run_bar::none)
    eased_.insert(run.came_from); // another run may use the room below that limit
  // Other runs may fit on the slots that are no longer kept.
  if (!run.kept.empty())
    eased_.merge(std::exchange(unfit_below_, {}));
  drop_kept(&out, run);
  stop_waiting(run);
  forget(run);
}

void pool::stop_waiting(pool_run& run) {
  if (std::exchange(run.guest, false)) {
    guests_.erase(run);
    new_guests_.erase(run.id);
    return;
  }
  patient_.erase({run.since + settings_.fallback_after, run.id});
  excluding_.erase(run.id);
  unjudged_.erase(run.id);
  run.fell_back = false;
  if (run.slots == 0) {
    aux_waiting_.erase(run);
    return;
  }
  leave_queue(run);
  run.job->wanted -= run.slots;
  --run.job->waits;
  if (run.young.is_linked())
    run.young.unlink();
  run.aged = run.passed = false;
  if (run.came_from.of != run_bar::none)
    run.came_from = {};
}

void pool::on(actions& out, const slots_released& ev) {
  const auto it = runs_.find(ev.allocation);
  if (it == runs_.end())
    return;
  auto& run = it->second;
  if (run.waits()) {
    if (ev.agent.empty())
      withdraw(out, run);
    return;
  }
  if (ev.agent.empty()) {
    let_go(run, nullptr);
    forget(run);
  } else if (const auto* agent = known_agent(ev.agent)) {
    let_go(run, agent);
    if (run.on.empty())
      forget(run);
  }
}

/// The inventory of the agent may name the same slots before or after this event.
void pool::on(actions& out, const slots_held& ev) {
  if (auto known = runs_.find(ev.allocation); known != runs_.end()) {
    if (known->second.waits()) {
      withdraw(out, known->second);
    } else if (known->second.granted) {
      return;
    } else { // only an inventory has named the run
      let_go(known->second, nullptr);
      forget(known->second);
    }
  }
  agent_parts on;
  for (const auto& part : ev.on) {
    auto& agent = agent_named(part.agent);
    agent_part here{&agent, {}};
    for (const int slot : part.slots) {
      const bool there = slot >= 0 && slot < static_cast<int>(agent.slots.size());
      bool taken = there && agent.slots[static_cast<std::size_t>(slot)].holder;
      // When the order to start a run is lost, the run asks for slots again. In a journal of an older build
      // no fact tells that, and its slot may have been granted to another run since. After a start of the
      // master both runs then say that they hold it, and the later grant is the valid one.
      if (auto* other = taken ? agent.slots[static_cast<std::size_t>(slot)].holder : nullptr;
          other && other->granted && other->since < ev.since) {
        lose_slot(*other, agent, slot);
        taken = false;
      }
      const bool none = slot < 0 || (agent.present && !there);
      if (!taken && !none)
        here.slots.push_back(slot);
    }
    if (!here.slots.empty() || part.slots.empty())
      on.push_back(std::move(here));
  }
  take_holder(out, ev.allocation, ev.run, {ev.slots, ev.least}, std::move(on), ev.since);
}

/// Takes a run of which its allocation says that it holds these slots. `wanted`: slots, and the least number.
void pool::take_holder(actions& out, allocation_id id, const run_terms& terms, std::pair<int, int> wanted,
                       agent_parts on, time_point since) {
  auto& run = enter(id, dated(terms), std::max(wanted.first, slots_in(on)), wanted.second);
  run.granted = true;
  run.entered = ++clock_;
  hold(run, std::move(on), since);
  for (const auto& key : limits_of(run))
    strained_.insert(key);
  end_disabled(out, run);
}

void pool::on(actions&, const holders_heard&) {
  if (std::exchange(unsorted_, false))
    young_.sort(waits_longer);
  phase_ = phase::placing;
}

void pool::on(actions&, const job_changed& ev) {
  auto job = jobs_.find(ev.job.job);
  if (job == jobs_.end())
    return; // the next run of the job brings the terms
  auto terms = ev.job;
  if (terms.submitted == time_point{})
    terms.submitted = job->second.terms.submitted;
  job->second.told = false;
  take_terms(job->second, terms);
  job->second.told = true;
}

void pool::on(actions& out, const pool_configured& ev) {
  const auto settings = pool_settings_of(ev.settings);
  if (!settings)
    return; // not expected, as the cluster has checked the settings
  for (const auto id : std::set(keepers_))
    drop_kept(&out, runs_.at(id));
  const bool elsewhere = settings->fallback != settings_.fallback;
  settings_ = *settings;
  patient_.clear();
  const auto queue = queued();
  for (const auto& runs : {queue, aux_waiting_.list()})
    for (auto* run : runs) {
      if (run->fell_back && elsewhere && settings_.fallback.empty())
        out.push_back(fall_back{run->id, {}});
      run->fell_back = run->fell_back && !elsewhere;
      if (!run->fell_back && !settings_.fallback.empty())
        patient_.insert({run->since + settings_.fallback_after, run->id});
    }
  policy_ = make_policy(settings_);
  second_turns_.clear();
  for (auto& [shape, runs] : queue_)
    runs.shut = 0;
  for (auto& [name, agent] : agents_) // the order of fitting may have changed
    for (auto* group : agent.groups) {
      group->now.erase(agent.now);
      group->empty.erase(agent.empty);
    }
  for (auto& [rules, view] : views_)
    view.groups.clear();
  for (auto& [name, agent] : agents_) {
    agent.groups.clear();
    if (agent.present)
      join_views(agent);
  }
  young_.clear();
  aged_ = {};
  for (auto* run : queue) {
    run->aged = false;
    if (policy_->passes())
      young_.push_back(*run);
  }
  young_.sort(waits_longer);
  index_holders();
  for (auto& [id, job] : jobs_) {
    job.notes = {};
    policy_->changed(job);
    rerank(job);
  }
  ripe_below_.clear();
  unfit_below_.clear();
  ease_all();
  for (const auto& [key, used] : used_)
    strained_.insert(key);
  topology_changed(out);
}

void pool::on(actions&, const time_passed&) {}

void pool::on(actions&, const supply_told& ev) {
  if (ev.type != supply_.type || ev.changes != supply_.changes) {
    instance_traits_.reset();
    instance_names_.clear();
  }
  const auto before = std::exchange(supply_, ev);
  for (const auto& name : supply_.agents)
    if (const auto* agent = known_agent(name); agent && agent->present && !before.agents.contains(name))
      learn_of_instance(*agent); // the agent registered before the provider had told of its instance
  unjudged_ = excluding_;
}

// ---- who gets what

void pool::decide(actions& out, time_point now) {
  ripe_.reset();
  end_excess(out);
  // A run that a limit forbids now must not hold others up, and slots of runs that stop for nobody go to
  // whose turn it is now.
  for (const auto id : std::set(keepers_))
    if (auto& run = runs_.at(id); run.loose || barred_by(run).of != run_bar::none)
      drop_kept(&out, run);
  for (const auto& [limit, ripe] : ripe_below_)
    if (ripe <= now)
      eased_.insert(limit);
  do {
    readmit();
    pass(out, now);
    for (const auto* job : policy_->risen())
      if (settings_.preempts() && !aside_.empty())
        ease(*job);
  } while (!eased_.empty());
  pass_aux(out, now);
  reserve(out, now);
  pass_guests(out, now);
  let_fall_back(out, now);
  give_up_excluded(out);
  offer_rest(out);
}

void pool::judge_excluded(allocation_id id) {
  excluding_.insert(id);
  unjudged_.insert(id);
}

/// Tells runs whose log policies exclude the only agents that could hold them; such a run then ends. A run
/// that may get slots after all goes on waiting.
void pool::give_up_excluded(actions& out) {
  for (const auto id : std::exchange(unjudged_, {})) {
    const auto& run = runs_.at(id);
    if (!lacks_excluded(run))
      continue;
    excluding_.erase(id);
    out.push_back(report_unplaceable{id, run.need(), total_, run.terms.excluded});
  }
}

/// Whether the run cannot be placed only because its log policies exclude agents. This is not so while an
/// agent that is away may come back, an instance may be launched, or the run may fall back to another pool.
bool pool::lacks_excluded(const pool_run& run) const {
  const auto& excluded = run.terms.excluded;
  const auto there = [&](const std::string& name) { return has(name); };
  // An excluded instance takes the place of another one, as the provider keeps instances while runs wait.
  const auto blocked = static_cast<int>(std::count_if(excluded.begin(), excluded.end(), there));
  if (!settings_.fallback.empty() || supply_can_hold(run, std::min(blocked, supply_.instances)))
    return false;
  const auto could_hold_it = [&](const placement_rules& rules) {
    if (run.slots > 0)
      return fits_bare(run, rules);
    return std::any_of(agents_.begin(), agents_.end(), [&](const auto& x) {
      return x.second.present && aux_of(x.second) > 0 && refusal(rules, x.first, x.second.traits).empty();
    });
  };
  const auto& rules = run.terms.rules;
  placement_rules names; // only names are checked, as an agent that is away may come back with other traits
  names.agents = rules.agents;
  names.not_agents = rules.not_agents;
  const bool may_come = std::any_of(agents_.begin(), agents_.end(), [&](const auto& x) {
    return !x.second.present && may_return(x.second) && refusal(names, x.first, {}).empty();
  });
  if (may_come || could_hold_it(rules))
    return false;
  auto all = rules;
  std::erase_if(all.not_agents, [&](const std::string& name) {
    return std::find(excluded.begin(), excluded.end(), name) != excluded.end();
  });
  return could_hold_it(all);
}

void pool::begin_turns() {
  policy_->begin(queue_, jobs_, settings_.max_slots < 0 ? open_ : std::min(open_, settings_.max_slots));
}

/// To be called before the policy is asked for the order outside of a pass, as the last pass may be long ago.
void pool::refresh_turns() {
  if (!policy_->ranked())
    begin_turns();
}

void pool::pass(actions& out, time_point now) {
  passing_ = true;
  unreservable_ = false;
  age(now);
  bool begun = false;            // the turns begin only where slots are free or may become so
  std::vector<pool_run*> behind; // runs that did not fit, in a pool of turns
  std::vector<pool_run*> blocked;
  const auto& all = views_.at({}).groups;
  for (;;) {
    const bool nothing = kept_free_ == 0 && (all.empty() || all.begin()->second.now.free() == 0);
    if (nothing && !settings_.preempts())
      break;
    if (!std::exchange(begun, true))
      begin_turns();
    const auto turn = policy_->next();
    if (!turn.run) {
      if (!let_aside(out, blocked))
        break;
      begin_turns(); // runs that these held up have their turns
      continue;
    }
    auto& run = *turn.run;
    if (run.young.is_linked()) { // its neighbours in the list change when it leaves
      fetch(young_runs::node_traits::get_next(&run.young), 1);
      fetch(young_runs::node_traits::get_previous(&run.young), 1);
    }
    const auto limit = full_limit(run);
    const bool below = limit.of == run_bar::none;
    if (!below && !claims(run)) {
      drop_kept(&out, run);
      if (make_room(out, run, now)) {
        eased_.insert(limit); // the next run may have victims below this limit, too
        policy_->ended(turn, turn_end::claimed);
      } else {
        leave_queue(run);
        step_aside(run, limit);
        policy_->ended(turn, turn_end::placed);
      }
      if (std::exchange(taken_, false))
        begin_turns();
      continue;
    }
    if (auto* waits = passed_by(run, behind); below && waits && !fit_range(run).empty()) {
      // The run counts as passed, so that slots are chosen again where it loses this reservation.
      if (!std::exchange(waits->passed, true))
        index_aged(*waits);
      unreservable_ = !reserve_for(out, *waits, now);
      begin_turns(); // the free slots and the runs that are held up have changed
      continue;
    }
    if (auto on = below ? place(out, run) : agent_parts(); !on.empty()) {
      for (auto* passed : behind)
        if (!std::exchange(passed->passed, true))
          index_aged(*passed);
      grant(out, run, std::move(on), turn.backfill, now);
      policy_->ended(turn, turn_end::placed);
    } else if ((run.kept.empty() || run.reserved) && make_room(out, run, now)) {
      policy_->ended(turn, turn_end::claimed);
    } else {
      if (!policy_->ranked())
        behind.push_back(&run);
      blocked.push_back(&run);
      policy_->ended(turn, turn_end::blocked);
    }
    if (std::exchange(taken_, false))
      begin_turns(); // runs that lost the slots kept for them have their turns again
  }
  passing_ = false;
  std::erase_if(queue_, [](const auto& x) { return x.second.empty(); });
}

/// Sets aside those of the `blocked` runs that are above a limit now, as runs behind them have filled that
/// limit. They no longer hold others up. Returns whether there were any.
bool pool::let_aside(actions& out, std::vector<pool_run*>& blocked) {
  bool any = false;
  for (auto* run : std::exchange(blocked, {}))
    if (run->waits() && run->bar.of == run_bar::none)
      if (const auto limit = barred_by(*run); limit.of != run_bar::none) {
        drop_kept(&out, *run);
        leave_queue(*run);
        step_aside(*run, limit);
        if (settings_.preempts())
          unfit_below_.insert(limit); // the run had found no slots that it could have when the limit had room
        any = true;
      }
  return any;
}

/// Slots that the run can have at once: free slots, or else also slots that are kept for it or for runs that
/// it may override. Such a run loses its kept slots and has its turn again.
agent_parts pool::place(actions& out, pool_run& run) {
  if (!run.kept.empty() && run.need() == run.slots) {
    bool all = true;
    each_slot(run.kept, [&](pool_agent& agent, int slot) {
      all = all && agent.slots[static_cast<std::size_t>(slot)].bars == pool_agent::kept;
    });
    if (all && run.kept.size() > 1) { // meanwhile fewer agents may hold it
      bars lifted;
      lift(lifted, run.kept, pool_agent::kept);
      auto on = fit(run, run.slots);
      lower(lifted);
      if (!on.empty() && on.size() < run.kept.size())
        return on;
    }
    if (all)
      return run.kept;
  }
  if (auto on = fit_range(run); !on.empty())
    return on;
  if (kept_free_ == 0)
    return {};
  bars lifted;
  std::vector<pool_run*> others;
  lift(lifted, run.kept, pool_agent::kept);
  for (const auto id : keepers_)
    if (auto& keeper = runs_.at(id); id != run.id && policy_->overrides(run, keeper)) {
      lift(lifted, keeper.kept, pool_agent::kept);
      others.push_back(&keeper);
    }
  auto on = lifted.empty() ? agent_parts{} : fit_range(run);
  lower(lifted);
  if (!on.empty())
    take_from(out, others, on);
  return on;
}

/// Drops all kept slots of each run of `keepers` that loses one of these slots.
void pool::take_from(actions& out, const std::vector<pool_run*>& keepers, const agent_parts& on) {
  std::set<const pool_run*> losers; // never iterated, as the order of pointers means nothing
  each_slot(on, [&](pool_agent& agent, int slot) {
    losers.insert(agent.slots[static_cast<std::size_t>(slot)].keeper);
  });
  for (auto* keeper : keepers)
    if (losers.contains(keeper)) {
      drop_kept(&out, *keeper);
      taken_ = true;
    }
}

void pool::grant(actions& out, pool_run& run, agent_parts on, bool backfill, time_point now) {
  if (run.came_from.of != run_bar::none && settings_.preempts())
    eased_.insert(run.came_from); // the next run that waits for that limit may have victims below it
  drop_kept(nullptr, run);
  stop_waiting(run);
  run.entered = ++clock_;
  if (!policy_->ranked()) {
    note_second_turn(*run.job);
  } else {
    const run_rank rank{run.job->rank, run.rank};
    while (!grants_.empty() && grants_.back().second < rank)
      grants_.pop_back();
    grants_.emplace_back(run.entered, rank);
    if (grants_.size() > 100'000)
      grants_.pop_front();
  }
  out.push_back(grant_slots{run.id, placements(on), backfill});
  hold(run, std::move(on), now);
}

const pool_agent* pool::aux_agent_for(const pool_run& run) const {
  const pool_agent* best = nullptr;
  double best_score = 0;
  for (const auto& [name, agent] : agents_) {
    const int most = aux_of(agent);
    if (!agent.present || agent.drained || !viable(0, 0, 0, most, agent.aux_used) ||
        !refusal(run.terms.rules, name, agent.traits).empty())
      continue;
    const double score = fitting_score(settings_.fitting, 0, 0, 0, most, agent.aux_used);
    if (!best || score > best_score) {
      best = &agent;
      best_score = score;
    }
  }
  return best;
}

void pool::pass_aux(actions& out, time_point now) {
  std::set<placement_rules> full; // rules for which no agent has an aux unit left
  for (auto* waits : aux_waiting_.list()) {
    auto& run = *waits;
    if (full.contains(run.terms.rules))
      continue;
    const auto* best = aux_agent_for(run);
    if (!best) {
      full.insert(run.terms.rules);
      continue;
    }
    stop_waiting(run);
    agent_parts on{agent_part{best->now.of, {}}};
    out.push_back(grant_slots{run.id, placements(on), false});
    hold(run, std::move(on), now);
  }
}

/// Grants slots that no run of this pool waits for to guests. A new guest that gets nothing is told that it
/// waits.
void pool::pass_guests(actions& out, time_point now) {
  if (!guests_.empty())
    refresh_turns();
  const auto* next = guests_.empty() ? nullptr : next_in_turn();
  std::set<run_shape> blocked;
  for (auto* run : guests_.list()) {
    agent_parts on;
    if (run->slots == 0) {
      if (const auto* agent = aux_agent_for(*run); agent && aux_waiting_.empty())
        on.push_back(agent_part{agent->now.of, {}});
    } else if (!blocked.contains(run->shape()) && full_limit(*run).of == run_bar::none &&
               !ahead_of(*run, next)) {
      on = fit_range(*run);
      if (on.empty())
        blocked.insert(run->shape());
    }
    if (!on.empty())
      grant(out, *run, std::move(on), false, now);
  }
  for (const auto id : std::exchange(new_guests_, {}))
    out.push_back(guest_waits{id, {}});
}

void pool::let_fall_back(actions& out, time_point now) {
  while (!patient_.empty() && patient_.begin()->first <= now) {
    const auto id = patient_.begin()->second;
    patient_.erase(patient_.begin());
    runs_.at(id).fell_back = true;
    out.push_back(fall_back{id, settings_.fallback});
  }
}

int pool::aux_of(const pool_agent& agent) const {
  return agent.traits.aux >= 0 ? agent.traits.aux : settings_.aux_per_agent;
}

/// Offers slots that no run waits for to gangs that had to start, or to continue, with fewer slots than they
/// asked for.
void pool::offer_rest(actions& out) {
  if (elastic_.empty())
    return;
  const bool wanted = !queue_.empty();
  const int free = total_ - used_slots();
  for (const auto id : elastic_) {
    auto& run = runs_.at(id);
    const int held = run.held();
    const int could =
      held == 0 || wanted || run.state != pool_run::phase::holding
        ? 0
        : std::min({run.slots, held + free, held + std::clamp(most_within_limits(run), 0, run.slots)});
    if (could <= held)
      run.offered = 0;
    else if (std::exchange(run.offered, could) != could)
      out.push_back(report_spare{id, could});
  }
}

// ---- for others

std::vector<pool::waiting_entry> pool::waiting(std::size_t most) const {
  std::vector<waiting_entry> out;
  for (const auto& runs : {queued(most), aux_waiting_.list()})
    for (const auto* run : runs)
      if (out.size() < most)
        out.push_back({run->id, run->slots});
  return out;
}

bool pool::has(const std::string& agent) const {
  const auto* known = known_agent(agent);
  return known && known->present;
}

std::map<std::string, std::vector<allocation_id>> pool::agents() const {
  std::map<std::string, std::vector<allocation_id>> out;
  for (const auto& [name, agent] : agents_)
    if (agent.present) {
      auto& slots = out[name];
      for (const auto& s : agent.slots)
        slots.push_back(s.holder ? s.holder->id : allocation_id{});
    }
  return out;
}

std::vector<allocation_id> pool::held_on(const std::string& agent) {
  std::vector<allocation_id> out;
  if (const auto it = agents_.find(agent); it != agents_.end() && !is_idle(it->second))
    for (const auto* run : holders())
      if (std::any_of(run->on.begin(), run->on.end(), [&](const auto& x) { return x.agent == &it->second; }))
        out.push_back(run->id);
  return out;
}

bool pool::is_idle(const std::string& agent) const {
  if (phase_ == phase::recovering)
    return false; // a holder may not have been heard yet
  const auto it = agents_.find(agent);
  return it == agents_.end() || is_idle(it->second);
}
bool pool::is_idle(const pool_agent& agent) {
  return agent.aux_used == 0 && std::none_of(agent.slots.begin(), agent.slots.end(),
                                             [](const auto& slot) { return slot.holder != nullptr; });
}

std::string pool::snapshot() const {
  std::vector<std::pair<allocation_id, int>> queue;
  for (const auto& r : waiting())
    queue.emplace_back(r.allocation, r.slots);
  return pack(std::tuple{agents(), queue});
}

value pool::describe() const {
  value agents = value::object(), waiting = value::array();
  for (const auto& [name, agent] : agents_) {
    value held = value::array();
    for (const auto& s : agent.slots)
      held.push_back(s.holder ? value(to_string(s.holder->id)) : value());
    agents[name] = {
      {"slots", held}, {"away", !agent.present}, {"draining", agent.drained}, {"disabled", agent.disabled}};
  }
  value wanted = value::object(); // for each job, the slots that count for its share
  for (const auto& [id, job] : jobs_)
    wanted[to_string(id)] = job.wanted;
  std::size_t order = 0;
  for (const auto& r : this->waiting())
    waiting.push_back({{"allocation", to_string(r.allocation)}, {"slots", r.slots}, {"order", order++}});
  return {{"phase", phase_ == phase::recovering ? "recovering" : "placing"},
          {"scheduler", name(settings_.scheduler)},
          {"total", total_slots()},
          {"used", used_slots()},
          {"reserved", reserved_slots()},
          {"agents", agents},
          {"wanted", wanted},
          {"queue", waiting}};
}

} // namespace troupe
