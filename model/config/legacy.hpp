#pragma once
// Configurations that old versions of Determined stored and nobody can run any more.

#include "model/value.hpp"

namespace troupe::config {

/// What must stay readable of a stored configuration, whatever else is in it: {checkpoint_storage,
/// bind_mounts, environment, hyperparameters, searcher: {name, metric, smaller_is_better}}, complete. Storage
/// on HDFS, which is gone, becomes a directory that names it. Fails with the part that cannot be read.
result<value> read_legacy(const value& stored);

} // namespace troupe::config
