#pragma once
// Answers questions about a master's configuration as Determined writes it. See `master-config` of the table.

#include "model/value.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe::config {

/// Whether a task of a higher priority may stop one of a lower in `pool`. A pool with its own scheduler
/// follows only that; a pool that is not listed follows the cluster's. `master` is complete.
bool preempts(const value& master, std::string_view pool);

/// Whether a value under `key`, anywhere in a file of a master, a cluster or an experiment, must not be
/// shown.
bool is_secret(std::string_view key);

/// `master` as users may see it: without secrets and start-up scripts.
value printable(value master);

/// Settings that still work but will not in future: one sentence for each.
std::vector<std::string> deprecations(const value& master);

} // namespace troupe::config
