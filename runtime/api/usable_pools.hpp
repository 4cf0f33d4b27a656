#pragma once
#include "runtime/api/place_shapes.hpp"
#include "runtime/api/route.hpp"

namespace troupe::api {

/// Names of the pools that are bound to no workspace, and of those that are bound to this one.
result<std::vector<std::string>> usable_pools(const call& c, const place_book& book, workspace_id in);

} // namespace troupe::api
