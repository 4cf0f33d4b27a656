#include "actors/retention/sweeps.hpp"

#include <algorithm>

namespace troupe {

sweeps::sweeps(time_point now, duration look_every)
    : look_every_(look_every), look_at_(now + std::min(pause, look_every)) {}

std::vector<sweeps_action> sweeps::apply(const sweeps_event& ev, time_point now) {
  out o;
  std::visit([&](const auto& x) { on(o, x, now); }, ev);
  return o;
}

void sweeps::on(out& o, const sweep_asked& ev, time_point now) {
  auto [it, fresh] = sweeps_.try_emplace(ev.id, sweep{ev.due, false, {}, 0});
  auto& x = it->second;
  if (x.at_work)
    return;
  x.due = fresh ? ev.due : std::min(x.due, ev.due);
  if (x.due <= now)
    begin(o, ev.id, x);
}

void sweeps::begin(out& o, experiment_id id, sweep& x) {
  x.at_work = true;
  o.push_back(plan_sweep{id});
}

void sweeps::on(out& o, const sweep_planned& ev, time_point) {
  auto it = sweeps_.find(ev.id);
  if (it == sweeps_.end() || !it->second.at_work || !it->second.left.empty())
    return;
  it->second.left = ev.trials;
  next(o, ev.id);
}

void sweeps::on(out&, const sweep_unplanned& ev, time_point now) {
  if (auto it = sweeps_.find(ev.id); it != sweeps_.end() && it->second.at_work)
    put_off(it->second, now);
}

/// One trial after the other.
void sweeps::next(out& o, experiment_id id) {
  auto& x = sweeps_.at(id);
  x.tries = 0;
  if (!x.left.empty()) {
    o.push_back(note_deletion{id, x.left.back()});
    return;
  }
  sweeps_.erase(id);
  o.push_back(report_swept{id});
}

sweeps::sweep* sweeps::noting(experiment_id id, trial_id trial) {
  auto it = sweeps_.find(id);
  if (it == sweeps_.end() || it->second.left.empty() || it->second.left.back() != trial)
    return nullptr;
  return &it->second;
}

void sweeps::on(out& o, const deletion_noted& ev, time_point) {
  auto* x = noting(ev.id, ev.trial);
  if (!x)
    return;
  o.push_back(remove_files{ev.id, ev.trial});
  x->left.pop_back();
  next(o, ev.id);
}

void sweeps::on(out& o, const deletion_refused& ev, time_point now) {
  auto* x = noting(ev.id, ev.trial);
  if (!x)
    return;
  if (ev.taken && ++x->tries < most_tries)
    o.push_back(note_deletion{ev.id, ev.trial});
  else
    put_off(*x, now);
}

/// What is left is planned anew then.
void sweeps::put_off(sweep& x, time_point now) { x = {now + pause, false, {}, 0}; }

void sweeps::on(out& o, const time_passed&, time_point now) {
  for (auto& [id, x] : sweeps_)
    if (!x.at_work && x.due <= now)
      begin(o, id, x);
  if (look_at_ <= now) {
    look_at_ = now + look_every_;
    o.push_back(look_at_logs{});
  }
}

time_point sweeps::deadline() const {
  auto next = look_at_;
  for (const auto& [id, x] : sweeps_)
    if (!x.at_work)
      next = std::min(next, x.due);
  return next;
}

value sweeps::describe() const {
  value all = value::object();
  for (const auto& [id, x] : sweeps_)
    all[to_string(id)] = {{"at_work", x.at_work}, {"due", to_rfc3339(x.due)}, {"trials_left", x.left.size()}};
  return {{"sweeps", all}, {"look_at_logs", to_rfc3339(look_at_)}};
}

} // namespace troupe
