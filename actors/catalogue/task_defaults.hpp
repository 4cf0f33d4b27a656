#pragma once
// Finds what the cluster's records say of the sandbox of a task of any kind. Pure.

#include "actors/allocation/sandbox_terms.hpp"
#include "actors/catalogue/catalogue.hpp"
#include "actors/catalogue/places.hpp"

#include <string_view>

namespace troupe {

/// The account is that of the workspace, or else that of the user, or else none. The other defaults are those
/// that the configuration in force has for the pool.
sandbox_defaults task_defaults(const catalogue& records, const places& where, std::string_view pool,
                               workspace_id workspace, const std::string& owner);

} // namespace troupe
