#pragma once
// The shell of actors/agent_twin/agent_twin.hpp. The master has one such actor for each known agent.

#include "actors/messages.hpp"

namespace troupe {

twin_actor spawn_twin(caf::actor_system& sys, std::string agent, lease_times lease, pool_actor pool);

} // namespace troupe
