#pragma once
// Decides whether a single trial may be archived or deleted while its experiment stays. Pure. The texts of
// errors are those that Determined's clients know, in which a trial is called a run.

#include "model/result.hpp"
#include "model/rows.hpp"

namespace troupe {

/// Whether there is anything to change: false where the trial is archived, or not archived, already. Fails
/// with errc::conflict where the trial has not ended, or its experiment is archived.
result<bool> may_archive(const trial_row& trial, const experiment_row& of, bool archived);

/// Fails with errc::conflict where the trial or its experiment has not ended, as the search may still need
/// the trial, and where the experiment is being deleted.
result<void> may_delete(const trial_row& trial, const experiment_row& of);

} // namespace troupe
