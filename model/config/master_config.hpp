#pragma once
// What can be asked of a master's configuration, as Determined writes it. See `master-config` of the table.

#include "model/value.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe::config {

/// Whether a task of a higher priority may stop one of a lower in `pool`; a pool's own scheduler counts
/// alone, and a pool that is not listed has the cluster's. `master` is complete.
bool preempts(const value& master, std::string_view pool);

/// Whether what stands under `key`, anywhere in the file, is shown to nobody.
bool is_secret(std::string_view key);

/// `master` as users may see it: secrets and start-up scripts are hidden.
value printable(value master);

/// What still works but will not: one sentence each.
std::vector<std::string> deprecations(const value& master);

} // namespace troupe::config
