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
  auto [it, fresh] = sweeps_.try_emplace(ev.id, sweep{ev.due});
  auto& x = it->second;
  if (x.at != stage::waiting)
    return;
  x.due = fresh ? ev.due : std::min(x.due, ev.due);
  if (x.due <= now)
    begin(o, ev.id, x);
}

void sweeps::begin(out& o, experiment_id id, sweep& x) {
  x.at = stage::planning;
  o.push_back(plan_sweep{id});
}

sweeps::sweep* sweeps::at_stage(experiment_id id, stage at) {
  auto it = sweeps_.find(id);
  return it != sweeps_.end() && it->second.at == at ? &it->second : nullptr;
}

void sweeps::on(out& o, const sweep_planned& ev, time_point) {
  auto* x = at_stage(ev.id, stage::planning);
  if (!x)
    return;
  if (!ev.collects)
    return finish(o, ev.id);
  x->left = ev.trials;
  x->at = stage::beginning;
  o.push_back(begin_collection{ev.id});
}

void sweeps::on(out&, const sweep_unplanned& ev, time_point now) {
  if (auto* x = at_stage(ev.id, stage::planning))
    put_off(*x, now);
}

void sweeps::on(out& o, const collection_begun& ev, time_point) {
  auto* x = at_stage(ev.id, stage::beginning);
  if (!x)
    return;
  x->at = stage::noting;
  next(o, ev.id);
}

void sweeps::on(out& o, const collection_ended& ev, time_point) {
  if (at_stage(ev.id, stage::ending))
    finish(o, ev.id);
}

void sweeps::on(out&, const collection_refused& ev, time_point now) {
  for (const auto at : {stage::beginning, stage::ending})
    if (auto* x = at_stage(ev.id, at))
      return put_off(*x, now);
}

/// Notes the deletions of one trial after the other.
void sweeps::next(out& o, experiment_id id) {
  auto& x = sweeps_.at(id);
  x.tries = 0;
  if (!x.left.empty()) {
    o.push_back(note_deletion{id, x.left.back()});
    return;
  }
  x.at = stage::ending;
  o.push_back(end_collection{id});
}

void sweeps::finish(out& o, experiment_id id) {
  sweeps_.erase(id);
  o.push_back(report_swept{id});
}

sweeps::sweep* sweeps::noting(experiment_id id, trial_id trial) {
  auto* x = at_stage(id, stage::noting);
  return x && !x->left.empty() && x->left.back() == trial ? x : nullptr;
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

/// Tries again after a pause; what is left is planned anew then.
void sweeps::put_off(sweep& x, time_point now) { x = {now + pause}; }

void sweeps::on(out& o, const time_passed&, time_point now) {
  for (auto& [id, x] : sweeps_)
    if (x.at == stage::waiting && x.due <= now)
      begin(o, id, x);
  if (look_at_ <= now) {
    look_at_ = now + look_every_;
    o.push_back(look_at_logs{});
  }
}

time_point sweeps::deadline() const {
  auto next = look_at_;
  for (const auto& [id, x] : sweeps_)
    if (x.at == stage::waiting)
      next = std::min(next, x.due);
  return next;
}

value sweeps::describe() const {
  value all = value::object();
  for (const auto& [id, x] : sweeps_)
    all[to_string(id)] = {
      {"at_work", x.at != stage::waiting}, {"due", to_rfc3339(x.due)}, {"trials_left", x.left.size()}};
  return {{"sweeps", all}, {"look_at_logs", to_rfc3339(look_at_)}};
}

} // namespace troupe
