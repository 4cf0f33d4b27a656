#pragma once
// What the journal knows of the open runs of a job, and what the job is by them in Determined's words.

#include "model/result.hpp"
#include "model/value.hpp"
#include "storage/journal.hpp"

#include <map>

namespace troupe::api {

/// Runs that have their slots, or their aux units.
struct open_runs {
  std::size_t placed = 0;
  std::size_t backfilled = 0; ///< of these, the ones placed while a more urgent request waited
};

/// By job; one without placed runs is missing.
result<std::map<experiment_id, open_runs>> open_runs_by_job(const storage::reader& storage);
/// Of the trials of one experiment, the newest first, as far as the state of the job is known by them.
result<open_runs> open_runs_of(const storage::reader& storage, const std::vector<trial_id>& trials);

/// The best that one of its runs is: scheduled, else backfilled, else queued.
const char* job_state(const open_runs& runs);
/// Where a live experiment stands in its pool (`pool.details`); null where the pool does not know it and none
/// of its runs has a place elsewhere.
value job_summary(experiment_id id, const open_runs& runs, const value& pool);

} // namespace troupe::api
