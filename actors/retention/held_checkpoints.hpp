#pragma once

#include "storage/journal.hpp"

#include <set>
#include <string>
#include <vector>

namespace troupe {

/// The members of `uuids` that a collection must not remove: versions of models, and checkpoints with which
/// experiments that have not ended begin their trials.
result<std::set<std::string>> held_checkpoints(const storage::reader& reads,
                                               const std::vector<std::string>& uuids);

/// The checkpoint in a complete configuration with which trials begin; none: they begin without one.
std::set<std::string> source_in(const value& config);
/// The checkpoints with which trials of the experiment begin: the one in its configuration, and those that
/// the orders of a custom search named.
result<std::set<std::string>> sources_of(const storage::reader& reads, const experiment_row& row);

} // namespace troupe
