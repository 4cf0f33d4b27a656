#include "actors/probed_actor.hpp"

#include <caf/actor_clock.hpp>

#include <ctime>

namespace troupe {

probe_register::~probe_register() {
  if (trace_)
    std::fclose(trace_);
}

void probe_register::add(std::shared_ptr<probe> p) {
  std::lock_guard lock(mutex_);
  probes_.insert(std::move(p));
}

void probe_register::remove(const std::shared_ptr<probe>& p) {
  std::lock_guard lock(mutex_);
  probes_.erase(p);
}

std::vector<std::shared_ptr<probe>> probe_register::all() const {
  std::lock_guard lock(mutex_);
  return {probes_.begin(), probes_.end()};
}

result<void> probe_register::trace_to(const std::string& file) {
  std::lock_guard lock(mutex_);
  trace_ = std::fopen(file.c_str(), "we");
  if (!trace_)
    return error{errc::io, "cannot write the trace to '" + file + "'"};
  trace_on_ = true;
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

time_point boot_time() {
  timespec t{};
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return time_point{std::chrono::duration_cast<duration>(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec))};
}

time_point wall_time(const caf::actor_clock& clock) {
  // One offset for the process: CAF's clock is monotonic, facts carry wall time.
  static const auto offset = std::chrono::system_clock::now().time_since_epoch() -
                             std::chrono::steady_clock::now().time_since_epoch();
  return time_point{std::chrono::duration_cast<duration>(clock.now().time_since_epoch() + offset)};
}

} // namespace troupe
