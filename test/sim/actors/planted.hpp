#pragma once
// Bugs that a test plants in the simulation's own shells, to prove that the simulation finds bugs of their
// kind. Machines have none.

#include "model/facts.hpp"

#include <type_traits>
#include <variant>

namespace troupe::sim {

enum class planted_bug {
  none,
  act_before_commit,   ///< a shell runs the actions of a step whose facts are not durable
  late_grant_kept,     ///< an allocation that has ended keeps the slots of a grant that comes late
  lease_one_tick_long, ///< an agent renews leases for a heartbeat longer than the master allows
  repeated_start_runs, ///< a start that comes twice starts a second process
  replay_skips         ///< a machine does not replay `trial_paused`
};
inline planted_bug planted = planted_bug::none;

/// Replays a fact into a machine.
template <class Machine, class... Facts>
void replay_into(Machine& machine, const std::variant<Facts...>& fact) {
  if constexpr ((std::is_same_v<Facts, trial_paused> || ...))
    if (planted == planted_bug::replay_skips && std::holds_alternative<trial_paused>(fact))
      return;
  machine.replay(fact);
}

} // namespace troupe::sim
