#pragma once
// The shell of actors/allocation/allocation.hpp.

#include "actors/messages.hpp"

namespace troupe {

struct allocation_peers {
  trial_actor trial;
  journal_actor journal;
  pool_actor pool;
};

/// How to start a task of the allocation, but for what only the allocation knows (slots, node_rank, nodes,
/// resources_id, token): keys entrypoint, env, context, hparams, seed, experiment, trial, run,
/// checkpoint_dir, resume, resume_steps; for Determined's client config (merged), task_id, allocation_name,
/// owner, user_token, session_token.
using task_launch = value;

/// `past`: the facts of its stream, oldest first. Ends by itself once its end is durable and told.
allocation_actor spawn_allocation(caf::actor_system& sys, const allocation_spec& spec, task_launch launch,
                                  allocation_peers peers, const std::vector<allocation_fact>& past);

} // namespace troupe
