#pragma once
// The routes below /troupe/v1/shell, which `troupe shell` uses. Every user may read; only admins may act.

#include "runtime/api/route.hpp"

namespace troupe::api {

std::vector<route> shell_routes();

} // namespace troupe::api
