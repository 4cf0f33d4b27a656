#pragma once
// What the configuration of an experiment means to its actors, read once. Pure.

#include "actors/allocation/task_launch.hpp"
#include "actors/experiment/experiment.hpp"
#include "actors/trial/trial.hpp"

namespace troupe {

/// Sources of the settings: the content of experiment_created, and the cluster.
struct experiment_source {
  experiment_id id;
  value config;        ///< checked and complete
  std::string context; ///< blob with the experiment's files; empty: no files
  std::string owner;   ///< account for which the experiment's tasks run
  /// Absolute path of the folder for checkpoints whose configuration names none; a relative folder in a
  /// configuration lies beside this one.
  std::string checkpoint_dir;
  time_point submitted; ///< `at` of experiment_created
};

struct experiment_settings {
  experiment_id id;
  // The search.
  value searcher = value::object(), hyperparameters = value::object();
  std::uint64_t seed = 0;
  std::string metric;
  std::string time_metric;               ///< metric that counts a trial's progress; empty: number of reports
  std::vector<std::string> more_metrics; ///< further metrics by which the search compares trials
  bool hears_checkpoints = false;        ///< whether the search wants to know of them
  /// UUID of the checkpoint with which a trial begins if the search names none; empty: no checkpoint.
  std::string source_checkpoint;
  // Every trial.
  int slots = 1;
  int least_slots = 0; ///< fewest slots, below `slots`, that are accepted; 0: only `slots`
  int max_restarts = 0;
  std::optional<duration> preemption_timeout; ///< none: the default of allocation_spec
  task_launch launch;                         ///< launch order, without what one trial and one run add
  job_terms job;                              ///< what the pool has to know
  placement_rules rules;                      ///< which agents may hold a trial
};

/// A key that the configuration lacks, because an older version wrote it, has the default of the schema.
/// errc::invalid with the name of the key if its value has the wrong type or would make every start of a task
/// fail.
result<experiment_settings> experiment_settings_of(experiment_source from);

/// The store that checkpoints go to, written as in model/checkpoint_place.hpp. `standard`: as
/// experiment_source::checkpoint_dir.
result<std::string> checkpoint_store_of(const value& config, const std::string& standard);

experiment_spec experiment_spec_of(const experiment_settings& of);
/// `continued`: number of the continuation that runs the trial again; 0: none.
trial_spec trial_spec_of(const experiment_settings& of, const trial_created& made,
                         std::uint32_t continued = 0);
/// Launch order of a trial, without what one run adds.
task_launch launch_of(const experiment_settings& of, const trial_created& made, std::uint32_t continued = 0);

} // namespace troupe
