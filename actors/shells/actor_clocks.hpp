#pragma once
// The two times of shells: one for leases, one for facts.

#include "model/time.hpp"

namespace caf {
class actor_clock;
}

namespace troupe {

/// Time by CLOCK_BOOTTIME, which never jumps and goes on while the host sleeps: leases hang on it, no fact
/// does.
time_point boot_time();

/// Wall time by the actor's clock, so that tests can move it.
time_point wall_time(const caf::actor_clock& clock);

} // namespace troupe
