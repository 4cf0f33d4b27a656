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
  known_pools pools; ///< all pools, as the run may also ask others than its own
  std::string title; ///< name of a task that is not a trial, for its log; empty: the log tells no start
};

/// `launch` lacks the token and the members of a single part, which the allocation adds. `past`: the facts of
/// the allocation's stream, oldest first. The actor ends by itself once its end is durable and reported.
allocation_actor spawn_allocation(caf::actor_system& sys, const allocation_spec& spec, task_launch launch,
                                  allocation_peers peers, const std::vector<allocation_fact>& past);

} // namespace troupe
