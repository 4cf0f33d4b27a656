#pragma once
// What an experiment's configuration means to its actors, read once. Pure.

#include "actors/allocation/task_launch.hpp"
#include "actors/experiment/experiment.hpp"
#include "actors/trial/trial.hpp"

namespace troupe {

/// Where the settings come from: what experiment_created holds, and the cluster.
struct experiment_source {
  experiment_id id;
  value config;        ///< checked and complete
  std::string context; ///< blob with its files, or empty
  std::string owner;   ///< account that its tasks run for
  std::string
    checkpoint_dir;     ///< absolute; where the configuration names no folder, or a relative one beside it
  time_point submitted; ///< experiment_created.at
};

struct experiment_settings {
  experiment_id id;
  // The search.
  value searcher = value::object(), hyperparameters = value::object();
  std::uint64_t seed = 0;
  std::string metric;
  std::string time_metric;               ///< or empty
  std::vector<std::string> more_metrics; ///< further metrics by which the search compares trials
  bool hears_checkpoints = false;        ///< whether the search wants to know of them
  std::string
    source_checkpoint; ///< uuid with which every trial begins that the search gives none; empty: anew
  // Every trial.
  int slots = 1;
  int least_slots = 0; ///< fewer than `slots` that will do; 0: none
  int max_restarts = 0;
  std::optional<duration> preemption_timeout; ///< none: that of allocation_spec
  task_launch launch;                         ///< launch, without what one trial and one run add
  job_terms job;                              ///< what its pool has to know
  placement_rules rules;                      ///< which agents may hold a trial
};

/// Where the configuration lacks a key (an older version wrote it), the key has the default of the schema.
/// errc::invalid with the key, where its value is of another kind or no task could be started with it.
result<experiment_settings> experiment_settings_of(experiment_source from);

/// Where checkpoints go, as a store is named (model/checkpoint_place.hpp); `standard` as
/// experiment_source::checkpoint_dir.
result<std::string> checkpoint_store_of(const value& config, const std::string& standard);

experiment_spec experiment_spec_of(const experiment_settings& of);
/// `continued`: number of the continuation that runs the trial again; 0: none.
trial_spec trial_spec_of(const experiment_settings& of, const trial_created& made,
                         std::uint32_t continued = 0);
/// Settings of a trial, without what one run adds.
task_launch launch_of(const experiment_settings& of, const trial_created& made, std::uint32_t continued = 0);

} // namespace troupe
