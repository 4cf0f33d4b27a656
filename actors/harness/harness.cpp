#include "actors/harness/harness.hpp"

#include "actors/same_secret.hpp"
#include "model/back_off.hpp"
#include "model/checkpoint_place.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

using namespace workers;

namespace {

// Limits of what is kept of a process beside its rows: enough for a process that reconnects, few enough for
// one that misbehaves.
constexpr std::size_t answers_kept = 8, refusals_kept = 64, checkpoints_kept = 64;

duration retry_after(errc code, int failures) {
  auto first = code == errc::busy       ? duration(10ms)
               : code == errc::no_space ? duration(500ms)
                                        : duration(100ms);
  return back_off(failures + 1, first, std::min<duration>(32 * first, 2s));
}

} // namespace

harness::harness(harness_limits limits) : limits_(limits) {}

std::vector<harness_action> harness::apply(const harness_event& ev, time_point now) {
  out o;
  released_ = 0;
  std::visit([&](const auto& x) { on(o, x, now); }, ev);
  append_ready(o, now);
  if (released_)
    o.push_back(release_credit{released_});
  return o;
}

std::optional<time_point> harness::deadline() const {
  std::optional<time_point> next;
  auto consider = [&](time_point at) { next = next ? std::min(*next, at) : at; };
  for (const auto& [id, s] : streams_) {
    if (!s.undecided.empty())
      consider(s.undecided.front().second);
    if (s.ready && s.retry_at)
      consider(*s.retry_at);
    for (const auto& x : s.checkpoints)
      consider(x.forwarded + limits_.checkpoint_repeat);
  }
  return next;
}

// ---- tasks

void harness::on(out&, const task_expected& ev, time_point) {
  const auto [at, fresh] = tasks_.try_emplace(ev.allocation);
  auto& t = at->second;
  if (fresh)
    t.silent = ev.begins;
  t.token = ev.token;
  t.checkpoint_dir = ev.checkpoint_dir;
  t.gone = false;
}

void harness::on(out& o, const task_gone& ev, time_point) {
  tasks_[ev.allocation].gone = true;
  for (auto& [id, s] : streams_)
    if (id.allocation == ev.allocation) {
      s.checkpoints.clear(); // nobody waits for their answers
      s.undecided.clear();
    }
  drain(o, ev.allocation);
}

/// Forgets a task that is gone, once the journal has everything that the task sent.
void harness::drain(out& o, allocation_id allocation) {
  auto t = tasks_.find(allocation);
  if (t == tasks_.end() || !t->second.gone)
    return;
  auto of_it = [&](const auto& entry) { return entry.first.allocation == allocation; };
  if (std::any_of(streams_.begin(), streams_.end(),
                  [&](const auto& x) { return of_it(x) && !x.second.rows.empty(); }))
    return;
  std::erase_if(peers_, [&](const auto& x) { return x.second.allocation == allocation; });
  std::erase_if(streams_, of_it);
  const bool silent = t->second.silent;
  tasks_.erase(t);
  o.push_back(reports_drained{allocation, silent});
}

void harness::on(out& o, const task_stop_asked& ev, time_point) {
  auto t = tasks_.find(ev.allocation);
  if (t == tasks_.end() || t->second.asked == ev.reason)
    return; // the task is gone, or this is a repeat
  t->second.stop = t->second.asked = ev.reason;
  for (const auto& [id, s] : streams_)
    if (id.allocation == ev.allocation)
      tell(o, s, stop{ev.reason});
}

// ---- frames

void harness::on(out& o, const frames_received& ev, time_point now) {
  for (const auto& message : ev.messages) {
    auto before = held_;
    if (auto* e = find(message.peer))
      e->second.heard = now;
    std::visit([&](const auto& x) { take(o, message.peer, x, now); }, message.frame);
    // Rows that are kept are released when they are durable.
    released_ += weight(message.frame) - (held_ - before);
  }
}

