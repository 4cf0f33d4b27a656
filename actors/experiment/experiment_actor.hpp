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

/// What is stored of a trial that is made again.
struct trial_past {
  std::vector<trial_fact> facts;       ///< oldest first
  std::vector<allocation_fact> of_run; ///< of the run that is open
};

/// What is stored of an experiment: the newest snapshots of its machine and its searcher, and the facts
/// since.
struct experiment_past {
  std::uint64_t before = 0;                      ///< how many facts the snapshots stand for
  std::string machine, searcher;                 ///< empty where there are none
  std::vector<experiment_fact> facts;            ///< oldest first
  std::map<trial_id, result<trial_past>> trials; ///< of those that go on; see add_trials
  std::vector<validation_recorded> missed;       ///< durable, and not decided on; see add_trials
  experiment_resume again; ///< the latest continuation, which its own facts may not hold yet; number 0: none
};

/// Ends by itself once its end is durable and told.
experiment_actor spawn_experiment(caf::actor_system& sys, experiment_setup setup, experiment_peers peers,
                                  const experiment_past& past);

/// errc::corrupt, with the number, where a fact cannot be read: the stream is then of no use, since what
/// follows stands on it. A snapshot that this build does not read, of machine or searcher, is left out: then
/// all facts are there.
result<experiment_past> past_of(const storage::reader& reads, const experiment_settings& of);

/// Reads what the experiment's actor will need of its trials, on a thread that may wait for a disk: those of
/// the scheduler may not. `past` is replayable.
void add_trials(experiment_past& past, const storage::reader& reads, const experiment_settings& of,
                time_point now);

/// Replays the stream in a machine of its own: the reason why it cannot be, where an assertion fails.
result<void> replayable(const experiment_past& past);
result<void> replayable(const std::vector<trial_fact>& past);

} // namespace troupe
