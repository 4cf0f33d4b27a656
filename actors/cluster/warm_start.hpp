#pragma once
#include "storage/journal.hpp"

namespace troupe {

/// The checkpoint that a warm start of the complete configuration names becomes certain: that of a trial is
/// the newest it has now. errc::invalid where there is none, or its files are deleted.
result<void> resolve_source(const storage::reader& reads, value& settings);
/// Whether the configuration `now` names another checkpoint, or a trial, to begin with than `before`.
bool starts_elsewhere(const value& before, const value& now);

} // namespace troupe
