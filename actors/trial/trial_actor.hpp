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
  /// Reads the journal's facts of an allocation that died.
  std::shared_ptr<storage::reader> reads;
  task_tokens tokens;
};

/// `past`: the facts of the trial's stream, oldest first; `of_open_run`: the facts of the allocation of the
/// run that is open after them. The actor ends by itself once its end is durable and reported.
trial_actor spawn_trial_actor(caf::actor_system& sys, const trial_spec& spec, task_launch launch,
                              trial_peers peers, const std::vector<trial_fact>& past,
                              std::vector<allocation_fact> of_open_run = {});

} // namespace troupe
