#pragma once
// Configurations that old versions of Determined stored and that can no longer be run.

#include "model/value.hpp"

namespace troupe::config {

/// What must stay readable in a stored configuration, whatever else it holds: {checkpoint_storage,
/// bind_mounts, environment, hyperparameters, searcher: {name, metric, smaller_is_better}}, complete. Storage
/// on HDFS, which is no longer supported, becomes a directory that names it. The error names the part that
/// cannot be read.
result<value> read_legacy(const value& stored);

} // namespace troupe::config
