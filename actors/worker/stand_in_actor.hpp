#pragma once
// The shell of actors/worker/stand_in.hpp: actor worker/N.R, where there are several ranks worker/N.R/K.

#include "actors/messages.hpp"
#include "actors/worker/stand_in.hpp"

namespace troupe {

/// Ends when its agent says so. Up it speaks to its agent, down through the gateway.
stand_in_actor spawn_stand_in(caf::actor_system& sys, stand_in_spec spec, agent_actor agent,
                              harness_actor harness);

} // namespace troupe
