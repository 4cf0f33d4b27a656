#pragma once
// Decides who may use which pool. A pool is bound to workspaces by the API, which is recorded in facts, and
// by the cluster file. Pure.

#include "actors/catalogue/house_rules.hpp"
#include "actors/catalogue/places.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe {

/// Whether the workspace may use the pool: the pool is bound to no workspace, or also to this one. `cluster`
/// is the configuration in force, in which a name means the workspace that has this name now.
bool may_use(const house_rules& rules, const places& where, const value& cluster, const std::string& pool,
             workspace_id in);

/// A sentence for each workspace, and each user of a quota, that `cluster` names and that does not exist.
std::vector<std::string> unknown_names(const value& cluster, const places& where,
                                       const std::map<user_id, user_changed>& users);

} // namespace troupe
