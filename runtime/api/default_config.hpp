#pragma once
// The configuration of an experiment for which nobody set any key.

#include "storage/journal.hpp"

namespace troupe::api {

/// The complete configuration made of defaults only: those of the cluster, of its pool and workspace, and of
/// the keys themselves, for the searcher that the experiment has. Keys without a default (the name, the seed,
/// the searcher's name) are null.
result<value> default_config(const experiment_row& of, const storage::reader& storage);

} // namespace troupe::api
