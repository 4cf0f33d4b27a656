#include "actors/shells/borrowed_system.hpp"

#include "actors/shells/actor_clocks.hpp"

#include <caf/actor_clock.hpp>

#include <atomic>
#include <ctime>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace troupe {
namespace {

/// One table for the whole process; while it is empty, looking into it costs only a load.
template <class Key, class Data>
class side_table {
public:
  bool put(const Key* key, Data data) {
    std::lock_guard lock(mutex_);
    const bool fresh = data_.emplace(key, std::move(data)).second;
    size_ = data_.size();
    return fresh;
  }
  void take(const Key* key) {
    std::lock_guard lock(mutex_);
    data_.erase(key);
    size_ = data_.size();
  }
  Data of(const Key* key) const {
    if (size_.load(std::memory_order_relaxed) == 0)
      return {};
    std::shared_lock lock(mutex_);
    auto found = data_.find(key);
    return found == data_.end() ? Data{} : found->second;
  }

private:
  mutable std::shared_mutex mutex_;
  std::atomic<std::size_t> size_{0};
  std::map<const Key*, Data> data_;
};

auto& other_clocks() {
  static side_table<caf::actor_clock, std::function<time_point()>> table;
  return table;
}
auto& borrowed_systems() {
  static side_table<caf::actor_system, bool> table;
  return table;
}

} // namespace

other_wall_time::other_wall_time(const caf::actor_clock& clock, std::function<time_point()> now)
    : clock_(&clock) {
  other_clocks().put(clock_, std::move(now));
}
other_wall_time::~other_wall_time() { other_clocks().take(clock_); }

result<std::unique_ptr<borrowed_system>> borrowed_system::take(const caf::actor_system& sys) {
  std::unique_ptr<borrowed_system> out(new borrowed_system(sys));
  if (borrowed_systems().put(&sys, true))
    return out;
  out->sys_ = nullptr;
  return error{errc::conflict,
               "this actor system holds a node already\nhint: give each node an actor system of its own"};
}
borrowed_system::~borrowed_system() {
  if (sys_)
    borrowed_systems().take(sys_);
}

time_point boot_time() {
  timespec t{};
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return time_point{std::chrono::duration_cast<duration>(std::chrono::seconds(t.tv_sec) +
                                                         std::chrono::nanoseconds(t.tv_nsec))};
}

time_point wall_time(const caf::actor_clock& clock) {
  if (auto other = other_clocks().of(&clock))
    return other();
  // One offset for the process: CAF's clock is monotonic, and facts carry wall time.
  static const auto offset =
    std::chrono::system_clock::now().time_since_epoch() - std::chrono::steady_clock::now().time_since_epoch();
  return time_point{std::chrono::duration_cast<duration>(clock.now().time_since_epoch() + offset)};
}

} // namespace troupe
