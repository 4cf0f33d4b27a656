#include "actors/agent_twin/agent_twin.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::size_t most_awaited = 64;
constexpr std::chrono::seconds service_patience{10}; ///< how long the master waits for the connection

} // namespace

agent_twin::agent_twin(std::string name, lease_times lease, time_point now)
    : name_(std::move(name)), lease_(lease),
      lease_until_(now + std::max(lease.give_away, lease.first_give_away)) {}

std::vector<twin_action> agent_twin::apply(const twin_event& ev, time_point now) {
  out o;
  std::visit([&](const auto& x) { on(o, x, now); }, ev);
  return o;
}

void agent_twin::on(out& o, const agent_registered& ev, time_point now) {
  if (ev.epoch <= epoch_)
    return;
  epoch_ = ev.epoch;
  status_ = status::alive;
  slots_ = ev.slots;
  traits_ = ev.traits;
  lease_until_ = now + lease_.give_away;
  const auto killed = std::exchange(strays_, {});
  agent_up up{name_, ev.slots, {}, traits_};
  std::set<allocation_id> reported;
  for (const auto& t : ev.inventory) {
    reported.insert(t.allocation);
    if (!t.exited)
      up.busy[to_string(t.allocation)] = t.slots;
  }
  o.push_back(tell_pool{std::move(up)});
  for (const auto& t : ev.inventory) {
    if (!tasks_.contains(t.allocation)) { // the run was given away or ended while the agent was away
      if (t.exited) {
        o.push_back(agent_order{forget_ordered{t.allocation}});
      } else {
        strays_[t.allocation] = t.slots;
        o.push_back(agent_order{kill_ordered{t.allocation}});
      }
    } else if (t.exited) {
      tell(o, t.allocation,
           task_exited{t.allocation, name_, t.exit_code, t.signal, t.detail, t.certain, t.ordered, t.silent});
    } else {
      tell(o, t.allocation, task_started{t.allocation, name_, t.pid});
    }
  }
  for (const auto& [id, slots] : killed)
    if (!strays_.contains(id))
      o.push_back(tell_pool{slots_released{id, name_}});
  // The agent refuses orders of an older registration, so it will never start a task that it has not
  // reported.
  for (auto it = tasks_.begin(); it != tasks_.end();) {
    if (reported.contains(it->first)) {
      ++it;
    } else if (it->second.said && std::holds_alternative<troupe::agent_lost>(*it->second.said)) {
      o.push_back(tell_allocation{it->first, *it->second.said});
      ++it;
    } else {
      say_unknown(o, it->first, it->second.placed);
      it = tasks_.erase(it);
    }
  }
  for (auto& [since, order] : std::exchange(awaited_, {}))
    if (now - since < service_patience && tasks_.contains(order.allocation))
      o.push_back(agent_order{std::move(order)});
}

void agent_twin::on(out& o, const agent_heartbeat& ev, time_point now) {
  if (ev.epoch != epoch_)
    return;
  if (status_ != status::alive) { // the runs were given away while the connection was silent, but not closed
    o.push_back(acknowledge_heartbeat{0, ev.sent});
    return;
  }
  lease_until_ = now + lease_.give_away;
  o.push_back(acknowledge_heartbeat{epoch_, ev.sent});
}

void agent_twin::on(out& o, const link_lost& ev, time_point) {
  if (status_ != status::alive || ev.epoch != epoch_)
    return;
  status_ = status::away; // the lease still counts from the last heartbeat
  o.push_back(tell_pool{agent_down{name_, false, lease_until_}});
  // A task that was killed just before its agent died is lost, not failed. The allocation can judge so when
  // it hears of both.
  for (const auto& [id, t] : tasks_)
    if (t.said && std::holds_alternative<task_exited>(*t.said))
      o.push_back(tell_allocation{id, troupe::agent_lost{name_, "it went away"}});
}

