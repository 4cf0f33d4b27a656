#pragma once
// What the cluster's records say of a task's sandbox, whatever its kind. Pure.

#include "actors/allocation/sandbox_terms.hpp"
#include "actors/catalogue/catalogue.hpp"
#include "actors/catalogue/places.hpp"

#include <string_view>

namespace troupe {

/// The account of the workspace, else that of the user, else none; and what the configuration in force says
/// of the pool.
sandbox_defaults task_defaults(const catalogue& records, const places& where, std::string_view pool,
                               workspace_id workspace, const std::string& owner);

} // namespace troupe
