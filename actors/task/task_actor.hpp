#pragma once
// The shell of actors/task/task.hpp.

#include "actors/allocation/allocation_actor.hpp"
#include "actors/messages.hpp"
#include "actors/pool/pool_actor.hpp"
#include "actors/task/task_settings.hpp"
#include "actors/task_tokens.hpp"

namespace troupe {

struct task_peers {
  cluster_actor cluster;
  journal_actor journal;
  known_pools pools;
  /// Reads the journal's facts of an allocation that died.
  std::shared_ptr<storage::reader> reads;
  task_tokens tokens;
};

/// `past`: the facts of the task's stream, oldest first, task_created among them; `of_open_run`: the facts of
/// the allocation of the run that is open after them. The actor ends by itself once its end is durable and
/// reported.
task_actor spawn_task_actor(caf::actor_system& sys, task_settings settings, task_peers peers,
                            const std::vector<task_fact>& past,
                            std::vector<allocation_fact> of_open_run = {});

} // namespace troupe
