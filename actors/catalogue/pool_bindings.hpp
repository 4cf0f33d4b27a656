#pragma once
// Who may use which pool: workspaces that the API binds it to, as facts, and those that the cluster file
// names. Pure.

#include "actors/catalogue/house_rules.hpp"
#include "actors/catalogue/places.hpp"

#include <string>
#include <vector>

namespace troupe {

/// Whether nobody binds the pool, or somebody binds it to this workspace. `cluster`: the configuration in
/// force. A name in it means whichever workspace has that name at the time.
bool may_use(const house_rules& rules, const places& where, const value& cluster, const std::string& pool,
             workspace_id in);

/// A sentence for each workspace that `cluster` names and that is not there.
std::vector<std::string> unknown_workspaces(const value& cluster, const places& where);

} // namespace troupe