void harness::take(out& o, const std::string& peer, const hello& x, time_point now) {
  if (x.version != task_link_version)
    return reject(o, peer, "version",
                  "the task link has version " + std::to_string(task_link_version) + " here, not " +
                    std::to_string(x.version) + "; use the Python package that the agent gives its tasks");
  auto t = tasks_.find(x.allocation);
  if (t == tasks_.end() || t->second.gone)
    return reject(o, peer, "unknown", "this agent does not run the allocation of TROUPE_ALLOCATION_ID");
  if (!same_secret(x.token, t->second.token))
    return reject(o, peer, "token", "TROUPE_TASK_TOKEN is not that of allocation " + to_string(x.allocation));
  t->second.silent = false;
  auto* e = enter(x, now);
  if (!e)
    return reject(o, peer, "window",
                  "more than " + std::to_string(limits_.processes) + " processes of allocation " +
                    to_string(x.allocation) + " report at once");
  auto& [id, s] = *e;
  if (x.acked > s.received())
    return reject(o, peer, "malformed", "hello: acked is beyond what this process has sent");
  if (auto* other = find(peer); other && other != e) // one connection speaks for one process only
    other->second.peer.clear();
  if (s.peer != peer)
    peers_.erase(std::exchange(s.peer, peer));
  peers_.insert_or_assign(peer, id);
  s.heard = now;
  acknowledge(o, s);
  tell(o, s, welcome{s.told, t->second.stop, limits_.window_bytes});
  for (const auto& [sequence, why] : s.refusals)
    if (sequence > x.acked)
      tell(o, s, refused{sequence, why});
}

/// The stream of this process, made if the process is new; null if the allocation has too many processes.
harness::entry* harness::enter(const hello& x, time_point now) {
  task_stream id{x.allocation, x.rank, x.process};
  if (auto at = streams_.find(id); at != streams_.end())
    return &*at;
  std::size_t count = 0;
  auto idlest = streams_.end();
  for (auto at = streams_.lower_bound({x.allocation, 0, {}});
       at != streams_.end() && at->first.allocation == x.allocation; ++at) {
    ++count;
    if (at->second.idle() && (idlest == streams_.end() || at->second.heard < idlest->second.heard))
      idlest = at;
  }
  if (count >= limits_.processes) {
    if (idlest == streams_.end() || now - idlest->second.heard < limits_.forget_after)
      return nullptr;
    // If the process lives after all, it says hello again and nothing is lost.
    peers_.erase(idlest->second.peer);
    streams_.erase(idlest);
  }
  auto at = streams_.try_emplace(std::move(id)).first;
  at->second.committed = at->second.told = x.acked;
  at->second.progress_at = now;
  return &*at;
}

void harness::take(out& o, const std::string& peer, const reports& x, time_point) {
  auto* e = find(peer);
  if (!e || x.first > e->second.received() + 1)
    return o.push_back(send_frame{peer, again{}});
  auto& s = e->second;
  bool repeated = false;
  auto number = x.first;
  for (const auto& row : x.rows) {
    if (number <= s.received()) {
      repeated = repeated || number <= s.told;
    } else if (!s.closed.empty()) {
      refuse(o, s, number, s.closed);
      s.committed = number;
    } else if (s.metrics_bytes > limits_.window_bytes) {
      reject(o, peer, "window",
             "more than " + std::to_string(limits_.window_bytes) +
               " bytes of reports are not yet acknowledged");
      break;
    } else {
      s.metrics_bytes += row.metrics.size();
      held_ += weight(row);
      s.rows.push_back(row);
      if (!row.refusal.empty())
        refuse(o, s, number, row.refusal);
    }
    ++number;
  }
  if (repeated)
    tell(o, s, ack{s.told}); // repeats the last acknowledgement
  acknowledge(o, s);
  make_ready(*e);
}