void agent_twin::on(out& o, const task_started& ev, time_point) {
  if (tasks_.contains(ev.allocation))
    tell(o, ev.allocation, ev);
  else
    o.push_back(agent_order{kill_ordered{ev.allocation}});
}

void agent_twin::on(out& o, const task_exited& ev, time_point) {
  if (tasks_.contains(ev.allocation))
    return tell(o, ev.allocation, ev);
  o.push_back(agent_order{forget_ordered{ev.allocation}});
  if (strays_.erase(ev.allocation))
    o.push_back(tell_pool{slots_released{ev.allocation, name_}});
}

void agent_twin::tell(out& o, allocation_id id, allocation_event news) {
  auto& known = tasks_[id];
  known.order.reset();
  if (!known.said || std::holds_alternative<task_started>(*known.said))
    known.said = std::move(news); // once the end is known, a late report changes nothing
  o.push_back(tell_allocation{id, *known.said});
}

/// Tells the allocation that the agent does not know its task. After that the allocation may get slots
/// elsewhere, so an order to start for this placement is refused from now on.
void agent_twin::say_unknown(out& o, allocation_id id, time_point placed) {
  constexpr std::size_t most = 4096;
  unknown_[id] = placed;
  if (unknown_.size() > most)
    unknown_.erase(unknown_.begin()); // ids of trials grow, so this is the oldest trial
  o.push_back(tell_allocation{id, task_unknown{id, name_, placed}});
}

void agent_twin::on(out& o, const start_ordered& ev, time_point) {
  const auto given_up = unknown_.find(ev.allocation);
  if (status_ != status::alive ||
      (given_up != unknown_.end() && ev.placed != time_point{} && ev.placed == given_up->second)) {
    say_unknown(o, ev.allocation, ev.placed);
    return;
  }
  auto& known = tasks_[ev.allocation];
  if (known.placed != ev.placed || !known.said) // an order that was answered before is a repeat
    known = {ev.slots, {}, ev.placed, ev};
  o.push_back(agent_order{ev});
}

void agent_twin::on(out& o, const preempt_ordered& ev, time_point) {
  if (status_ == status::alive)
    o.push_back(agent_order{ev}); // otherwise the allocation orders the stop again when the agent is back
}

void agent_twin::on(out& o, const kill_ordered& ev, time_point) {
  if (auto it = tasks_.find(ev.allocation); it != tasks_.end())
    it->second.order.reset(); // the agent will report the task as dead, even where it never started
  if (status_ == status::alive)
    o.push_back(agent_order{ev});
}

void agent_twin::on(out& o, const worker_ordered& ev, time_point) {
  if (status_ == status::alive && tasks_.contains(ev.allocation))
    o.push_back(agent_order{ev}); // a lost order is given again when the worker reports its status
}

void agent_twin::on(out& o, const service_ordered& ev, time_point now) {
  if (status_ == status::alive)
    o.push_back(agent_order{ev}); // an agent without this run answers at once that the service is not there
  else if (awaited_.size() < most_awaited)
    awaited_.emplace_back(now, ev);
}

void agent_twin::on(out& o, const member_failed& ev, time_point) {
  if (tasks_.contains(ev.allocation))
    o.push_back(tell_allocation{ev.allocation, ev});
}

void agent_twin::on(out& o, const worker_said& ev, time_point) {
  if (tasks_.contains(ev.allocation))
    o.push_back(tell_allocation{ev.allocation, ev});
}

/// Its allocation orders this when the task has ended. Where no allocation looks after the task any more, the
/// cluster orders it for a task that may live: then its slots are released when it is dead.
void agent_twin::on(out& o, const forget_ordered& ev, time_point) {
  if (const auto it = tasks_.find(ev.allocation); it != tasks_.end()) {
    const auto& said = it->second.said;
    if (!said || std::holds_alternative<troupe::task_started>(*said))
      strays_[ev.allocation] = it->second.slots;
    tasks_.erase(it);
  }
  if (strays_.contains(ev.allocation)) {
    if (status_ == status::alive)
      o.push_back(agent_order{kill_ordered{ev.allocation}});
    return;
  }
  if (status_ == status::alive)
    o.push_back(agent_order{ev});
  // The allocation has told the pool as well, but that message may have overtaken an inventory that says that
  // the slots are taken.
  o.push_back(tell_pool{slots_released{ev.allocation, name_}});
}

