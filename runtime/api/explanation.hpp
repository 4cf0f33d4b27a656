#pragma once
// Why a trial or an experiment is where it is, in a sentence and in a code for programs.

#include "storage/journal.hpp"

namespace troupe::api {

/// {"state", "since", "reason": {"code", "text"}, "wouldFree": [...], "advice", "log"?}.
result<value> explained(const trial_row& row, const storage::reader& storage);
result<value> explained(const experiment_row& row, const storage::reader& storage);

} // namespace troupe::api
