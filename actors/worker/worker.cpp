#include "actors/worker/worker.hpp"

#include <algorithm>

namespace troupe {

std::vector<worker_action> worker::apply(const worker_event& ev) {
  out o;
  std::visit([&](const auto& x) { on(o, x); }, ev);
  return o;
}

void worker::on(out& o, const order_arrived& ev) {
  if (ev.protocol != workers::worker_protocol)
    return; // the stand-in reports why it refuses this worker
  const auto order = workers::decode_worker<workers::worker_order>(ev.order);
  if (!order)
    return;
  if (!std::visit([this](const auto& x) { return take(x); }, *order))
    return; // a repeat
  status_.until = mandate_.until;
  o.push_back(hand_over{mandate_});
  say(o);
}

bool worker::take(const workers::train_until& x) {
  if (x.batch <= mandate_.until && x.may_rebuild == mandate_.may_rebuild)
    return false;
  mandate_.until = std::max(mandate_.until, x.batch);
  mandate_.may_rebuild = x.may_rebuild;
  return true;
}
bool worker::take(const workers::validate_now& x) {
  return x.number > mandate_.validations && (mandate_.validations = x.number, true);
}
bool worker::take(const workers::checkpoint_now& x) {
  return x.number > mandate_.checkpoints && (mandate_.checkpoints = x.number, true);
}
/// A stop is never taken back; the newest reason counts.
bool worker::take(const workers::stop_training& x) {
  return !x.reason.empty() && x.reason != mandate_.stop && (mandate_.stop = x.reason, true);
}
bool worker::take(const workers::rebuild_group& x) {
  if (x.generation <= mandate_.generation || x.members.empty())
    return false;
  mandate_.generation = x.generation;
  mandate_.members = x.members;
  return true;
}

void worker::on(out& o, const phase_entered& ev) {
  status_.phase = ev.phase;
  status_.generation = ev.generation;
  status_.step = ev.step;
  status_.batches = ev.batches;
  say(o);
}

void worker::on(out& o, const training_failed& ev) {
  o.push_back(say_word{workers::encode_worker(workers::worker_word{workers::worker_failure{ev.why}})});
}

void worker::on(out& o, const link_refused& ev) {
  mandate_.refused = ev.why;
  o.push_back(hand_over{mandate_});
}

void worker::on(out& o, const second_passed& ev) {
  if (status_.phase == workers::worker_phase::training)
    status_.step = ev.step;
  say(o);
}

void worker::say(out& o) const {
  o.push_back(say_word{workers::encode_worker(workers::worker_word{status_})});
}

} // namespace troupe
