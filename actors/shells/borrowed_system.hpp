#pragma once
// Actor systems that are not ours, or that keep another time.

#include "model/result.hpp"
#include "model/time.hpp"

#include <functional>
#include <memory>

namespace caf {
class actor_clock;
class actor_system;
} // namespace caf

namespace troupe {

/// A node's claim on a host's actor system. One at a time for each system.
class borrowed_system {
public:
  static result<std::unique_ptr<borrowed_system>>
  take(const caf::actor_system& sys); ///< errc::conflict where it is taken
  ~borrowed_system();

private:
  explicit borrowed_system(const caf::actor_system& sys) : sys_(&sys) {}
  const caf::actor_system* sys_;
};

/// While it lives, wall_time(clock) is `now()`, which has to be thread-safe and quick. Timeouts are not moved
/// by it.
class other_wall_time {
public:
  other_wall_time(const caf::actor_clock& clock, std::function<time_point()> now);
  ~other_wall_time();
  other_wall_time(const other_wall_time&) = delete;
  other_wall_time& operator=(const other_wall_time&) = delete;

private:
  const caf::actor_clock* clock_;
};

} // namespace troupe
