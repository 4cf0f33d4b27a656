#include "storage/disk/space_gate.hpp"

#include <algorithm>
#include <chrono>

namespace troupe::storage {
namespace {

constexpr std::uint64_t kib = 1024, mib = 1024 * kib;
constexpr std::chrono::milliseconds look_again{50}; ///< nothing tells us when another process frees space

} // namespace

space_limits limits_for(std::uint64_t total_bytes, std::uint64_t wanted_reserve) {
  space_limits limits;
  limits.reserve = std::min(wanted_reserve, total_bytes / 20);
  limits.background = limits.reserve / 2;
  limits.floor = limits.reserve / 8;
  limits.ballast = std::min(16 * mib, total_bytes / 20);
  limits.chunk = std::clamp(limits.reserve / 16 / kib * kib, 64 * kib, 4 * mib);
  limits.write_buffer = std::clamp(total_bytes / 32, 512 * kib, 4 * mib);
  limits.log_total = 3 * limits.write_buffer;
  return limits;
}

bool may_write(const space_limits& limits, writer who, std::uint64_t free, std::uint64_t bytes) {
  auto keep = who == writer::journal  ? limits.reserve
              : who == writer::tables ? limits.background
                                      : limits.floor;
  return free >= keep && free - keep >= bytes;
}

space_gate::space_gate(space_limits limits, std::function<free_space()> probe,
                       std::function<void(std::string_view)> notice)
    : limits_(limits), probe_(std::move(probe)), notice_(std::move(notice)) {}

bool space_gate::room_for(writer who, std::uint64_t bytes) const {
  return may_write(limits_, who, probe_().free, bytes);
}

bool space_gate::pass(writer who, std::uint64_t bytes, const std::function<bool()>& claim) {
  std::unique_lock lock(guard_);
  bool told = false;
  for (;;) {
    if (closed_)
      break;
    const bool relaxed = relaxed_;
    lock.unlock();
    const bool open = (relaxed || room_for(who, bytes)) && claim();
    if (!open && !told && notice_)
      notice_("the disk is full: writing waits until space is back");
    if (open && told && notice_)
      notice_("space is back: writing goes on");
    lock.lock();
    if (open) {
      waiting_ -= told;
      return true;
    }
    waiting_ += !told;
    told = true;
    if (!closed_)
      changed_.wait_for(lock, look_again);
  }
  waiting_ -= told;
  return false;
}

bool space_gate::parked() const {
  std::lock_guard lock(guard_);
  return waiting_ > 0;
}

void space_gate::relax(bool on) {
  std::lock_guard lock(guard_);
  relaxed_ = on;
  changed_.notify_all();
}

void space_gate::close() {
  std::lock_guard lock(guard_);
  closed_ = true;
  changed_.notify_all();
}

} // namespace troupe::storage
