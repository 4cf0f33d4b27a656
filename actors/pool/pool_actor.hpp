#pragma once
// The shell of actors/pool/pool.hpp. Asked by name, it gives the handles of agents' twins; whoever asks for
// slots is answered at its own handle.

#include "actors/messages.hpp"
#include "actors/pool/pool.hpp"

namespace troupe {

/// `begin`: recovering where it replaces a pool that died; then it places nothing before holders_heard.
pool_actor spawn_pool(caf::actor_system& sys, std::string name, pool::phase begin = pool::phase::placing);

} // namespace troupe
