#pragma once
// What differs when a test drives the scheduler: the threads of actors, and the clock of leases. Under such a
// test, everything happens on the test's thread, in the order and at the times that the test chooses.

#include "actors/shells/actor_clocks.hpp"

#include <caf/actor_clock.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>

#include <string>

namespace troupe {

inline bool driven_by_test(const caf::actor_system& sys) {
  return caf::get_or(sys.config(), "scheduler.policy", caf::atom("")) == caf::atom("testing");
}

/// Spawns an actor that waits for a disk, or computes long.
template <class Impl, class... Args>
auto spawn_with_own_thread(caf::actor_system& sys, Args&&... args) {
  return driven_by_test(sys) ? sys.spawn<Impl>(std::forward<Args>(args)...)
                             : sys.spawn<Impl, caf::detached>(std::forward<Args>(args)...);
}

/// The time that leases are counted by; see boot_time.
inline time_point lease_time(caf::actor_system& sys) {
  return driven_by_test(sys) ? wall_time(sys.clock()) : boot_time();
}

/// A number that such a test puts into the configuration of its system under "driven"; else `otherwise`.
inline std::int64_t set_by_test(const caf::actor_system& sys, const std::string& what,
                                std::int64_t otherwise) {
  return driven_by_test(sys) ? caf::get_or(sys.config(), "driven." + what, otherwise) : otherwise;
}

} // namespace troupe
