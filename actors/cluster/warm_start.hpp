#pragma once
#include "storage/journal.hpp"

#include <functional>

namespace troupe {

/// Puts the UUID of a checkpoint in place of a trial that the complete configuration names as its warm start:
/// the newest checkpoint that this trial has now. Fails with errc::invalid where there is no such checkpoint,
/// or its files are deleted or being deleted, which `unusable` tells (checkpoint_uses::unusable).
result<void> resolve_source(const storage::reader& reads,
                            const std::function<std::string(const checkpoint_row&)>& unusable,
                            value& settings);
/// Whether the configuration `now` begins with another checkpoint than `before`. A trial as the warm start
/// counts as another checkpoint.
bool starts_elsewhere(const value& before, const value& now);

} // namespace troupe
