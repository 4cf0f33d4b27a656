#pragma once
// What an experiment's configuration would say had nobody said anything.

#include "storage/journal.hpp"

namespace troupe::api {

/// The complete configuration out of the defaults alone: those of the cluster, of its pool and workspace, and
/// of the keys themselves, for the searcher that the experiment has. What no default gives (the name, the
/// seed, which searcher) is null.
result<value> default_config(const experiment_row& of, const storage::reader& storage);

} // namespace troupe::api
