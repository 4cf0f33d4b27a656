#pragma once
// The shell of actors/worker/stand_in.hpp. The actor is worker/N.R, or worker/N.R/K if the run has several
// ranks.

#include "actors/messages.hpp"
#include "actors/worker/stand_in.hpp"

namespace troupe {

/// The actor ends when its agent orders it to. It sends its reports to the agent, and its orders for the
/// worker through the gateway.
stand_in_actor spawn_stand_in(caf::actor_system& sys, stand_in_spec spec, agent_actor agent,
                              harness_actor harness);

} // namespace troupe
