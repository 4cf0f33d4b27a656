#pragma once
// Config policies, and which workspaces may use which pool.

#include "runtime/api/route.hpp"

namespace troupe::api {

/// Whether any workspace is bound to the pool, by the cluster file or by an admin.
result<bool> is_bound(const call& c, const std::string& pool);

} // namespace troupe::api
