#pragma once
#include "actors/catalogue/house_rules.hpp"
#include "runtime/api/place_shapes.hpp"
#include "runtime/api/route.hpp"

namespace troupe::api {

/// Names of the pools that are bound to no workspace, and of those that are bound to the workspace `in`.
result<std::vector<std::string>> usable_pools(const call& c, const place_book& book, workspace_id in);

/// The policies in force, of all workspaces.
result<house_rules> rules_in_force(const call& c);

} // namespace troupe::api
