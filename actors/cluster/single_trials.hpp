#pragma once
// Whether a single trial may be archived or deleted while its experiment stays. Pure. Texts of errors are
// those that Determined's clients know, who call it a run.

#include "model/result.hpp"
#include "model/rows.hpp"

namespace troupe {

/// False where it is so already. errc::conflict where the trial has not ended, or its experiment is archived.
result<bool> may_archive(const trial_row& trial, const experiment_row& of, bool archived);

/// errc::conflict where one of both has not ended: its search may still need the trial.
result<void> may_delete(const trial_row& trial, const experiment_row& of);

} // namespace troupe
