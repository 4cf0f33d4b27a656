#include "actors/agent/agent.hpp"

#include <algorithm>

namespace troupe {

agent::agent(std::string name, duration heartbeat) : name_(std::move(name)), heartbeat_(heartbeat) {}

std::vector<agent_action> agent::apply(const agent_event& ev, time_point now) {
  out o;
  std::visit([&](const auto& x) { on(o, x, now); }, ev);
  return o;
}

void agent::on(out& o, const link_up& ev, time_point now) {
  epoch_ = ev.epoch;
  linked_ = true;
  next_heartbeat_ = now + heartbeat_;
  o.push_back(renew_leases{});
  o.push_back(send_heartbeat{epoch_});
}

void agent::on(out&, const link_down&, time_point) { linked_ = false; }

void agent::on(out& o, const order_received& ev, time_point) {
  if (ev.epoch != epoch_)
    return; // of an earlier registration: the twin has given it up
  std::visit([&](const auto& x) { obey(o, x); }, ev.order);
}

void agent::obey(out& o, const start_ordered& x) {
  if (auto d = dropped_.find(x.allocation.trial); d != dropped_.end() && x.allocation.run <= d->second)
    return;
  auto [it, fresh] = tasks_.try_emplace(x.allocation, task_report{x.allocation, x.slots});
  if (fresh || planted == planted_bug::repeated_start_runs) {
    o.push_back(launch_task{x.allocation, x.slots, x.spec});
    return;
  }
  if (it->second.exited)
    o.push_back(report_to_twin{exit_of(it->second)});
  else if (it->second.pid)
    o.push_back(report_to_twin{task_started{x.allocation, name_, it->second.pid}});
}

void agent::obey(out& o, const preempt_ordered& x) {
  auto it = tasks_.find(x.allocation);
  if (it != tasks_.end() && !it->second.exited)
    o.push_back(stop_task{x.allocation, x.reason});
}

void agent::obey(out& o, const kill_ordered& x) {
  auto it = tasks_.find(x.allocation);
  if (it == tasks_.end())
    // Nothing of it is here; the twin needs an answer all the same.
    o.push_back(report_to_twin{task_exited{x.allocation, name_, -1, 9, "was not running", true}});
  else if (it->second.exited)
    o.push_back(report_to_twin{exit_of(it->second)});
  else
    o.push_back(destroy_task{x.allocation});
}

void agent::obey(out& o, const forget_ordered& x) {
  auto it = tasks_.find(x.allocation);
  if (it == tasks_.end())
    return;
  if (!it->second.exited) {
    o.push_back(destroy_task{x.allocation});
    return; // the twin orders it again when the exit arrives there
  }
  o.push_back(drop_task{x.allocation});
  tasks_.erase(it);
  auto& newest = dropped_[x.allocation.trial];
  newest = std::max(newest, x.allocation.run);
  if (dropped_.size() > 10'000)
    dropped_.erase(dropped_.begin()); // trial ids grow: the oldest trial
}

void agent::on(out& o, const heartbeat_acked& ev, time_point) {
  if (ev.epoch == epoch_ && linked_)
    o.push_back(renew_leases{});
}

void agent::on(out&, const task_adopted& ev, time_point) { tasks_[ev.task.allocation] = ev.task; }

void agent::on(out& o, const task_launched& ev, time_point) {
  auto it = tasks_.find(ev.allocation);
  if (it == tasks_.end() || it->second.exited)
    return;
  it->second.pid = ev.pid;
  if (linked_)
    o.push_back(report_to_twin{task_started{ev.allocation, name_, ev.pid}});
}

void agent::on(out& o, const task_ended& ev, time_point) {
  auto it = tasks_.find(ev.task.allocation);
  if (it == tasks_.end() || it->second.exited)
    return;
  auto slots = it->second.slots;
  it->second = ev.task;
  it->second.slots = std::move(slots);
  it->second.exited = true;
  if (linked_)
    o.push_back(report_to_twin{exit_of(it->second)}); // else the next inventory says it
}

void agent::on(out& o, const time_passed&, time_point now) {
  if (!linked_ || now < next_heartbeat_)
    return;
  next_heartbeat_ = now + heartbeat_;
  o.push_back(send_heartbeat{epoch_});
}

task_exited agent::exit_of(const task_report& t) const {
  return {t.allocation, name_, t.exit_code, t.signal, t.detail, t.certain};
}

std::optional<time_point> agent::deadline() const { return linked_ ? std::optional{next_heartbeat_} : std::nullopt; }

std::vector<task_report> agent::inventory() const {
  std::vector<task_report> all;
  for (const auto& [id, t] : tasks_)
    all.push_back(t);
  return all;
}

bool agent::runs(allocation_id id) const {
  auto it = tasks_.find(id);
  return it != tasks_.end() && !it->second.exited;
}

} // namespace troupe
