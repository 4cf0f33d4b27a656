#pragma once
// The configuration of the whole cluster, as a cluster file says it: what is in force, and another one in its
// place.

#include "runtime/api/route.hpp"

namespace troupe::api {

std::vector<route> configuration_routes();

} // namespace troupe::api
