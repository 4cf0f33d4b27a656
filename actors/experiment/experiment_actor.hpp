#pragma once
// The shell of actors/experiment/experiment.hpp.

#include "actors/messages.hpp"
#include "actors/task_tokens.hpp"

namespace troupe {

struct experiment_setup {
  experiment_id id;
  value config;         ///< complete
  std::string context;  ///< blob, or empty
  bool start_paused = false;
  std::string checkpoint_dir; ///< absolute; where the config names none
  std::string owner;          ///< the user whom its tasks speak for
};

struct experiment_peers {
  cluster_actor cluster;
  journal_actor journal;
  pool_actor pool;
  std::shared_ptr<storage::reader> reads;
  task_tokens tokens;
};

/// `past`: the facts of its stream, oldest first. Ends by itself once its end is durable and told.
experiment_actor spawn_experiment(caf::actor_system& sys, experiment_setup setup, experiment_peers peers,
                                  const std::vector<experiment_fact>& past);

/// The facts of a stream, oldest first; errc::corrupt, with the number, where one cannot be read: the stream is then of no
/// use, since what follows stands on it.
result<std::vector<experiment_fact>> experiment_facts(const storage::reader& reads, experiment_id id);

/// Replays the stream in a machine of its own: the reason why it cannot be, where an assertion fails.
result<void> replayable(const std::vector<experiment_fact>& past);
result<void> replayable(const std::vector<trial_fact>& past);

} // namespace troupe
