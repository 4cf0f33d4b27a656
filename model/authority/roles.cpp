#include "model/authority/roles.hpp"

#include "model/authority/need_index.hpp"

#include <algorithm>
#include <string_view>

namespace troupe::authority {
namespace {

constexpr const char* role_names[] = {"ClusterAdmin",     "WorkspaceAdmin", "WorkspaceCreator",
                                      "Viewer",           "Editor",         "ModelRegistryViewer",
                                      "EditorRestricted", "GenAIUser",      "EditorProjectRestricted",
                                      "TokenCreator"};
static_assert(std::size(role_names) == most_role);

constexpr char letter_of(int role) { return static_cast<char>(role == 10 ? 'A' : '0' + role); }

/// One action on a kind of thing. `other` is the need for another user's thing, where that is more.
struct needs_row {
  need on;
  std::optional<permission> own, other = own;
};

const std::vector<needs_row>& needs() {
  using enum action;
  using enum thing;
  using enum permission;
  constexpr auto no_role = std::nullopt;
  static const std::vector<needs_row> table = {
    {{view, door}, no_role},
    {{create, session}, no_role},
    {{remove, session}, no_role},
    {{report, secret}, no_role},
    {{view, secret}, no_role}, // the owner decides
    {{view, self}, no_role},
    {{change, self}, no_role},

    {{view, user}, no_role},
    {{create, user}, administrate_user},
    {{change, user}, administrate_user},
    {{remove, user}, administrate_user},
    {{view, token}, view_token, view_other_token},
    {{create, token}, create_token, create_other_token},
    {{remove, token}, update_token, administrate_token},

    {{view, cluster}, no_role},
    {{kill, cluster}, update_master_config},
    {{view, agent}, no_role},
    {{change, agent}, update_agents},
    {{remove, agent}, update_agents},
    {{view, configuration}, view_master_config},
    {{change, configuration}, update_master_config},

    {{view, group}, no_role}, // groups that the user is in; other groups need update_group
    {{change, group}, update_group},
    {{view, role}, no_role},
    {{change, role}, assign_roles},
    {{view, policy}, view_workspace_config_policies},
    {{change, policy}, modify_workspace_config_policies},
    {{view, pool}, no_role},
    {{change, pool}, modify_rp_workspace_bindings},
    {{view, webhook}, view_webhooks},
    {{create, webhook}, edit_webhooks},
    {{change, webhook}, edit_webhooks},
    {{remove, webhook}, edit_webhooks},
    {{report, webhook}, update_experiment},
    {{view, usage}, view_cluster_usage},
    {{view, cluster_message}, view_master_config},
    {{change, cluster_message}, update_master_config},
    {{view, master}, view_master_config},
    {{change, master}, update_master_config},

    {{create, workspace}, create_workspace},
    {{view, workspace}, view_workspace},
    {{change, workspace}, update_workspace},
    {{remove, workspace}, delete_workspace},
    {{create, project}, create_project},
    {{view, project}, view_project},
    {{change, project}, update_project},
    {{remove, project}, delete_project},
    {{view, config_template}, view_templates},
    {{change, config_template}, update_templates},
    {{create, model}, create_model_registry},
    {{view, model}, view_model_registry},
    {{change, model}, edit_model_registry},
    {{remove, model}, delete_model_registry, delete_other_user_model_registry},

    {{create, experiment}, create_experiment},
    {{view, experiment}, view_experiment_metadata},
    {{change, experiment}, update_experiment},
    {{kill, experiment}, update_experiment},
    {{remove, experiment}, delete_experiment},
    {{move, experiment}, update_experiment},
    {{view, search}, view_experiment_metadata},
    {{view, trial}, view_experiment_metadata},
    {{change, trial}, update_experiment_metadata},
    {{kill, trial}, update_experiment},
    {{remove, trial}, delete_experiment},
    {{create, trial}, update_experiment},
    {{report, trial}, update_experiment},
    {{create, task}, create_nsc},
    {{view, task}, no_role}, // task_permission decides, for trials and other tasks
    {{change, task}, no_role},
    {{kill, task}, no_role},
    {{report, task}, no_role},
    {{view, allocation}, no_role},
    {{change, allocation}, no_role}, // as for its task
    {{report, allocation}, no_role},

    {{view, checkpoint}, view_experiment_artifacts},
    {{change, checkpoint}, update_experiment},
    {{report, checkpoint}, update_experiment},
    {{remove, checkpoint}, delete_experiment},
    {{view, files}, view_experiment_artifacts},
    {{view, log}, view_experiment_artifacts},
    {{report, log}, no_role},
    {{remove, log}, update_master_config},

    {{view, actor}, view_master_logs}, // what the shell shows is not separated by workspace
    {{change, actor}, update_master_config},
    {{kill, actor}, update_master_config},
    {{create, fault}, update_master_config},
  };
  return table;
}

} // namespace

const std::array<permission_row, most_permissions>& permissions() {
  static constexpr std::array<permission_row, most_permissions> table = {{
    {"CREATE_EXPERIMENT", true, "125789"},
    {"UPDATE_EXPERIMENT", true, "125789"},
    {"UPDATE_EXPERIMENT_METADATA", true, "125789"},
    {"DELETE_EXPERIMENT", true, "125789"},
    {"VIEW_EXPERIMENT_ARTIFACTS", true, "1245789"},
    {"VIEW_EXPERIMENT_METADATA", true, "1245789"},
    {"CREATE_NSC", true, "12589"},
    {"UPDATE_NSC", true, "12589"},
    {"VIEW_NSC", true, "1245789"},
    {"VIEW_WORKSPACE", true, "1245789"},
    {"UPDATE_WORKSPACE", true, "12"},
    {"DELETE_WORKSPACE", true, "12"},
    {"SET_WORKSPACE_CHECKPOINT_STORAGE_CONFIG", true, "12"},
    {"SET_WORKSPACE_DEFAULT_RESOURCE_POOL", true, "12"},
    {"SET_WORKSPACE_AGENT_USER_GROUP", true, "1"},
    {"CREATE_PROJECT", true, "12578"},
    {"UPDATE_PROJECT", true, "12578"},
    {"VIEW_PROJECT", true, "1245789"},
    {"DELETE_PROJECT", true, "128"},
    {"ASSIGN_ROLES", true, "12"},
    {"VIEW_MODEL_REGISTRY", true, "12456789"},
    {"EDIT_MODEL_REGISTRY", true, "125789"},
    {"CREATE_MODEL_REGISTRY", true, "125789"},
    {"DELETE_MODEL_REGISTRY", true, "125789"},
    {"DELETE_MODEL_VERSION", true, "125789"},
    {"DELETE_OTHER_USER_MODEL_REGISTRY", true, "12"},
    {"DELETE_OTHER_USER_MODEL_VERSION", true, "12"},
    {"VIEW_MASTER_LOGS", false, "1"},
    {"VIEW_CLUSTER_USAGE", false, "1"},
    {"UPDATE_AGENTS", false, "1"},
    {"VIEW_SENSITIVE_AGENT_INFO", false, "1"},
    {"VIEW_MASTER_CONFIG", false, "1"},
    {"UPDATE_MASTER_CONFIG", false, "1"},
    {"VIEW_EXTERNAL_JOBS", false, "1"},
    {"CONTROL_STRICT_JOB_QUEUE", false, "1"},
    {"VIEW_TEMPLATES", true, "1245789"},
    {"UPDATE_TEMPLATES", true, "125789"},
    {"CREATE_TEMPLATES", true, "125789"},
    {"DELETE_TEMPLATES", true, "125789"},
    {"MODIFY_RP_WORKSPACE_BINDINGS", false, "1"},
    {"SET_WORKSPACE_NAMESPACE_BINDINGS", false, "1"},
    {"SET_RESOURCE_QUOTAS", false, "1"},
    {"MODIFY_GLOBAL_CONFIG_POLICIES", false, "1"},
    {"VIEW_RESOURCE_QUOTAS", true, "1245789"},
    {"MODIFY_WORKSPACE_CONFIG_POLICIES", true, "12"},
    {"VIEW_GLOBAL_CONFIG_POLICIES", true, "123456789"},
    {"VIEW_WORKSPACE_CONFIG_POLICIES", true, "123456789"},
    {"ADMINISTRATE_TOKEN", false, "1"},
    {"CREATE_OTHER_TOKEN", false, "1"},
    {"VIEW_OTHER_TOKEN", false, "1"},
    {"UPDATE_TOKEN", false, "1A"},
    {"CREATE_TOKEN", false, "1A"},
    {"VIEW_TOKEN", false, "1A"},
    {"ADMINISTRATE_USER", false, "1"},
    {"ADMINISTRATE_OAUTH", false, "1"},
    {"UPDATE_GROUP", false, "1"},
    {"UPDATE_ROLES", false, "1"},
    {"CREATE_WORKSPACE", false, "138"},
    {"EDIT_WEBHOOKS", true, "12579"},
    {"VIEW_WEBHOOKS", true, "124579"},
  }};
  return table;
}

const char* role_name(int role) { return role < 1 || role > most_role ? "" : role_names[role - 1]; }

bool role_has(int role, permission what) {
  return std::string_view(permissions()[static_cast<std::size_t>(what)].roles).find(letter_of(role)) !=
         std::string_view::npos;
}

grants grants::of(user_id user, const std::vector<roles_changed>& roles,
                  const std::vector<group_changed>& groups) {
  std::set<group_id> mine;
  for (const auto& one : groups)
    if (std::binary_search(one.members.begin(), one.members.end(), user))
      mine.insert(one.id);
  grants out;
  for (const auto& given : roles) {
    if (given.user ? given.user != user : !mine.contains(given.group))
      continue;
    if (!given.workspace)
      out.everywhere_.insert(given.role);
    for (std::size_t i = 0; i < most_permissions; ++i) {
      const auto what = static_cast<permission>(i);
      if (!role_has(given.role, what))
        continue;
      if (!given.workspace)
        out.may_[i].all = true;
      else if (permissions()[i].of_workspaces)
        out.may_[i].in.insert(given.workspace);
    }
  }
  return out;
}

bool grants::holds(permission what, workspace_id in) const {
  const auto& scope = may_[static_cast<std::size_t>(what)];
  return scope.all || (in && scope.in.contains(in));
}
bool grants::anywhere(permission what) const {
  const auto& scope = may_[static_cast<std::size_t>(what)];
  return scope.all || !scope.in.empty();
}

std::optional<permission> needed(need what, bool of_other) {
  static const need_index<needs_row> index(needs());
  const auto* row = index.find(what);
  return !row ? permission::update_master_config : of_other ? row->other : row->own;
}

} // namespace troupe::authority
