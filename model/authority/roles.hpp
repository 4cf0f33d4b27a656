#pragma once
// Rights by roles (`cluster.authz: rbac`): ten roles with their permissions, as in Determined, assigned for
// all workspaces or for one. Pure. model/authority/authority.hpp says what anybody may do without roles; this
// says which permission an action needs where roles decide.

#include "model/authority/authority.hpp"
#include "model/facts.hpp"

#include <array>
#include <set>

namespace troupe::authority {

/// In the order of `permissions()`.
enum class permission : unsigned char {
  create_experiment,
  update_experiment,
  update_experiment_metadata,
  delete_experiment,
  view_experiment_artifacts,
  view_experiment_metadata,
  create_nsc,
  update_nsc,
  view_nsc,
  view_workspace,
  update_workspace,
  delete_workspace,
  set_workspace_checkpoint_storage_config,
  set_workspace_default_resource_pool,
  set_workspace_agent_user_group,
  create_project,
  update_project,
  view_project,
  delete_project,
  assign_roles,
  view_model_registry,
  edit_model_registry,
  create_model_registry,
  delete_model_registry,
  delete_model_version,
  delete_other_user_model_registry,
  delete_other_user_model_version,
  view_master_logs,
  view_cluster_usage,
  update_agents,
  view_sensitive_agent_info,
  view_master_config,
  update_master_config,
  view_external_jobs,
  control_strict_job_queue,
  view_templates,
  update_templates,
  create_templates,
  delete_templates,
  modify_rp_workspace_bindings,
  set_workspace_namespace_bindings,
  set_resource_quotas,
  modify_global_config_policies,
  view_resource_quotas,
  modify_workspace_config_policies,
  view_global_config_policies,
  view_workspace_config_policies,
  administrate_token,
  create_other_token,
  view_other_token,
  update_token,
  create_token,
  view_token,
  administrate_user,
  administrate_oauth,
  update_group,
  update_roles,
  create_workspace,
  edit_webhooks,
  view_webhooks,
};
inline constexpr std::size_t most_permissions = static_cast<std::size_t>(permission::view_webhooks) + 1;
inline constexpr int most_role = 10;
inline constexpr int cluster_admin = 1, workspace_admin = 2;

struct permission_row {
  const char* name;   ///< "CREATE_EXPERIMENT"
  bool of_workspaces; ///< whether it may be assigned for one workspace
  const char* roles;  ///< numbers of the roles that have it, one character each: 1 to 9, and A for 10
};
const std::array<permission_row, most_permissions>& permissions();
const char* role_name(int role); ///< role_name(1) is "ClusterAdmin"
bool role_has(int role, permission what);

/// What one user may do by all roles of the user. Immutable once made.
class grants {
public:
  /// Collects the roles that were assigned to the user and to the user's groups.
  static grants of(user_id user, const std::vector<roles_changed>& roles,
                   const std::vector<group_changed>& groups);

  /// `in` is 0 for the cluster, for which only a role for all workspaces counts.
  bool holds(permission what, workspace_id in) const;
  bool anywhere(permission what) const;
  bool holds_role(int role) const { return everywhere_.contains(role); } ///< for all workspaces
  friend bool operator==(const grants&, const grants&) = default;

private:
  struct scope {
    bool all = false;
    std::set<workspace_id> in;
    friend bool operator==(const scope&, const scope&) = default;
  };
  std::array<scope, most_permissions> may_;
  std::set<int> everywhere_;
};

/// Which permission the action needs. None: roles decide nothing about it, and the table of
/// model/authority/authority.hpp holds, where an admin is a user with the role ClusterAdmin. An action
/// without a row is for such a user alone. `of_other`: the thing belongs to another user.
std::optional<permission> needed(need what, bool of_other = false);

} // namespace troupe::authority
