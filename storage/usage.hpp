#pragma once
// Who used how many slots, from when to when: a record for each run that was placed, which stays when the
// experiment moves or is deleted.

#include "model/facts.hpp"

namespace troupe::storage {

struct usage_record {
  static constexpr const char* tag = "usage"; ///< of reader::records; their names begin with no prefix
  trial_id trial;
  run_id run;
  experiment_id experiment;
  std::string user, workspace, pool; ///< as they were when the run was placed, like all below
  std::vector<std::string> labels;
  std::int64_t slots = 0;
  time_point began, ended; ///< ended: 0 while it runs
  task_id task;            ///< of a task that is no trial; its trial and experiment are 0
  time_point asked;        ///< when it asked for its slots
  MSGPACK_DEFINE_ARRAY(trial, run, experiment, user, workspace, pool, labels, slots, began, ended, task,
                       asked)
};

} // namespace troupe::storage
