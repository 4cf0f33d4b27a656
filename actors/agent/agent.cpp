#include "actors/agent/agent.hpp"

#include "workers/worker_messages.hpp"

#include <algorithm>

namespace troupe {

/// Time from the failure of one rank to the kill of the others.
constexpr duration end_patience = 5s;

agent::agent(std::string name, duration heartbeat) : name_(std::move(name)), heartbeat_(heartbeat) {}

std::vector<agent_action> agent::apply(const agent_event& ev, time_point now) {
  out o;
  std::visit([&](const auto& x) { on(o, x, now); }, ev);
  return o;
}

void agent::on(out& o, const link_up& ev, time_point now) {
  if (ev.epoch <= epoch_)
    return;
  epoch_ = ev.epoch;
  linked_ = true;
  linked_at_ = ev.sent;
  lease_from_ = std::max(lease_from_, ev.sent);
  // No sandbox is thawed yet, as a run that was given away has to be killed first: that order comes before
  // the first acknowledgement of a heartbeat.
  if (ev.heartbeat > duration{0})
    heartbeat_ = ev.heartbeat;
  next_heartbeat_ = now + heartbeat_;
  o.push_back(send_heartbeat{epoch_, now});
  for (const auto& [id, t] : tasks_) { // changes since the inventory was taken have not been reported
    for (const auto& one : t.lost)
      o.push_back(report_to_twin{one});
    report(o, t);
  }
  auto early = std::exchange(early_, {});
  for (const auto& x : early)
    on(o, x, now);
}

void agent::on(out&, const link_down&, time_point) { linked_ = false; }

void agent::on(out& o, const order_received& ev, time_point) {
  constexpr std::size_t most_early = 10'000;
  if (ev.epoch > epoch_ && early_.size() < most_early)
    early_.push_back(ev); // the order overtook the acceptance of the registration
  if (ev.epoch != epoch_ || !linked_)
    return; // the twin has given up the orders of an earlier registration
  std::visit([&](const auto& x) { obey(o, x); }, ev.order);
}

void agent::obey(out& o, const start_ordered& x) {
  if (auto d = dropped_.find(x.allocation.task); d != dropped_.end() && x.allocation.run <= d->second)
    return;
  auto [it, fresh] = tasks_.try_emplace(x.allocation, task{{x.allocation, x.slots}, {}});
  if (!fresh)
    return report(o, it->second);
  it->second.waits_with = x.spec;
  launch_waiting(o);
}

void agent::obey(out& o, const preempt_ordered& x) {
  auto it = tasks_.find(x.allocation);
  if (it == tasks_.end() || it->second.report.exited)
    return;
  if (it->second.waits_with)
    never_start(o, it->second, 0, "stopped before it ran");
  else
    o.push_back(stop_task{x.allocation, x.reason});
}

void agent::obey(out& o, const kill_ordered& x) {
  auto it = tasks_.find(x.allocation);
  if (it == tasks_.end())
    // The task is not here, but the twin needs an answer.
    o.push_back(report_to_twin{task_exited{x.allocation, name_, -1, 9, "was not running", true, true}});
  else if (it->second.report.exited)
    report(o, it->second);
  else if (it->second.waits_with)
    never_start(o, it->second, 9, "killed before it ran");
  else
    destroy(o, it->second);
}

void agent::obey(out& o, const forget_ordered& x) {
  auto it = tasks_.find(x.allocation);
  if (it == tasks_.end())
    return;
  if (!it->second.report.exited && !it->second.waits_with) {
    destroy(o, it->second);
    return; // the twin orders this again when it hears of the exit
  }
  o.push_back(drop_task{x.allocation});
  tasks_.erase(it);
  auto& newest = dropped_[x.allocation.task];
  newest = std::max(newest, x.allocation.run);
  if (dropped_.size() > 10'000)
    dropped_.erase(dropped_.begin()); // ids of trials grow, so this is the oldest trial
  launch_waiting(o);
}

void agent::obey(out& o, const worker_ordered& x) {
  if (runs(x.allocation))
    o.push_back(tell_worker{x});
}

void agent::obey(out& o, const service_ordered& x) {
  const auto it = tasks_.find(x.allocation);
  const bool here = it != tasks_.end() && !it->second.report.exited && !it->second.waits_with;
  o.push_back(open_service{x, here});
}

void agent::destroy(out& o, task& t) {
  t.report.ordered = true;
  o.push_back(destroy_task{t.report.allocation});
}

void agent::never_start(out& o, task& t, int signal, std::string detail) {
  t.waits_with.reset();
  t.report.exited = true;
  t.report.signal = signal;
  t.report.ordered = true;
  t.report.detail = std::move(detail);
  report(o, t);
  launch_waiting(o);
}

/// Launches tasks whose slots are free. A slot is free only when its last task is dead: the master may have
/// given away a run that is still being killed here.
void agent::launch_waiting(out& o) {
  for (auto& [id, t] : tasks_)
    if (t.waits_with && slots_free(t)) {
      o.push_back(launch_task{id, t.report.slots, std::move(*t.waits_with), lease_from_});
      t.waits_with.reset();
    }
}

bool agent::slots_free(const task& wanted) const {
  return std::none_of(tasks_.begin(), tasks_.end(), [&](const auto& other) {
    const auto& t = other.second;
    return &t != &wanted && !t.report.exited && !t.waits_with &&
           std::find_first_of(t.report.slots.begin(), t.report.slots.end(), wanted.report.slots.begin(),
                              wanted.report.slots.end()) != t.report.slots.end();
  });
}

void agent::on(out& o, const heartbeat_acked& ev, time_point) {
  if (!linked_)
    return;
  if (ev.epoch == 0 && ev.sent >= linked_at_) { // does not answer a heartbeat of an earlier registration
    o.push_back(register_again{});
    return;
  }
  if (ev.epoch != epoch_)
    return;
  lease_from_ = std::max(lease_from_, ev.sent);
  o.push_back(renew_leases{lease_from_});
}

void agent::on(out& o, const task_adopted& ev, time_point) {
  const auto id = ev.task.allocation;
  if (auto known = tasks_.find(id); known != tasks_.end() && known->second.report.exited)
    return; // a runtime that was made again finds a task whose exit the dead one has reported
  if (auto d = dropped_.find(id.task); ev.task.exited && d != dropped_.end() && id.run <= d->second) {
    o.push_back(drop_task{id}); // the dead runtime had been ordered to drop the task, and had not done so
    return;
  }
  auto& t = tasks_[id];
  t.report = ev.task;
  // The task was killed while there was no agent, most likely by whatever killed the agent too. Such a run is
  // lost, not failed.
  if (t.report.exited && t.report.signal == 9)
    t.report.certain = false;
}

void agent::on(out& o, const task_launched& ev, time_point) {
  auto it = tasks_.find(ev.allocation);
  if (it == tasks_.end() || it->second.report.exited)
    return;
  it->second.report.pid = ev.pid;
  report(o, it->second);
}

void agent::on(out& o, const task_is_over& ev, time_point) {
  auto it = tasks_.find(ev.task.allocation);
  if (it == tasks_.end() || it->second.report.exited)
    return;
  auto known = std::move(it->second.report);
  it->second.report = ev.task;
  it->second.report.slots = std::move(known.slots);
  it->second.report.ordered = known.ordered;
  it->second.report.exited = true;
  if (auto& t = it->second; !t.failure.empty() && (t.report.exit_code != 0 || t.report.signal != 0))
    // The message of the worker itself may have been lost while the connection was down.
    t.report.detail = t.failure + " (" + t.report.detail + ")";
  report(o, it->second);
  launch_waiting(o);
}

/// The other ranks cannot continue without the failed one. They hear of it from their own group, and end or
/// wait for an order of the allocation; ranks that still run later are killed. A rank that does not answer
/// will not end by itself.
void agent::on(out& o, const member_failed& ev, time_point now) {
  auto it = tasks_.find(ev.allocation);
  if (it == tasks_.end() || it->second.report.exited || it->second.waits_with)
    return;
  auto& t = it->second;
  for (const auto& known : t.lost)
    if (known.rank == ev.rank)
      return;
  t.lost.push_back(ev);
  t.lost.back().agent = name_;
  if (linked_)
    o.push_back(report_to_twin{t.lost.back()});
  if (ev.silent)
    o.push_back(destroy_task{ev.allocation});
  else if (!t.end_at)
    t.end_at = now + end_patience;
}

void agent::on(out& o, const worker_said& ev, time_point) {
  if (!runs(ev.allocation))
    return;
  if (auto word = workers::decode_worker<workers::worker_word>(ev.word);
      word && tasks_.at(ev.allocation).failure.empty())
    if (const auto* failure = std::get_if<workers::worker_failure>(&*word)) // the last message of the worker
      tasks_.at(ev.allocation).failure = failure->why;
  if (linked_) // without a connection it is dropped, and the worker says it again
    o.push_back(report_to_twin{worker_said{ev.allocation, name_, ev.member, ev.word}});
}

void agent::on(out& o, const time_passed&, time_point now) {
  for (auto& [id, t] : tasks_)
    if (t.end_at && now >= *t.end_at) {
      t.end_at = now + end_patience; // the kill is ordered again until it is done
      if (!t.report.exited)
        o.push_back(destroy_task{id});
    }
  if (!linked_ || now < next_heartbeat_)
    return;
  next_heartbeat_ = now + heartbeat_;
  o.push_back(send_heartbeat{epoch_, now});
}

void agent::report(out& o, const task& x) const {
  const auto& t = x.report;
  if (!linked_)
    return; // the next inventory tells it
  if (t.exited)
    o.push_back(report_to_twin{
      task_exited{t.allocation, name_, t.exit_code, t.signal, t.detail, t.certain, t.ordered, t.silent}});
  else if (t.pid)
    o.push_back(report_to_twin{task_started{t.allocation, name_, t.pid}});
}

std::optional<time_point> agent::deadline() const {
  auto next = linked_ ? std::optional{next_heartbeat_} : std::nullopt;
  for (const auto& [id, t] : tasks_)
    if (t.end_at && !t.report.exited)
      next = next ? std::min(*next, *t.end_at) : t.end_at;
  return next;
}

std::vector<task_report> agent::inventory() const {
  std::vector<task_report> all;
  for (const auto& [id, t] : tasks_)
    all.push_back(t.report);
  return all;
}

bool agent::runs(allocation_id id) const {
  auto it = tasks_.find(id);
  return it != tasks_.end() && !it->second.report.exited;
}

value agent::describe() const {
  value tasks = value::array();
  for (const auto& [id, t] : tasks_)
    tasks.push_back({{"allocation", to_string(id)},
                     {"slots", t.report.slots},
                     {"pid", t.report.pid},
                     {"exited", t.report.exited},
                     {"waits_for_slots", t.waits_with.has_value()}});
  return {{"state", shown()}, {"epoch", epoch_}, {"tasks", tasks}, {"early_orders", early_.size()}};
}

const char* agent::shown() const { return linked_ ? "linked" : "unlinked"; }

} // namespace troupe