void harness::take(out& o, const std::string& peer, const task_checkpoint& x, time_point now) {
  auto* e = find(peer);
  if (!e)
    return o.push_back(send_frame{peer, again{}});
  auto& [id, s] = *e;
  for (const auto& old : s.answered)
    if (old.sequence == x.sequence && old.uuid == x.uuid)
      return tell(o, s,
                  old.refused.empty() ? agent_frame{saved{x.sequence}} : unsaved{x.sequence, old.refused});
  for (const auto& waiting : s.checkpoints)
    if (waiting.sequence == x.sequence)
      return; // a repeat; its answer is on the way
  if (s.checkpoints.size() >= checkpoints_kept)
    return; // the task sends it again
  auto metadata = parse_msgpack(x.metadata);
  if (!metadata)
    return tell(o, s, unsaved{x.sequence, "metadata: " + metadata.error().what});
  const auto folder = folder_of({"directory:" + tasks_.at(id.allocation).checkpoint_dir, x.uuid});
  checkpoint made{x.uuid, x.steps, {}, std::move(*metadata), folder};
  for (const auto& [path, bytes] : x.files)
    made.files[path] = static_cast<std::int64_t>(bytes);
  s.checkpoints.push_back({x.sequence, std::move(made), now});
  forward(o, id, s.checkpoints.back(), now);
}

void harness::take(out& o, const std::string& peer, const task_progress& x, time_point now) {
  auto* e = find(peer);
  if (!e || e->first.rank != 0)
    return;
  auto& s = e->second;
  if (now < s.progress_at + limits_.progress_every || std::abs(x.done - s.progress) < 0.01)
    return;
  s.progress = x.done;
  s.progress_at = now;
  o.push_back(forward_progress{e->first.allocation, x.done});
}

void harness::take(out& o, const std::string& peer, const worker_mail& x, time_point) {
  if (auto* e = find(peer))
    o.push_back(forward_worker{e->first, x.protocol, x.body});
  else
    o.push_back(send_frame{peer, again{}});
}

void harness::on(out& o, const worker_answered& ev, time_point) {
  auto at = streams_.find(ev.worker);
  if (at == streams_.end() || at->second.peer.empty())
    return; // the worker is not connected; it reports its status when it reconnects
  if (ev.refused.empty())
    tell(o, at->second, worker_mail{ev.protocol, ev.order});
  else
    reject(o, std::string(at->second.peer), "worker", ev.refused);
}

void harness::take(out& o, const std::string& peer, const ping&, time_point) {
  if (auto* e = find(peer))
    tell(o, e->second, pong{e->second.told, tasks_.at(e->first.allocation).stop});
  else
    o.push_back(send_frame{peer, again{}});
}

void harness::take(out& o, const std::string& peer, const malformed& x, time_point) {
  reject(o, peer, "malformed", x.why);
}

void harness::take(out&, const std::string& peer, const peer_gone&, time_point) {
  if (auto* e = find(peer))
    e->second.peer.clear();
  peers_.erase(peer);
}

harness::entry* harness::find(const std::string& peer) {
  auto known = peers_.find(peer);
  if (known == peers_.end())
    return nullptr;
  auto at = streams_.find(known->second);
  TROUPE_ASSERT(at != streams_.end());
  return &*at;
}

void harness::reject(out& o, const std::string& peer, const char* code, std::string why) {
  if (auto* e = find(peer))
    e->second.peer.clear();
  peers_.erase(peer);
  o.push_back(send_frame{peer, link_error{code, std::move(why)}});
}

void harness::tell(out& o, const stream_state& s, agent_frame frame) const {
  if (!s.peer.empty())
    o.push_back(send_frame{s.peer, std::move(frame)});
}

void harness::refuse(out& o, stream_state& s, std::uint64_t sequence, std::string why) {
  tell(o, s, refused{sequence, why});
  s.refusals.emplace_back(sequence, std::move(why));
  if (s.refusals.size() > refusals_kept)
    s.refusals.pop_front();
}

// ---- toward the journal

