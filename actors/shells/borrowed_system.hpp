#pragma once
// For actor systems that belong to an embedding program, or that keep another time.

#include "model/result.hpp"
#include "model/time.hpp"

#include <functional>
#include <memory>

namespace caf {
class actor_clock;
class actor_system;
} // namespace caf

namespace troupe {

/// A node's claim on the actor system of an embedding program. Each system has one claim at a time.
class borrowed_system {
public:
  /// errc::conflict if another node has claimed the system.
  static result<std::unique_ptr<borrowed_system>> take(const caf::actor_system& sys);
  ~borrowed_system();

private:
  explicit borrowed_system(const caf::actor_system& sys) : sys_(&sys) {}
  const caf::actor_system* sys_;
};

/// While this object lives, wall_time(clock) is `now()`, which has to be thread-safe and fast. Timeouts stay
/// on CAF's clock.
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
