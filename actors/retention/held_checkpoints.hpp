#pragma once

#include "storage/journal.hpp"

#include <set>
#include <string>
#include <vector>

namespace troupe {

/// Those of `uuids` that collection leaves alone: versions of models, and those with which experiments that
/// have not ended begin their trials.
result<std::set<std::string>> held_checkpoints(const storage::reader& reads,
                                               const std::vector<std::string>& uuids);

/// The checkpoints with which trials of the experiment begin: that of its configuration, and those that the
/// orders of a custom search named.
result<std::set<std::string>> sources_of(const storage::reader& reads, const experiment_row& row);

} // namespace troupe