void harness::make_ready(entry& e) {
  auto& [id, s] = e;
  if (s.ready || s.in_flight || s.rows.empty())
    return;
  s.ready = true;
  ready_.push_back(id);
}

void harness::append_ready(out& o, time_point now) {
  for (auto left = ready_.size(); left > 0; --left) {
    auto id = std::move(ready_.front());
    ready_.pop_front();
    auto at = streams_.find(id);
    if (at == streams_.end())
      continue;
    auto& s = at->second;
    if (s.retry_at && now < *s.retry_at) {
      ready_.push_back(std::move(id));
      continue;
    }
    s.retry_at.reset();
    std::size_t bytes = 0;
    auto batch = flight_bytes_ < limits_.in_flight_bytes ? batch_of(id, s, bytes) : storage::report_batch{};
    if (batch.reports.empty() || (flight_bytes_ && flight_bytes_ + bytes > limits_.in_flight_bytes)) {
      ready_.push_front(std::move(id)); // the next answer from the journal gives this stream another turn
      return;
    }
    s.ready = false;
    s.in_flight = next_number_++;
    flight_bytes_ += bytes;
    flights_[s.in_flight] = {std::move(id), s.committed + batch.reports.size(), bytes};
    o.push_back(append_task_reports{s.in_flight, std::move(batch)});
  }
}

storage::report_batch harness::batch_of(const task_stream& id, const stream_state& s,
                                        std::size_t& bytes) const {
  storage::report_batch batch{id.allocation, id.rank, id.process, s.committed + 1, {}};
  for (const auto& row : s.rows) {
    auto size = row.metrics.size() + 64;
    if (bytes && bytes + size > limits_.batch_bytes)
      break;
    bytes += size;
    if (row.refusal.empty())
      batch.reports.push_back({row.validation ? "validation" : "training", row.steps, row.at, row.metrics});
    else
      batch.reports.push_back({"", row.steps, row.at, {}});
  }
  return batch;
}

void harness::on(out& o, const reports_answered& ev, time_point now) {
  auto flown = flights_.extract(ev.number);
  if (flown.empty())
    return; // late or repeated
  const auto [id, last, bytes] = flown.mapped();
  flight_bytes_ -= bytes;
  auto at = streams_.find(id);
  TROUPE_ASSERT(at != streams_.end() && at->second.in_flight == ev.number);
  auto& s = at->second;
  s.in_flight = 0;
  auto code = ev.failed ? ev.failed->code : errc::timeout;
  if (!ev.failed && ev.up_to > s.committed) {
    s.failures = 0;
    commit_to(o, *at, std::min(ev.up_to, s.received()), {}, now);
  } else if (code == errc::conflict || code == errc::gap) {
    s.closed = ev.failed->what;
    commit_to(o, *at, s.received(), s.closed, now);
  } else if (code == errc::invalid) {
    commit_to(o, *at, last, ev.failed->what, now);
  } else {
    s.retry_at = now + retry_after(code, s.failures++);
  }
  make_ready(*at);
  drain(o, id.allocation);
}

/// Notes that rows up to `up_to` are durable, or refused with `refusal` if that is not empty; sends what may
/// be acknowledged now.
void harness::commit_to(out& o, entry& e, std::uint64_t up_to, const std::string& refusal, time_point now) {
  auto& [id, s] = e;
  const bool heard = !tasks_.at(id.allocation).gone;
  while (s.committed < up_to) {
    const auto& row = s.rows.front();
    ++s.committed;
    if (row.refusal.empty() && !refusal.empty())
      refuse(o, s, s.committed, refusal);
    else if (row.refusal.empty() && row.validation && heard && !s.decisions.contains(s.committed))
      s.undecided.emplace_back(s.committed, now + limits_.decision_wait);
    s.metrics_bytes -= row.metrics.size();
    held_ -= weight(row);
    released_ += weight(row);
    s.rows.pop_front();
  }
  acknowledge(o, s);
}

