#pragma once
// Decides who may use which pool. A pool is bound to workspaces by the API, which is recorded in facts, and
// by the cluster file. Pure.

#include "actors/catalogue/house_rules.hpp"
#include "actors/catalogue/places.hpp"
#include "model/config/cluster_config.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe {

/// The pools that the workspace may use: those that are bound to no workspace, or also to this one. `cluster`
/// is the configuration in force, in which a name means the workspace that has this name now.
config::pool_choice pools_of(const house_rules& rules, const places& where, const value& cluster,
                             workspace_id in);
/// The pools that a new workspace of this name could use.
config::pool_choice pools_of_new(const house_rules& rules, const places& where, const value& cluster,
                                 const std::string& name);

/// A sentence for each workspace, and each user of a quota, that `cluster` names and that does not exist.
std::vector<std::string> unknown_names(const value& cluster, const places& where,
                                       const std::map<user_id, user_changed>& users);

} // namespace troupe
