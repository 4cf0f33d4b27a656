#pragma once
// What the journal knows of the open runs of a job, and the state of the job that follows in Determined's
// words.

#include "model/result.hpp"
#include "model/value.hpp"
#include "storage/journal.hpp"

#include <map>

namespace troupe::api {

/// Counts of runs that have their slots or their aux units.
struct open_runs {
  std::size_t placed = 0;
  std::size_t backfilled = 0; ///< those of `placed` that were placed while a more urgent request waited
};

/// By job; a job without placed runs is missing.
result<std::map<experiment_id, open_runs>> open_runs_by_job(const storage::reader& storage);
/// The open runs of an experiment's trials. Reads the newest trials first, and only until the state of the
/// job is certain.
result<open_runs> open_runs_of(const storage::reader& storage, const std::vector<trial_id>& trials);

/// The best state of any of the job's runs: scheduled, or else backfilled, or else queued.
const char* job_state(const open_runs& runs);
/// The place of a live experiment in its pool; `pool` is what `pool.details` answers. Null where the pool
/// does not know the experiment and none of its runs has a place elsewhere.
value job_summary(experiment_id id, const open_runs& runs, const value& pool);

} // namespace troupe::api