void harness::acknowledge(out& o, stream_state& s) {
  auto up_to = s.acknowledgeable();
  if (up_to <= s.told)
    return;
  s.told = up_to;
  while (!s.decisions.empty() && s.decisions.begin()->first <= up_to) {
    tell(o, s, s.decisions.begin()->second);
    s.decisions.erase(s.decisions.begin());
  }
  tell(o, s, ack{up_to});
}

// ---- from the master

void harness::on(out& o, const validation_decided& ev, time_point) {
  auto at = streams_.find(ev.stream);
  if (at == streams_.end())
    return;
  auto& s = at->second;
  auto& t = tasks_.at(ev.stream.allocation);
  if (ev.stop && t.stop.empty())
    t.stop = ev.reason;        // for a process that reconnects before it has heard
  if (ev.sequence <= s.told) { // the acknowledgement did not wait for this decision
    if (ev.stop)
      tell(o, s, stop{ev.reason});
    return;
  }
  if (ev.sequence > s.received())
    return; // the process has not sent the report here yet: it is decided again when it comes
  s.decisions[ev.sequence] = {ev.sequence, ev.stop, ev.reason};
  std::erase_if(s.undecided, [&](const auto& x) { return x.first == ev.sequence; });
  acknowledge(o, s);
}

void harness::forward(out& o, const task_stream& id, waiting_checkpoint& x, time_point now) const {
  x.forwarded = now;
  o.push_back(forward_checkpoint{id, x.saved});
}

void harness::on(out& o, const checkpoint_answered& ev, time_point) {
  for (auto& [id, s] : streams_) {
    if (id.allocation != ev.allocation)
      continue;
    auto& waiting = s.checkpoints;
    auto x =
      std::find_if(waiting.begin(), waiting.end(), [&](const auto& w) { return w.saved.uuid == ev.uuid; });
    if (x == waiting.end())
      continue;
    tell(o, s, ev.refused.empty() ? agent_frame{saved{x->sequence}} : unsaved{x->sequence, ev.refused});
    s.answered.push_back({x->sequence, ev.uuid, ev.refused});
    if (s.answered.size() > answers_kept)
      s.answered.pop_front();
    waiting.erase(x);
    return;
  }
}

void harness::on(out& o, const master_reachable&, time_point now) {
  // Answers over the old connection may be lost, and nobody would say so before the request times out.
  flights_.clear();
  flight_bytes_ = 0;
  for (auto& entry : streams_) {
    auto& [id, s] = entry;
    s.in_flight = 0;
    s.retry_at.reset();
    make_ready(entry);
    for (auto& x : s.checkpoints)
      forward(o, id, x, now);
  }
}

void harness::on(out& o, const time_passed&, time_point now) {
  for (auto& [id, s] : streams_) {
    while (!s.undecided.empty() && s.undecided.front().second <= now)
      s.undecided.pop_front();
    acknowledge(o, s);
    for (auto& x : s.checkpoints)
      if (x.forwarded + limits_.checkpoint_repeat <= now)
        forward(o, id, x, now);
  }
}

value harness::describe() const {
  value tasks = value::array(), streams = value::array();
  for (const auto& [id, t] : tasks_)
    tasks.push_back({{"allocation", to_string(id)}, {"stop", t.stop}, {"gone", t.gone}});
  for (const auto& [id, s] : streams_)
    streams.push_back({{"allocation", to_string(id.allocation)},
                       {"rank", id.rank},
                       {"connected", !s.peer.empty()},
                       {"committed", s.committed},
                       {"told", s.told},
                       {"rows", s.rows.size()},
                       {"undecided", s.undecided.size()},
                       {"failures", s.failures},
                       {"closed", s.closed},
                       {"checkpoints", s.checkpoints.size()}});
  return {
    {"held_bytes", held_}, {"appends_in_flight", flights_.size()}, {"tasks", tasks}, {"streams", streams}};
}

} // namespace troupe
