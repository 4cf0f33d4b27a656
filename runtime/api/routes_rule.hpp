#pragma once
// Routes for config policies, and for the pools that workspaces may use.

#include "runtime/api/route.hpp"

namespace troupe::api {

/// Whether the cluster file or an admin has bound the pool to any workspace.
result<bool> is_bound(const call& c, const std::string& pool);

} // namespace troupe::api
