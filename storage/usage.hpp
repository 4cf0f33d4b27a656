#pragma once
// Who used how many slots, and when: one record for each run that was placed. It stays when the experiment
// moves or is deleted.

#include "model/facts.hpp"

namespace troupe::storage {

struct usage_record {
  static constexpr const char* tag = "usage"; ///< kind of these records; their names have no prefix
  trial_id trial;
  run_id run;
  experiment_id experiment;
  std::string user, workspace, pool; ///< like all below, as when the run was placed
  std::vector<std::string> labels;
  std::int64_t slots = 0;
  time_point began, ended; ///< `ended` is 0 while the run holds its slots
  task_id task;            ///< set for a task that is not a trial; trial and experiment are then 0
  time_point asked;        ///< when the run asked for its slots
  TROUPE_PACKED(trial, run, experiment, user, workspace, pool, labels, slots, began, ended, task, asked)
};

} // namespace troupe::storage
