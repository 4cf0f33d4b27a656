#include "actors/allocation/allocation.hpp"

#include "workers/worker_messages.hpp"

#include <algorithm>

namespace troupe {

/// How long a task whose hyperparameters cannot be trained may take to end by itself.
constexpr duration give_up_patience = 10s;
constexpr duration kill_again = 30s; ///< a kill is ordered again after this time, until it is done
/// When an agent that has not reported on its part is asked: after `first_ask`, then after longer and longer
/// pauses. The order to start, or the report that the task runs, may be lost.
constexpr duration first_ask = 5s, longest_ask = 60s;

namespace {

/// The stop that a preemption means. A run on a disabled agent or slot is killed at once.
allocation_stop stop_of(const allocation_preempted& order) {
  return {order.reason == "disabled", order.detail.empty() ? "preempted: " + order.reason : order.detail};
}

bool is_good(const task_exited& exit) { return exit.certain && exit.exit_code == 0 && exit.signal == 0; }

std::size_t ranks_of(const std::vector<placement>& on) {
  std::size_t n = 0;
  for (const auto& part : on)
    n += part.slots.size();
  return n;
}

} // namespace

allocation::allocation(allocation_spec spec) : spec_(std::move(spec)) {}

allocation_step allocation::apply(const allocation_event& ev, time_point now) {
  allocation_step s;
  if (const auto* end = std::get_if<allocation_closed>(&phase_)) {
    // A grant that reaches an ended run is released; a late report of an agent is answered with forget_task.
    std::visit(overloaded{
                 [&](const slots_granted& x) {
                   if (x.pool.empty() || spec_.home.empty())
                     s.actions.push_back(release_slots{});
                   else
                     s.actions.push_back(leave_pool{x.pool});
                 },
                 [&](const task_started& x) { s.actions.push_back(kill_task{x.agent}); },
                 [&](const task_exited& x) { s.actions.push_back(forget_task{x.agent}); },
                 [&](const allocation_stop&) {
                   s.actions.push_back(report_allocation_end{end->why, end->detail, end->finished,
                                                             end->exit_code, end->unplaceable, end->unbegun});
                 },
                 [](const auto&) {},
               },
               ev);
    return s;
  }
  std::visit([&](const auto& x) { on(s, x, now); }, ev);
  return s;
}

allocation_step allocation::apply(const allocation_task_event& ev, time_point now) {
  allocation_step s;
  if (!closed())
    std::visit([&](const auto& x) { on(s, x, now); }, ev);
  return s;
}

void allocation::on(allocation_step& s, const slots_granted& ev, time_point now) {
  if (!std::holds_alternative<asking>(phase_)) {
    if (ev.pool != pool_ && !ev.pool.empty() && !pool_.empty())
      s.actions.push_back(leave_pool{ev.pool}); // another pool was faster
    return;                                     // from the same pool, this repeats the grant that is in use
  }
  const bool elsewhere = !ev.pool.empty() && !spec_.home.empty() && ev.pool != spec_.home;
  // The time identifies the placement, so a clock that stands still or is set back must not give a time
  // again.
  const auto at = std::max(now, placed_at_ + duration(1));
  note(s, allocation_placed{at, ev.on, ev.pool, ev.backfilled, elsewhere ? spec_.home : std::string()});
  phase_ = running{now, {}};
  ask_pause_ = first_ask;
  ask_at_ = now + first_ask;
  if (elsewhere)
    s.actions.push_back(leave_pool{spec_.home});
  asked_.erase(ev.pool);
  for (const auto& pool : std::exchange(asked_, {}))
    s.actions.push_back(leave_pool{pool});
  fallback_.clear();
  for (std::size_t i = 0; i < ev.on.size(); ++i) {
    parts_[ev.on[i].agent] = {};
    s.actions.push_back(start_task{ev.on[i], int(i), int(ev.on.size()), at});
  }
}

// ---- to its end

const allocation_stop* allocation::stop() const {
  if (const auto* stopping = std::get_if<stopping_phase>(&phase_))
    return &stopping->order;
  const auto* killing = std::get_if<killing_phase>(&phase_);
  return killing && killing->order ? &*killing->order : nullptr;
}

std::optional<time_point> allocation::kill_at() const {
  return std::visit(overloaded{
                      [](const failing& x) { return std::optional{x.kill_at}; },
                      [](const stopping_phase& x) { return std::optional{x.kill_at}; },
                      [](const killing_phase& x) { return std::optional{x.again_at}; },
                      [](const auto&) { return std::optional<time_point>{}; },
                    },
                    phase_);
}

void allocation::enter_stop(const allocation_stop& order, time_point now) {
  if (auto* killing = std::get_if<killing_phase>(&phase_))
    killing->order = order;
  else if (order.kill)
    phase_ = killing_phase{order, now + kill_again};
  else
    phase_ = stopping_phase{order, kill_at().value_or(now + spec_.stop_limit)};
}

/// Running parts may end by themselves until `at`, or until an earlier time that was set before.
void allocation::kill_by(time_point at) {
  at = std::min(at, kill_at().value_or(at));
  std::visit(overloaded{
               [&](running&) { phase_ = failing{at}; },
               [&](failing& x) { x.kill_at = at; },
               [&](stopping_phase& x) { x.kill_at = at; },
               [&](killing_phase& x) { x.again_at = at; },
               [](auto&) {},
             },
             phase_);
}

void allocation::on(allocation_step& s, const allocation_stop& ev, time_point now) {
  if (const auto* before = stop(); before && (before->kill || !ev.kill))
    return;
  if (std::holds_alternative<asking>(phase_))
    return close(s, end::stopped, -1, "stopped before it was placed", now);
  enter_stop(ev, now);
  order_stop(s, now);
}

/// The pool wants the slots for another run. That means a graceful stop, which does not count as a restart. A
/// repeat, for example by a pool that was made again, changes nothing; but a run that saves is killed where
/// its agent or slots are disabled meanwhile.
void allocation::on(allocation_step& s, const preempt_allocation& ev, time_point now) {
  if (std::holds_alternative<asking>(phase_))
    return;
  const allocation_preempted order{now, ev.wanted_by, ev.reason, ev.detail};
  if (const auto* before = stop(); before && (before->kill || !stop_of(order).kill))
    return;
  note(s, order);
  enter_stop(stop_of(*preempted_), now);
  order_stop(s, now);
}

/// Keeps the new terms of the job for later requests; the pool has heard of them as well.
void allocation::on(allocation_step&, const job_changed& ev, time_point) { spec_.run.job = ev.job; }

/// The run also waits in its own pool. Requests to pools that are not in the new list are withdrawn.
void allocation::on(allocation_step& s, const fall_back& ev, time_point) {
  if (!std::holds_alternative<asking>(phase_))
    return;
  fallback_ = ev.pools;
  std::erase(fallback_, spec_.home);
  for (const auto& pool : std::set(asked_))
    if (std::find(fallback_.begin(), fallback_.end(), pool) == fallback_.end()) {
      asked_.erase(pool);
      s.actions.push_back(leave_pool{pool});
    }
  if (!asked_.contains(answers_next_))
    ask_next(s);
}

/// The next pool is asked once the one before has said that it has nothing now.
void allocation::on(allocation_step& s, const guest_waits& ev, time_point) {
  if (std::holds_alternative<asking>(phase_) && ev.pool == answers_next_)
    ask_next(s);
}

/// Ends a run whose log policies exclude all agents that could hold it, where no other agent can come.
void allocation::on(allocation_step& s, const report_unplaceable& ev, time_point now) {
  if (!std::holds_alternative<asking>(phase_) || ev.excluded.empty())
    return;
  std::string names;
  for (const auto& agent : ev.excluded)
    names += (names.empty() ? "" : ", ") + agent;
  close(s, end::failed, -1, "no agent is left that could hold it: its log policies exclude " + names, now,
        true);
}

void allocation::ask_next(allocation_step& s) {
  answers_next_.clear();
  for (const auto& pool : fallback_)
    if (asked_.insert(pool).second) {
      answers_next_ = pool;
      s.actions.push_back(ask_pool{pool});
      return;
    }
}

std::vector<allocation_action> allocation::meet_guest_pool(const std::string& pool) const {
  if (std::holds_alternative<asking>(phase_) && asked_.contains(pool))
    return {ask_pool{pool}};
  return {};
}

std::vector<allocation_action> allocation::move_home(std::string pool) {
  spec_.home = std::move(pool);
  std::vector<allocation_action> out;
  for (const auto& one : std::exchange(asked_, {}))
    if (one != spec_.home)
      out.push_back(leave_pool{one});
  fallback_.clear();
  answers_next_.clear();
  return out;
}

/// Passes the ordered stop on to all parts that run. It is called again where an order may be lost.
void allocation::order_stop(allocation_step& s, time_point now) {
  const auto order = *stop();
  if (polls_)
    s.actions.push_back(answer_signals{});
  for (const auto& [agent, p] : parts_)
    if (p.state != part::over) {
      if (order.kill)
        s.actions.push_back(kill_task{agent});
      else
        s.actions.push_back(preempt_task{agent, order.reason});
    }
  if (auto* killing = std::get_if<killing_phase>(&phase_); killing && order.kill)
    killing->again_at = now + kill_again;
  if (!order.kill)
    for (const auto& [member, w] : workers_)
      lead(s, member);
}

void allocation::on(allocation_step& s, const task_started& ev, time_point now) {
  auto it = parts_.find(ev.agent);
  if (it == parts_.end() || it->second.state == part::over) {
    s.actions.push_back(kill_task{ev.agent});
    return;
  }
  it->second.state = part::running;
  if (auto* run = std::get_if<running>(&phase_); run && !run->since && spec_.least > 0) {
    run->since = now; // after a recovery the pool does not know that this run would take more slots
    s.actions.push_back(request_slots{spec_.slots, spec_.least});
  }
  if (stop())
    order_stop(s, now); // the first order may have been lost with a master or a connection
}

void allocation::on(allocation_step& s, const task_exited& ev, time_point now) {
  auto it = parts_.find(ev.agent);
  if (it == parts_.end() || it->second.state == part::over)
    return;
  if (ev.certain || ev.ordered)
    it->second.exit = ev;
  if (!ev.certain && stop() && !killing())
    kill_by(now + spec_.end_grace);
  if (!ev.certain)
    return part_over(s, ev.agent, stop() || (killing() && ev.ordered) ? end::stopped : end::lost, -1,
                     ev.detail, now);
  // The kill may have been ordered in an earlier life of this actor, and the stop or the end of another part
  // that led to it is not known again yet. A gang is ended as lost then, as another part may have been lost.
  if (ev.ordered && ev.signal == 9)
    return part_over(s, ev.agent, stop() || killing() || parts_.size() < 2 ? end::stopped : end::lost,
                     ev.exit_code, ev.detail, now);
  // A task with Determined's client agrees to a stop before it follows it, and a silent task has not heard of
  // a stop. So the exits of both mean the same as without a stop. Whether all parts of a gang were silent is
  // known when all are over (`judge_silent`).
  const bool alone_silent = ev.silent && parts_.size() == 1;
  const bool followed = stop() && (stop()->kill || (!polls_ && !alone_silent));
  const bool good = is_good(ev);
  if (yielded_ || followed) {
    if (!good && !killing()) // the other parts may wait for this one in a collective
      kill_by(now + spec_.end_grace);
    return part_over(s, ev.agent, end::stopped, ev.exit_code, ev.detail, now);
  }
  if (killing() && !stop())
    return part_over(s, ev.agent, end::completed, 0, "", now); // another part gives the verdict
  if (killing() && !good)
    return part_over(s, ev.agent, end::stopped, ev.exit_code, ev.detail, now); // the time limit was over
  if (ev.signal == 9 && (!verdict_ || verdict_->why == end::completed)) {
    // This SIGKILL was not ordered. Perhaps the whole host is dying: then the run is lost, not failed.
    it->second.state = part::over;
    verdict_ = verdict{end::failed, 128 + ev.signal, ev.detail, ev.agent, now + spec_.kill_grace};
    return;
  }
  finished_ |= good && stop();
  part_over(s, ev.agent, good ? end::completed : end::failed, ev.signal ? 128 + ev.signal : ev.exit_code,
            ev.detail, now);
}

void allocation::on(allocation_step& s, const task_unknown& ev, time_point now) {
  auto it = parts_.find(ev.agent);
  if (it == parts_.end() || it->second.state == part::over)
    return;
  if (ev.placed != time_point{} && ev.placed != placed_at_)
    return; // the answer concerns an earlier placement; the order for this one is on its way
  // The other parts may wait for this one in a collective, where they never hear that they have to stop.
  if (stop() && !killing())
    kill_by(now + spec_.end_grace);
  if (it->second.state == part::running)
    return part_over(s, ev.agent, stop() ? end::stopped : end::lost, -1,
                     "agent " + ev.agent + " lost its task", now);
  if (stop())
    return part_over(s, ev.agent, end::stopped, 0, "stopped before it ran", now);
  it->second.unbegun = true;
  // The task never started there. A single part can be placed again; a gang first ends its parts that run.
  if (parts_.size() == 1 && std::holds_alternative<running>(phase_)) {
    parts_.clear();
    // Without this fact the run would say after a start of the master that it holds slots which another run
    // has by then. The pool is named, as an operator may choose another one until the fact is durable.
    const auto pool = pool_;
    note(s, allocation_placed{now, {}, {}, false, {}});
    if (pool.empty())
      s.actions.push_back(release_slots{});
    else
      s.actions.push_back(leave_pool{pool});
    s.actions.push_back(request_slots{spec_.slots, spec_.least});
    return;
  }
  part_over(s, ev.agent, end::lost, -1, "the start order to agent " + ev.agent + " was lost", now);
}

void allocation::on(allocation_step& s, const agent_lost& ev, time_point now) {
  auto it = parts_.find(ev.agent);
  if (it == parts_.end())
    return;
  if (verdict_ && verdict_->certain_at && verdict_->agent == ev.agent) {
    verdict_ = verdict{end::lost, -1, "agent " + ev.agent + ": " + ev.why, ev.agent, {}};
    kill_rest(s, now);
    return close_if_over(s, now);
  }
  if (failed_first_ && failed_first_->agent == ev.agent)
    failed_first_.reset(); // the rank failed because its host died
  if (it->second.state == part::over)
    return;
  if (go_on_without(s, ev.agent, ev.why, now))
    return;
  if (stop() && !killing()) // the other parts may wait for this one in a collective
    kill_by(now + spec_.end_grace);
  part_over(s, ev.agent, stop() ? end::stopped : end::lost, -1, "agent " + ev.agent + ": " + ev.why, now);
}

void allocation::on(allocation_step& s, const time_passed&, time_point now) {
  if (verdict_ && verdict_->certain_at && now >= *verdict_->certain_at) {
    verdict_->certain_at.reset();
    kill_rest(s, now);
    close_if_over(s, now);
  }
  if (const auto at = kill_at(); at && now >= *at)
    kill_rest(s, now);
  if (const auto* run = std::get_if<running>(&phase_); run && run->grow_at && now >= *run->grow_at)
    grow(s, now);
  if (const auto at = ask_at(); at && now >= *at)
    ask_again(s, now);
}

bool allocation::unheard(const std::string& agent) const {
  const auto it = parts_.find(agent);
  return it != parts_.end() && (it->second.state == part::ordered || it->second.state == part::watched);
}

/// When agents are asked that have not reported on their parts; none where all have. Parts that are being
/// killed are asked about, too, as this actor does not hear what an agent reports of a task that its twin
/// does not know.
std::optional<time_point> allocation::ask_at() const {
  const auto silent = [this](const auto& p) { return unheard(p.first); };
  if (closed() || std::none_of(parts_.begin(), parts_.end(), silent))
    return std::nullopt;
  return ask_at_;
}

void allocation::ask_again(allocation_step& s, time_point now) {
  if (ask_pause_ > duration{0})
    for (const auto& p : on_)
      if (unheard(p.agent))
        s.actions.push_back(watch_task{p.agent, p.slots, placed_at_});
  ask_pause_ = std::clamp(2 * ask_pause_, first_ask, longest_ask);
  ask_at_ = now + ask_pause_;
}

// ---- ranks

/// The numbers with which the ranks on one agent were started.
std::vector<int> allocation::ranks_on(const std::string& agent) const {
  std::vector<int> ranks;
  int next = 0;
  for (const auto& part : on_)
    for (std::size_t i = 0; i < part.slots.size(); ++i, ++next)
      if (part.agent == agent)
        ranks.push_back(next);
  return ranks;
}

std::string allocation::agent_of(int member) const {
  int next = 0;
  for (const auto& part : on_)
    if (next += static_cast<int>(part.slots.size()); member >= 0 && member < next)
      return part.agent;
  return {};
}

void allocation::on(allocation_step& s, const member_failed& ev, time_point now) {
  auto it = parts_.find(ev.agent);
  if (it == parts_.end() || it->second.state == part::over || lost_.contains(ev.rank) || stop() || killing())
    return;
  note(s, member_lost{now, ev.agent, ev.rank, ev.detail});
  // The slot of the failed rank still exists, so the run ends, and the next run starts from the last
  // checkpoint with as many ranks. The ranks that are left need not wait for a smaller group.
  if (!failed_first_)
    failed_first_ = ev;
  if (spec_.least > 0 && !workers_.empty())
    kill_rest(s, now);
}

/// Continues without a lost agent, where the ranks on the other agents are enough for a smaller gang and can
/// form a new group. Returns whether it does.
bool allocation::go_on_without(allocation_step& s, const std::string& agent, const std::string& why,
                               time_point now) {
  if (spec_.least <= 0 || stop() || killing() || verdict_ || failed_first_)
    return false;
  std::vector<int> left;
  for (const auto& part : on_)
    if (part.agent != agent && !given_up_.contains(part.agent)) {
      const auto state = parts_.find(part.agent);
      if (state == parts_.end() || state->second.state == part::over)
        return false;
      for (const int rank : ranks_on(part.agent))
        left.push_back(rank);
    }
  const bool can = std::all_of(left.begin(), left.end(), [&](int rank) { return workers_.contains(rank); });
  if (!can || left.empty() || static_cast<int>(left.size()) < spec_.least)
    return false;
  note(s, member_lost{now, agent, -1, why});
  const auto count = static_cast<int>(left.size());
  note(s, allocation_resized{now, generation_ + 1, std::move(left), count, false,
                             "agent " + agent + ": " + why});
  parts_[agent].state = part::over;
  s.actions.push_back(release_slots{agent});
  s.actions.push_back(forget_task{agent});
  for (const int member : members_)
    lead(s, member);
  return true;
}

void allocation::on(allocation_step& s, const worker_said& ev, time_point now) {
  auto it = parts_.find(ev.agent);
  if (it == parts_.end() || it->second.state == part::over)
    return;
  auto word = workers::decode_worker<workers::worker_word>(ev.word);
  if (!word)
    return; // not expected, as the stand-in passes on only what it can read
  if (auto* failure = std::get_if<workers::worker_failure>(&*word)) {
    if (failure_.empty())
      failure_ = failure->why;
    return;
  }
  if (!std::holds_alternative<workers::worker_status>(*word))
    return; // all other words concern the shell
  const auto& status = std::get<workers::worker_status>(*word);
  if (agent_of(ev.member) !=
      ev.agent) { // with one process on each agent, each process is rank 0 of its own and trains alone
    if (status.until < status.batches && !stop())
      s.actions.push_back(
        order_worker{ev.agent, ev.member,
                     workers::encode_worker(workers::worker_order{workers::train_until{status.batches}})});
    return;
  }
  workers_[ev.member] = {status.step, status.until, status.generation, status.batches};
  lead(s, ev.member);
  if (auto* run = std::get_if<running>(&phase_); run && spare_ > 0 && !run->grow_at)
    run->grow_at = std::max(now, run->since.value_or(now) + spec_.grow_after);
}

std::vector<int> allocation::led() const {
  std::vector<int> ranks;
  if (!stop() && !killing() && !closed())
    for (const auto& [member, ignored] : workers_)
      if (generation_ == 0 || std::find(members_.begin(), members_.end(), member) != members_.end())
        ranks.push_back(member);
  return ranks;
}

/// Gives a worker an order where its status is not what it should be.
void allocation::lead(allocation_step& s, int member) {
  auto it = workers_.find(member);
  if (it == workers_.end() || killing() ||
      (generation_ > 0 && std::find(members_.begin(), members_.end(), member) == members_.end()))
    return;
  const auto& w = it->second;
  const auto order = [&](workers::worker_order x) {
    s.actions.push_back(order_worker{agent_of(member), member, workers::encode_worker(x)});
  };
  if (stop())
    order(workers::stop_training{stop()->reason});
  else if (w.generation < generation_)
    order(workers::rebuild_group{generation_, members_});
  else if (w.until < w.batches)
    order(workers::train_until{w.batches, spec_.least > 0 && on_.size() > 1});
}

void allocation::on(allocation_step&, const slots_spare& ev, time_point now) {
  const auto ranks = generation_ > 0 ? members_.size() : ranks_of(on_);
  spare_ = ev.slots > static_cast<int>(ranks) ? ev.slots : 0;
  auto* run = std::get_if<running>(&phase_);
  if (!run)
    return;
  run->grow_at.reset();
  if (spare_ > 0 && run->since)
    run->grow_at = std::max(now, *run->since + spec_.grow_after);
}

/// Ends this run so that a larger gang follows as another run. It saves at the next batch.
void allocation::grow(allocation_step& s, time_point now) {
  std::get<running>(phase_).grow_at.reset();
  if (verdict_ || failed_first_ || spare_ <= 0 || spec_.least <= 0)
    return;
  note(s, allocation_resized{now, generation_, {}, spare_, true, "slots are free again"});
  enter_stop({false, "preempted"}, now);
  order_stop(s, now);
}

void allocation::on(allocation_step&, const signal_polled&, time_point) { polls_ = true; }

void allocation::on(allocation_step& s, const stop_agreed& ev, time_point now) {
  if (yielded_ || (!stop() && !ev.outside))
    return; // a repeat, or no stop was ordered
  note(s, allocation_yielded{now, ev.outside});
  if (stop() || std::holds_alternative<asking>(phase_))
    return;
  enter_stop({false, "preempted"}, now);
  order_stop(s, now);
}

void allocation::on(allocation_step& s, const hyperparameters_refused&, time_point now) {
  if (!gave_up_)
    note(s, allocation_gave_up{now});
}

void allocation::on(allocation_step& s, const part_called& ev, time_point now) {
  called_.insert(ev.node_rank);
  if (!ready_ && called_.size() < on_.size())
    return;
  if (!ready_)
    note(s, allocation_ready{now});
  s.actions.push_back(answer_gang{});
}

void allocation::on(allocation_step& s, const part_left_alone& ev, time_point now) {
  const auto& agent = on_[static_cast<std::size_t>(ev.node_rank)].agent;
  if (!daemons_.contains(agent))
    note(s, part_made_daemon{now, agent});
}

/// Each rank gets the order, as the ranks agree on the largest number that one of them has heard. The time
/// serves as the number, so that no earlier life of this actor has used it. Where orders are lost, the
/// operator sees no report and asks again.
void allocation::on(allocation_step& s, const work_wanted& ev, time_point now) {
  const auto number = static_cast<std::uint64_t>(now.time_since_epoch().count());
  const auto order = ev.what == work_wanted::work::validate
                       ? workers::worker_order{workers::validate_now{number}}
                       : workers::worker_order{workers::checkpoint_now{number}};
  for (const int member : led())
    s.actions.push_back(order_worker{agent_of(member), member, workers::encode_worker(order)});
}

/// Kills all parts that still run, as they cannot continue alone. The kill is ordered again every 30 s until
/// it is done.
void allocation::kill_rest(allocation_step& s, time_point now) {
  const auto* order = stop();
  phase_ = killing_phase{order ? std::optional{*order} : std::nullopt, now + kill_again};
  for (const auto& [agent, p] : parts_)
    if (p.state != part::over)
      s.actions.push_back(kill_task{agent});
}

void allocation::part_over(allocation_step& s, const std::string& agent, end why, int code,
                           std::string detail, time_point now) {
  parts_[agent].state = part::over;
  if (daemons_.contains(agent) && why != end::stopped && why != end::lost)
    return close_if_over(s, now);
  // Where some parts completed, and others were killed or failed at a stop, the run counts as stopped, so
  // that the trial continues later.
  const auto& exit = parts_[agent].exit;
  const bool counts = stop() && !daemons_.contains(agent) && !(exit && is_good(*exit));
  const auto weight = [&](end e) {
    return e == end::lost ? 3 : e == end::failed ? 2 : e == end::stopped && counts ? 1 : 0;
  };
  const bool bad = why == end::lost || why == end::failed;
  // A rank that notices the death of another one fails by itself, and that may be reported before the loss of
  // the other rank's host. So a graver end replaces the verdict.
  if (!verdict_ || weight(why) > weight(verdict_->why))
    verdict_ = verdict{why, code, std::move(detail), agent, verdict_ ? verdict_->certain_at : std::nullopt};
  if (bad && !killing()) {
    const bool wait_for_less = spec_.least > 0 && !workers_.empty(); // in vain: see member_failed
    if (why == end::failed && !wait_for_less)
      kill_by(now + spec_.end_grace);
    else
      kill_rest(s, now);
  }
  close_if_over(s, now);
}

/// Corrects the verdict on a gang of which no part can have heard of the stop: its parts have not followed
/// the stop, but ended by themselves, or were killed when the time limit was over.
void allocation::judge_silent() {
  const bool open = verdict_ && (verdict_->why == end::stopped || verdict_->why == end::completed);
  if (parts_.size() < 2 || !open || !stop() || stop()->kill || yielded_ || polls_)
    return;
  const task_exited* failed = nullptr;
  bool all_good = true;
  for (const auto& [agent, p] : parts_) {
    if (daemons_.contains(agent))
      continue;
    if (!p.exit || !p.exit->silent)
      return;
    const bool good = is_good(*p.exit);
    all_good = all_good && good;
    const bool killed = p.exit->ordered || p.exit->signal == 9;
    if (!good && p.exit->certain && !killed && !failed)
      failed = &*p.exit;
  }
  if (failed)
    verdict_ = verdict{end::failed,
                       failed->signal ? 128 + failed->signal : failed->exit_code,
                       failed->detail,
                       failed->agent,
                       {}};
  else if (all_good)
    verdict_ = verdict{};
  finished_ |= all_good;
}

void allocation::close_if_over(allocation_step& s, time_point now) {
  const auto over = [](const auto& p) { return p.second.state == part::over; };
  const auto done = [&](const auto& p) { return over(p) || daemons_.contains(p.first); };
  const bool uncertain = verdict_ && verdict_->certain_at;
  if (!daemons_.empty() && !uncertain && !killing() && std::all_of(parts_.begin(), parts_.end(), done) &&
      !std::all_of(parts_.begin(), parts_.end(), over))
    return kill_rest(s, now); // only daemons are left
  if (uncertain || !std::all_of(parts_.begin(), parts_.end(), over))
    return;
  judge_silent();
  auto v = verdict_.value_or(verdict{});
  // The agent killed a rank that did not answer, which looks like a lost run. It counts as failed, as the
  // next run would probably hang as well.
  if (failed_first_ && !stop() && v.why != end::failed && (v.why != end::lost || failed_first_->silent))
    v = {end::failed, 1, failed_first_->detail, failed_first_->agent, {}};
  if (v.why == end::failed && !failure_.empty() &&
      !v.detail.starts_with(failure_)) // the agent may have told the same reason
    v.detail = failure_ + " (" + v.detail + ")";
  if (v.why == end::stopped && stop() && stop()->kill && !stop()->reason.empty())
    v.detail = stop()->reason; // tells more than the signal that ended it
  close(s, v.why, v.code, v.detail, now);
}

void allocation::close(allocation_step& s, end why, int code, std::string detail, time_point now,
                       bool unplaceable) {
  if (gave_up_) {
    why = end::invalid_hp;
    detail = "its hyperparameters cannot be trained";
  }
  const bool finished = finished_ && why == end::completed;
  const bool unbegun =
    why == end::lost && !ready_ && workers_.empty() && called_.empty() &&
    std::all_of(parts_.begin(), parts_.end(), [](const auto& p) { return p.second.unbegun; });
  note(s, allocation_closed{now, why, code, detail, finished, unplaceable, unbegun});
  s.actions.push_back(release_slots{}); // without slots, this withdraws the request
  for (const auto& pool : std::exchange(asked_, {}))
    s.actions.push_back(leave_pool{pool});
  for (const auto& [agent, p] : parts_)
    s.actions.push_back(forget_task{agent});
  s.actions.push_back(report_allocation_end{why, std::move(detail), finished, code, unplaceable, unbegun});
}

void allocation::note(allocation_step& s, allocation_fact fact) {
  replay(fact);
  s.facts.push_back(std::move(fact));
}

void allocation::replay(const allocation_fact& fact) {
  std::visit(overloaded{
               [this](const allocation_placed& f) {
                 on_ = f.on;
                 pool_ = f.pool;
                 if (on_.empty()) { // its start order was lost
                   phase_ = asking{};
                   return;
                 }
                 placed_at_ = f.at;
                 phase_ = running{};
               },
               [this](const allocation_closed& f) { phase_ = f; },
               [this](const allocation_ready&) { ready_ = true; },
               [this](const allocation_yielded& f) { yielded_ = f.outside; },
               [this](const allocation_gave_up& f) {
                 gave_up_ = f.at;
                 kill_by(f.at + give_up_patience);
               },
               [this](const part_made_daemon& f) { daemons_.insert(f.agent); },
               [this](const member_lost& f) {
                 if (f.rank >= 0)
                   lost_.insert(f.rank);
                 else
                   given_up_.insert(f.agent);
               },
               [this](const allocation_resized& f) {
                 if (f.later)
                   return;
                 generation_ = f.generation;
                 members_ = f.members;
               },
               [this](const allocation_preempted& f) { preempted_ = f; },
             },
             fact);
}

std::vector<allocation_action> allocation::resume() {
  if (const auto* end = std::get_if<allocation_closed>(&phase_)) {
    std::vector<allocation_action> out{release_slots{}};
    for (const auto& part : on_)
      out.push_back(forget_task{part.agent});
    out.push_back(report_allocation_end{end->why, end->detail, end->finished, end->exit_code,
                                        end->unplaceable, end->unbegun});
    return out;
  }
  if (on_.empty())
    return {request_slots{spec_.slots, spec_.least}};
  std::vector<allocation_action> out;
  if (preempted_) // the stop is ordered again as soon as the task is known to run
    enter_stop(stop_of(*preempted_), preempted_->at);
  for (const auto& p : on_) {
    if (given_up_.contains(p.agent) && generation_ > 0) {
      parts_[p.agent] = {part::over, {}};
      out.push_back(forget_task{p.agent});
      continue;
    }
    parts_[p.agent] = {part::watched, {}};
    out.push_back(watch_task{p.agent, p.slots, placed_at_});
  }
  ask_at_ = placed_at_; // the present time is unknown here; the next `time_passed` brings it
  return out;
}

std::vector<allocation_action> allocation::meet_pool() const {
  if (closed())
    return {release_slots{}};
  if (parts_.empty())
    return {request_slots{spec_.slots, spec_.least}};
  hold_slots held;
  for (const auto& p : on_) {
    const auto state = parts_.find(p.agent);
    if (state == parts_.end() || (given_up_.contains(p.agent) && generation_ > 0))
      continue;
    held.on.push_back(p);
  }
  std::vector<allocation_action> out{std::move(held)};
  if (spec_.least > 0)
    out.push_back(request_slots{spec_.slots, spec_.least});
  return out;
}

std::vector<allocation_action> allocation::ask_agents() const {
  std::vector<allocation_action> out;
  for (const auto& p : on_)
    if (const auto it = parts_.find(p.agent);
        it != parts_.end() && it->second.state != part::over && !closed())
      out.push_back(watch_task{p.agent, p.slots, placed_at_});
  return out;
}

std::vector<allocation_action> allocation::meet_twin(const std::string& agent) const {
  const auto part_of = parts_.find(agent);
  if (closed()) {
    for (const auto& p : on_)
      if (p.agent == agent)
        return {forget_task{agent}};
  } else if (part_of != parts_.end() && part_of->second.state != part::over)
    for (const auto& p : on_)
      if (p.agent == agent)
        return {watch_task{agent, p.slots, placed_at_}};
  return {};
}

std::optional<time_point> allocation::deadline() const {
  if (closed())
    return std::nullopt;
  const auto* run = std::get_if<running>(&phase_);
  std::optional<time_point> next;
  for (const auto& at : {verdict_ ? verdict_->certain_at : std::nullopt, kill_at(),
                         run ? run->grow_at : std::nullopt, ask_at()})
    if (at)
      next = next ? std::min(*next, *at) : at;
  return next;
}

std::string allocation::snapshot() const {
  const auto* end = std::get_if<allocation_closed>(&phase_);
  return pack(std::tuple{on_, end ? encode(*end) : "", ready_, yielded_.has_value(), yielded_.value_or(false),
                         gave_up_.value_or(time_point{}), daemons_, generation_, members_, given_up_, lost_,
                         placed_at_, preempted_ ? encode(*preempted_) : "", pool_});
}

slots_requested allocation::request(const request_slots& x) const {
  return {spec_.id, x.slots, x.least, spec_.run};
}

slots_held allocation::holding(const std::vector<placement>& on) const {
  return {spec_.id, on, spec_.run, spec_.slots, spec_.least, placed_at_};
}

value allocation::describe() const {
  constexpr const char* names[] = {"ordered", "watched", "running", "over"};
  value on = value::array(), parts = value::object();
  for (const auto& place : on_)
    on.push_back({{"agent", place.agent}, {"slots", place.slots}});
  for (const auto& [agent, one] : parts_)
    parts[agent] = names[static_cast<int>(one.state)];
  const auto* order = stop();
  const auto* closed = std::get_if<allocation_closed>(&phase_);
  return {{"state", shown()},
          {"slots", spec_.slots},
          {"on", on},
          {"parts", parts},
          {"ready", ready_},
          {"stop", order ? value{{"kill", order->kill}, {"reason", order->reason}} : value()},
          {"yielded", yielded_.has_value()},
          {"kill_at", kill_at() ? value(to_rfc3339(*kill_at())) : value()},
          {"closed",
           closed
             ? value{{"why", name(closed->why)}, {"exit_code", closed->exit_code}, {"detail", closed->detail}}
             : value()}};
}

const char* allocation::shown() const {
  if (closed())
    return "CLOSED";
  if (killing())
    return "KILLING";
  if (stopping())
    return "STOPPING";
  if (std::holds_alternative<asking>(phase_))
    return "QUEUED";
  for (const auto& [agent, one] : parts_)
    if (one.state == part::ordered || one.state == part::watched)
      return "STARTING";
  return "RUNNING";
}

} // namespace troupe
