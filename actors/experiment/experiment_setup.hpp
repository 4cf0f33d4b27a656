#pragma once
// What an experiment's configuration means to its actors. Pure.

#include "actors/experiment/experiment.hpp"
#include "actors/trial/trial.hpp"

namespace troupe {

experiment_spec experiment_spec_of(experiment_id id, const value& config);
trial_spec trial_spec_of(trial_id id, const value& config, const trial_created& made);

/// How a task of the trial is started (see task_launch): command, environment, files, hyperparameters.
value launch_of(experiment_id id, const value& config, const std::string& context,
                const std::string& checkpoint_dir, const trial_created& made);

/// The seed of the search: the config's `reproducibility.experiment_seed`, which creation has filled in.
std::uint64_t seed_of(const value& config);

} // namespace troupe
