#pragma once
// The two kinds of time that shells use: one for leases, one for facts.

#include "model/time.hpp"

namespace caf {
class actor_clock;
}

namespace troupe {

/// Time by CLOCK_BOOTTIME, which never jumps and goes on while the host sleeps. Leases use it; facts do not.
time_point boot_time();

/// Wall time, computed from the actor's clock so that tests can move it.
time_point wall_time(const caf::actor_clock& clock);

} // namespace troupe
