#pragma once
// /troupe/v1/shell: what `troupe shell` stands on. Reading is for every user, acting for admins.

#include "runtime/api/route.hpp"

namespace troupe::api {

std::vector<route> shell_routes();

} // namespace troupe::api