void agent_twin::on(out& o, const watch_ordered& ev, time_point) {
  auto it = tasks_.find(ev.allocation);
  if (it != tasks_.end()) {
    auto& known = it->second;
    if (ev.placed > known.placed) {
      known.placed = ev.placed;
      known.order.reset();
    }
    if (known.said)
      o.push_back(tell_allocation{ev.allocation, *known.said});
    else if (known.order && status_ == status::alive)
      o.push_back(agent_order{*known.order});
  } else if (status_ == status::lost) {
    o.push_back(tell_allocation{ev.allocation, troupe::agent_lost{name_, "its lease is over"}});
  } else if (status_ == status::alive) {
    say_unknown(o, ev.allocation, ev.placed);
  } else {
    tasks_[ev.allocation] = {ev.slots, {}, ev.placed, {}};
  }
}

void agent_twin::on(out& o, const death_confirmed& ev, time_point) {
  if (status_ != status::away)
    return; // an agent that is back speaks for itself
  if (tasks_.contains(ev.allocation))
    tell(o, ev.allocation, troupe::agent_lost{name_, "it died; its sandbox is gone"});
  else if (strays_.erase(ev.allocation))
    o.push_back(tell_pool{slots_released{ev.allocation, name_}});
}

void agent_twin::on(out& o, const time_passed&, time_point now) {
  if (status_ == status::lost || now < lease_until_)
    return;
  if (status_ == status::alive)
    o.push_back(tell_pool{agent_down{name_}});
  lose(o, "silent for longer than its lease");
}

void agent_twin::lose(out& o, const std::string& why) {
  status_ = status::lost;
  for (const auto& [id, t] : tasks_)
    o.push_back(tell_allocation{id, troupe::agent_lost{name_, why}});
  for (const auto& [id, slots] : strays_)
    o.push_back(tell_pool{slots_released{id, name_}});
  tasks_.clear();
  strays_.clear();
}

std::vector<twin_action> agent_twin::meet_pool() const {
  if (status_ == status::lost)
    return {};
  if (status_ == status::away) // the agent registers first
    return {tell_pool{agent_down{name_, false, lease_until_}}};
  agent_up up{name_, slots_, {}, traits_};
  for (const auto& [id, t] : tasks_)
    if (!t.said || !std::holds_alternative<task_exited>(*t.said))
      up.busy[to_string(id)] = t.slots;
  for (const auto& [id, slots] : strays_)
    up.busy[to_string(id)] = slots;
  return {tell_pool{std::move(up)}};
}

std::optional<time_point> agent_twin::deadline() const {
  return status_ == status::lost ? std::nullopt : std::optional{lease_until_};
}

std::string agent_twin::snapshot() const {
  std::vector<allocation_id> ids;
  for (const auto& [id, t] : tasks_)
    ids.push_back(id);
  return pack(std::tuple{int(status_), epoch_, slots_, ids});
}

value agent_twin::describe() const {
  value tasks = value::array(), strays = value::array();
  for (const auto& [id, t] : tasks_)
    tasks.push_back({{"allocation", to_string(id)}, {"slots", t.slots}, {"heard", t.said.has_value()}});
  for (const auto& [id, slots] : strays_)
    strays.push_back(to_string(id));
  return {{"state", shown()}, {"epoch", epoch_}, {"slots", slots_}, {"lease_until", to_rfc3339(lease_until_)},
          {"tasks", tasks},   {"strays", strays}};
}

const char* agent_twin::shown() const {
  return status_ == status::alive ? "alive" : status_ == status::away ? "away" : "lost";
}

} // namespace troupe
