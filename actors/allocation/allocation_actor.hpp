#pragma once
// The shell of actors/allocation/allocation.hpp.

#include "actors/allocation/task_launch.hpp"
#include "actors/messages.hpp"
#include "actors/pool/pool_actor.hpp"

namespace troupe {

struct allocation_peers {
  allocation_owner owner;
  journal_actor journal;
  pool_actor pool;
  std::string pool_name;
  known_pools pools; ///< to ask others than its own
  std::string title; ///< of a task that is no trial, for its log; empty: nothing is said of its start
};

/// `launch`: without the token and what belongs to one part, which the allocation adds. `past`: the facts of
/// its stream, oldest first. Ends by itself once its end is durable and told.
allocation_actor spawn_allocation(caf::actor_system& sys, const allocation_spec& spec, task_launch launch,
                                  allocation_peers peers, const std::vector<allocation_fact>& past);

} // namespace troupe
