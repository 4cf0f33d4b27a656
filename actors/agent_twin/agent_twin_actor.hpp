#pragma once
// The shell of actors/agent_twin/agent_twin.hpp: on the master, one for each agent that is known.

#include "actors/messages.hpp"

namespace troupe {

twin_actor spawn_twin(caf::actor_system& sys, std::string agent, lease_times lease, pool_actor pool);

} // namespace troupe
