#pragma once
#include "storage/journal.hpp"

namespace troupe {

/// Puts the UUID of a checkpoint in place of a trial that the complete configuration names as its warm start:
/// the newest checkpoint that this trial has now. Fails with errc::invalid where there is no such checkpoint,
/// or its files are deleted.
result<void> resolve_source(const storage::reader& reads, value& settings);
/// Whether the configuration `now` begins with another checkpoint than `before`. A trial as the warm start
/// counts as another checkpoint.
bool starts_elsewhere(const value& before, const value& now);

} // namespace troupe
