#pragma once
// The routes that create an experiment: the stock client's and ours.

#include "runtime/api/route.hpp"

namespace troupe::api {

std::vector<route> creation_routes();

} // namespace troupe::api
