#include "actors/host/log_pump.hpp"

#include <algorithm>

namespace troupe {

std::vector<log_pump_action> log_pump::apply(const log_pump_event& ev, time_point now) {
  out o;
  std::visit([&](const auto& x) { on(o, x, now); }, ev);
  return o;
}

std::optional<time_point> log_pump::deadline() const {
  return journal_ && !sources_.empty() ? look_at_ : std::nullopt;
}

void log_pump::look_soon(time_point now) {
  if (!look_at_)
    look_at_ = now + pace_;
}

void log_pump::on(out&, const spool_opened& ev, time_point now) {
  auto [it, fresh] = sources_.try_emplace(ev.allocation);
  if (!fresh)
    return; // an adopted task may be announced twice
  it->second.agent = ev.agent;
  it->second.spool = ev.spool;
  // Each agent of a gang has a spool of its own.
  it->second.key = to_string(ev.allocation) + "@" + ev.agent;
  look_soon(now);
}

void log_pump::on(out& o, const spool_ended& ev, time_point now) {
  auto it = sources_.find(ev.allocation);
  if (it == sources_.end())
    return o.push_back(tell_pumped{ev.allocation});
  it->second.ending = true;
  go_on(o, it->first, it->second);
  look_soon(now);
}

void log_pump::on(out&, const journal_reached& ev, time_point now) {
  journal_ = ev.there;
  for (auto& [id, s] : sources_)
    s.now = phase::fresh; // another journal may hold fewer lines than this one has acknowledged
  look_at_.reset();
  look_soon(now);
}

/// The source that waits for this answer; the end of `sources_` if none does, because the answer is late.
log_pump::entry log_pump::answered(allocation_id id, std::uint64_t question, phase in) {
  auto it = sources_.find(id);
  return it != sources_.end() && it->second.now == in && it->second.question == question ? it
                                                                                         : sources_.end();
}

void log_pump::on(out& o, const position_told& ev, time_point) {
  auto it = answered(ev.allocation, ev.question, phase::asking);
  if (it == sources_.end())
    return;
  it->second.now = phase::reading;
  it->second.stored = ev.line;
  if (it->second.ending)
    go_on(o, it->first, it->second);
}

void log_pump::on(out& o, const batch_stored& ev, time_point) {
  auto it = answered(ev.allocation, ev.question, phase::storing);
  if (it == sources_.end())
    return;
  auto& s = it->second;
  s.now = phase::reading;
  s.at = s.next;
  s.stored = std::max(s.stored, s.next.line);
  if (s.ending || s.more)
    go_on(o, it->first, s);
}

void log_pump::on(out&, const journal_refused& ev, time_point) {
  if (auto it = answered(ev.allocation, ev.question, phase::asking); it != sources_.end())
    it->second.now = phase::fresh;
  else if (it = answered(ev.allocation, ev.question, phase::storing); it != sources_.end())
    it->second.now = phase::reading; // the same lines are sent again: the journal takes no line twice
}

void log_pump::on(out& o, const spool_read& ev, time_point) {
  auto it = sources_.find(ev.allocation);
  if (it == sources_.end() || it->second.now != phase::reading)
    return;
  auto& s = it->second;
  using outcome = spool_read::outcome;
  if (ev.what == outcome::gone) {
    if (s.ending)
      finish(o, it);
    return;
  }
  if (ev.what == outcome::lines) {
    s.next = ev.next;
    s.more = !ev.at_end;
    s.now = phase::storing;
    s.question = ++questions_;
    return o.push_back(store_batch{ev.allocation, s.question, s.key});
  }
  const bool moved = s.at != ev.next;
  s.at = ev.next;
  if (s.ending && ev.what == outcome::none && ev.at_end)
    finish(o, it);
  else if (moved && (s.ending || !ev.at_end))
    go_on(o, it->first, s);
}

void log_pump::on(out& o, const time_passed&, time_point now) {
  if (!journal_ || !look_at_ || now < *look_at_)
    return;
  for (auto& [id, s] : sources_)
    go_on(o, id, s);
  look_at_ = now + pace_;
}

void log_pump::go_on(out& o, allocation_id id, source& s) {
  if (!journal_)
    return;
  if (s.now == phase::fresh) {
    s.now = phase::asking;
    s.question = ++questions_;
    o.push_back(ask_position{id, s.question, s.key});
  } else if (s.now == phase::reading) {
    o.push_back(read_spool{id, s.agent, s.spool, s.at, s.stored});
  }
}

void log_pump::finish(out& o, entry it) {
  o.push_back(tell_pumped{it->first});
  sources_.erase(it);
}

} // namespace troupe
