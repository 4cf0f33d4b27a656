#pragma once
// The shell of actors/trial/trial.hpp.

#include "actors/allocation/allocation_actor.hpp"
#include "actors/messages.hpp"
#include "actors/pool/pool_actor.hpp"
#include "actors/task_tokens.hpp"

namespace troupe {

struct trial_peers {
  experiment_actor experiment;
  journal_actor journal;
  known_pools pools;
  std::shared_ptr<storage::reader> reads; ///< for what an allocation that died has in the journal
  task_tokens tokens;
};

/// `past`: the facts of its stream, oldest first; `of_open_run`: those of the run that is open after them.
/// Ends by itself once its end is durable and told.
trial_actor spawn_trial_actor(caf::actor_system& sys, const trial_spec& spec, task_launch launch,
                              trial_peers peers, const std::vector<trial_fact>& past,
                              std::vector<allocation_fact> of_open_run = {});

} // namespace troupe
