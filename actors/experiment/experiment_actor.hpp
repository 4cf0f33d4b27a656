#pragma once
// The shell of actors/experiment/experiment.hpp.

#include "actors/experiment/experiment_settings.hpp"
#include "actors/messages.hpp"
#include "actors/pool/pool_actor.hpp"
#include "actors/task_tokens.hpp"

namespace troupe {

struct experiment_setup {
  experiment_settings settings;
  bool start_paused = false;
};

struct experiment_peers {
  cluster_actor cluster;
  journal_actor journal;
  known_pools pools;
  std::shared_ptr<storage::reader> reads;
  task_tokens tokens;
};

/// The stored facts of a trial that is made again.
struct trial_past {
  std::vector<trial_fact> facts;       ///< oldest first
  std::vector<allocation_fact> of_run; ///< facts of the open run's allocation
};

/// What is stored of an experiment: the newest snapshots of its machine and its searcher, and the facts after
/// them.
struct experiment_past {
  std::uint64_t before = 0;                      ///< number of facts that the snapshots stand for
  std::string machine, searcher;                 ///< empty if there are no snapshots
  std::vector<experiment_fact> facts;            ///< oldest first
  std::map<trial_id, result<trial_past>> trials; ///< trials that are made again; see add_trials
  std::vector<validation_recorded> missed;       ///< durable reports that are not decided on; see add_trials
  /// The latest continuation, which the experiment's own facts may not hold yet; number 0: none.
  experiment_resume again;
};

/// The actor ends by itself once its end is durable and reported.
experiment_actor spawn_experiment(caf::actor_system& sys, experiment_setup setup, experiment_peers peers,
                                  const experiment_past& past);

/// Returns errc::corrupt with the number of the fact if a fact cannot be read: the stream is then useless,
/// because later facts build on that one. If this build cannot read a snapshot of machine or searcher, the
/// snapshots are left out and all facts are returned.
result<experiment_past> past_of(const storage::reader& reads, const experiment_settings& of);

/// Reads what the experiment's actor needs of its trials. It waits for the disk, so that it runs on a thread
/// that may wait; the scheduler's threads may not. `past` has to be replayable.
void add_trials(experiment_past& past, const storage::reader& reads, const experiment_settings& of,
                time_point now);

/// Replays the stream in a machine of its own. Returns the reason if an assertion fails, because then the
/// stream cannot be replayed.
result<void> replayable(const experiment_past& past);
result<void> replayable(const std::vector<trial_fact>& past);

} // namespace troupe
