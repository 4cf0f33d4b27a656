#include "runtime/api/determined_roles.hpp"

#include "actors/catalogue/people.hpp"

#include <string>

namespace troupe::api {
namespace {

constexpr const char* names[] = {"ClusterAdmin",     "WorkspaceAdmin", "WorkspaceCreator",
                                 "Viewer",           "Editor",         "ModelRegistryViewer",
                                 "EditorRestricted", "GenAIUser",      "EditorProjectRestricted",
                                 "TokenCreator"};

struct permission {
  const char* name; ///< without PERMISSION_TYPE_
  bool of_workspaces;
  const char* roles; ///< a letter each: 1 to 9, and A for 10
};

constexpr permission permissions[] = {
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
};

value mask(bool workspaces) { return {{"cluster", true}, {"workspace", workspaces}}; }

} // namespace

value role_shape(int role) {
  const char letter = static_cast<char>(role == 10 ? 'A' : '0' + role);
  value has = value::array();
  for (const auto& one : permissions)
    if (std::string_view(one.roles).find(letter) != std::string_view::npos)
      has.push_back({{"id", std::string("PERMISSION_TYPE_") + one.name},
                     {"name", one.name},
                     {"scopeTypeMask", mask(one.of_workspaces)}});
  return {{"roleId", role},
          {"name", names[role - 1]},
          {"permissions", std::move(has)},
          {"scopeTypeMask", mask(of_workspaces(role))}};
}

} // namespace troupe::api
