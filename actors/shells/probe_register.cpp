#include "actors/shells/probe_register.hpp"

namespace troupe {

namespace {
constexpr std::size_t most_events = 512, most_ended = 1000, most_dead = 10'000;
constexpr std::size_t most_faults = 64;
} // namespace

probe_register::~probe_register() {
  if (trace_)
    std::fclose(trace_);
}

void probe_register::add(std::shared_ptr<probe> p, caf::weak_actor_ptr who) {
  std::lock_guard lock(mutex_);
  names_[p->actor_id] = p->name;
  if (dead_.erase(p->name)) {
    ++restarts_[p->name];
    note_locked("supervision", p->name, "is back, restart " + std::to_string(restarts_[p->name]), "");
  }
  if (auto it = restarts_.find(p->name); it != restarts_.end())
    p->restarts = it->second;
  auto& place = live_[p->name];
  place = {std::move(p), std::move(who)};
}

void probe_register::remove(const std::shared_ptr<probe>& p, const std::string& why) {
  std::lock_guard lock(mutex_);
  if (auto it = live_.find(p->name); it != live_.end() && it->second.what == p)
    live_.erase(it);
  ended_.push_back(p->actor_id);
  if (ended_.size() > most_ended) {
    names_.erase(ended_.front());
    ended_.pop_front();
  }
  if (why.empty())
    return;
  if (dead_.size() < most_dead)
    dead_.insert(p->name);
  note_locked("supervision", p->name, "died: " + why, "");
}

std::vector<std::shared_ptr<probe>> probe_register::all() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<probe>> out;
  out.reserve(live_.size());
  for (const auto& [name, one] : live_)
    out.push_back(one.what);
  return out;
}

std::optional<probe_register::entry> probe_register::find(const std::string& name) const {
  std::lock_guard lock(mutex_);
  auto it = live_.find(name);
  return it == live_.end() ? std::nullopt : std::optional{it->second};
}

std::string probe_register::name_of(std::uint64_t actor_id) const {
  std::lock_guard lock(mutex_);
  auto it = names_.find(actor_id);
  return it == names_.end() ? std::string() : it->second;
}

int probe_register::restarts(const std::string& name) const {
  std::lock_guard lock(mutex_);
  auto it = restarts_.find(name);
  return it == restarts_.end() ? 0 : it->second;
}

void probe_register::watch(std::shared_ptr<message_watch> x) {
  std::lock_guard lock(mutex_);
  watches_.push_back(std::move(x));
  changed();
}

void probe_register::unwatch(const std::shared_ptr<message_watch>& x) {
  std::lock_guard lock(mutex_);
  std::erase(watches_, x);
  changed();
}

void probe_register::disturb(std::shared_ptr<message_fault> x) {
  std::lock_guard lock(mutex_);
  std::erase_if(faults_, [now = ticks_now()](const auto& f) { return f->until < now; });
  if (faults_.size() >= most_faults)
    faults_.erase(faults_.begin());
  faults_.push_back(std::move(x));
  changed();
}

void probe_register::forget_faults() {
  std::lock_guard lock(mutex_);
  for (auto& f : faults_)
    f->left = 0;
  faults_.clear();
  changed();
}

std::vector<std::shared_ptr<message_watch>> probe_register::watches() const {
  std::lock_guard lock(mutex_);
  return watches_;
}

std::vector<std::shared_ptr<message_fault>> probe_register::faults() const {
  std::lock_guard lock(mutex_);
  return faults_;
}

void probe_register::note(std::string kind, std::string actor, std::string what, std::string user) {
  std::lock_guard lock(mutex_);
  note_locked(std::move(kind), std::move(actor), std::move(what), std::move(user));
}

void probe_register::note_locked(std::string kind, std::string actor, std::string what, std::string user) {
  const auto at = std::chrono::time_point_cast<duration>(std::chrono::system_clock::now());
  if (log_level.load(std::memory_order_relaxed) >= 3)
    std::fprintf(stderr, "%s %s %s %s\n", to_rfc3339(at).c_str(), kind.c_str(), actor.c_str(), what.c_str());
  events_.push_back(
    {++newest_event_, at, std::move(kind), std::move(actor), std::move(what), std::move(user)});
  if (events_.size() > most_events)
    events_.pop_front();
}

std::vector<supervision_event> probe_register::events(std::uint64_t after, std::size_t most) const {
  std::lock_guard lock(mutex_);
  std::vector<supervision_event> out;
  for (const auto& one : events_)
    if (one.number > after)
      out.push_back(one);
  if (out.size() > most)
    out.erase(out.begin(), out.end() - static_cast<std::ptrdiff_t>(most));
  return out;
}

result<void> probe_register::trace_to(const std::string& file) {
  std::lock_guard lock(mutex_);
  trace_ = std::fopen(file.c_str(), "we");
  if (!trace_)
    return error{errc::io, "cannot write the trace to '" + file + "'"};
  trace_on_ = true;
  changed();
  return {};
}

void probe_register::write(const std::string& actor, const std::string& what, const std::string& text) {
  auto at = std::chrono::time_point_cast<duration>(std::chrono::system_clock::now());
  auto line = to_rfc3339(at) + " " + actor + " " + what + " " + text;
  for (auto& c : line)
    if (static_cast<unsigned char>(c) < 0x20)
      c = ' ';
  if (line.size() > 2000)
    line.resize(2000);
  line += '\n';
  std::lock_guard lock(mutex_);
  std::fwrite(line.data(), 1, line.size(), trace_);
  std::fflush(trace_);
}

} // namespace troupe
