#include "actors/worker/stand_in.hpp"

namespace troupe {

std::vector<stand_in_action> stand_in::apply(const stand_in_event& ev, time_point now) {
  out o;
  std::visit([&](const auto& x) { on(o, x, now); }, ev);
  return o;
}

/// Refuses a process. If no process speaks for the rank yet, the reason also goes up, as the worker's last
/// word, because the run fails of it.
void stand_in::refuse(out& o, const std::string& process, std::string why) {
  // If a process speaks for the rank, another process was refused, and the run goes on.
  if (process_.empty() && !std::exchange(refused_, true))
    o.push_back(pass_word{workers::encode_worker(workers::worker_word{workers::worker_failure{why}})});
  o.push_back(refuse_worker{process, std::move(why)});
}

void stand_in::on(out& o, const word_heard& ev, time_point now) {
  if (ev.allocation != spec_.allocation || ev.member != spec_.member)
    return refuse(o, ev.process,
                  "worker " + to_string(ev.allocation) + "/" + std::to_string(ev.member) + " is not worker " +
                    to_string(spec_.allocation) + "/" + std::to_string(spec_.member));
  if (ev.protocol != workers::worker_protocol)
    return refuse(o, ev.process,
                  "the worker of rank " + std::to_string(ev.member) + " speaks version " +
                    std::to_string(ev.protocol) + " of the worker protocol, the cluster version " +
                    std::to_string(workers::worker_protocol) +
                    ": build the trial again with the troupe package of this cluster");
  auto word = workers::decode_worker<workers::worker_word>(ev.word);
  if (!word)
    return refuse(o, ev.process,
                  "a word of the worker of rank " + std::to_string(ev.member) +
                    " cannot be read: " + word.error().what);
  if (process_.empty())
    process_ = ev.process;
  if (ev.process != process_)
    return refuse(o, ev.process,
                  "another process is the worker of rank " + std::to_string(ev.member) +
                    " already: one process for each rank calls run_trial");
  heard_ = now;
  silent_ = false;
  // Kept here for the operators' shell, because the master would have to keep it for thousands of workers.
  if (auto* mail = std::get_if<workers::worker_heard>(&*word)) {
    constexpr std::size_t most = 32;
    if (mail->recent.size() > most)
      mail->recent.erase(mail->recent.begin(), mail->recent.end() - most);
    took_ = std::move(*mail);
    return;
  }
  auto* status = std::get_if<workers::worker_status>(&*word);
  if (status)
    said_ = *status;
  else
    return o.push_back(pass_word{ev.word});
  // A status that differs only in its steps is not passed on: steps change each second, and the master has
  // thousands of workers.
  const bool same = passed_ && passed_->phase == status->phase && passed_->generation == status->generation &&
                    passed_->batches == status->batches && passed_->until == status->until;
  const bool waits =
    status->phase != workers::worker_phase::training && status->phase != workers::worker_phase::starting;
  if (same && !waits && now - passed_at_ < spec_.repeat_status)
    return;
  passed_ = *status;
  passed_at_ = now;
  o.push_back(pass_word{ev.word});
}

void stand_in::on(out& o, const order_heard& ev, time_point) {
  // An order may be for another worker, or from a master of another version: then the start of the run would
  // have been refused.
  if (ev.allocation != spec_.allocation || ev.member != spec_.member ||
      ev.protocol != workers::worker_protocol || refused_ || process_.empty() ||
      !workers::decode_worker<workers::worker_order>(ev.order))
    return;
  o.push_back(pass_order{process_, ev.order});
}

/// Renewed leases mean that no task is frozen. Silence counts only while they are renewed, because a frozen
/// task is silent, too.
void stand_in::on(out& o, const lease_renewed&, time_point now) {
  constexpr duration tick = 5s;
  if (!renewed_ || now - *renewed_ > tick)
    heard_ = now;
  renewed_ = now;
  if (refused_ || silent_ || now - heard_ < spec_.silence)
    return;
  silent_ = true;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - heard_).count();
  o.push_back(report_silence{"silent for " + std::to_string(seconds) + " s (rank " +
                             std::to_string(spec_.member) + ")"});
}

} // namespace troupe
