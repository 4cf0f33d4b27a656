#pragma once
// Routes for the configuration of the whole cluster in the form of a cluster file: read the one in force, and
// replace it.

#include "runtime/api/route.hpp"

namespace troupe::api {

std::vector<route> configuration_routes();

} // namespace troupe::api
