#include "model/authority/roles.hpp"

#include <gtest/gtest.h>

namespace troupe::authority {
namespace {

const time_point t0{};
const user_id ann{7}, vic{8};
const group_id team{3};
const workspace_id vision{2}, audio{4};

roles_changed role(int number, user_id user, workspace_id in = {}) {
  return {.at = t0, .by = "admin", .role = number, .user = user, .group = {}, .workspace = in};
}
roles_changed role(int number, group_id group, workspace_id in = {}) {
  return {.at = t0, .by = "admin", .role = number, .user = {}, .group = group, .workspace = in};
}
group_changed group_of(std::vector<user_id> members) {
  group_changed out;
  out.id = team;
  out.name = "team";
  out.members = std::move(members);
  return out;
}

TEST(Roles, HoldWhereTheyWereGiven) {
  const auto editor = grants::of(ann, {role(5, ann, vision)}, {});
  EXPECT_TRUE(editor.holds(permission::create_experiment, vision));
  EXPECT_FALSE(editor.holds(permission::create_experiment, audio));
  // the permission is asked for in the whole cluster
  EXPECT_FALSE(editor.holds(permission::create_experiment, {}));
  EXPECT_TRUE(editor.anywhere(permission::create_experiment));
  EXPECT_FALSE(editor.holds(permission::update_workspace, vision));
  EXPECT_FALSE(editor.holds_role(5));
}

TEST(Roles, OfAllWorkspacesHoldInEach) {
  const auto viewer = grants::of(ann, {role(4, ann)}, {});
  for (const auto in : {vision, audio, workspace_id{}})
    EXPECT_TRUE(viewer.holds(permission::view_workspace, in));
  EXPECT_FALSE(viewer.anywhere(permission::update_experiment));
  EXPECT_TRUE(viewer.holds_role(4));
}

TEST(Roles, ComeThroughGroupsToo) {
  const std::vector given{role(5, team, vision), role(2, team, audio)};
  const auto in = grants::of(ann, given, {group_of({ann})}), out = grants::of(vic, given, {group_of({ann})});
  EXPECT_TRUE(in.holds(permission::create_nsc, vision));
  EXPECT_TRUE(in.holds(permission::delete_workspace, audio));
  for (std::size_t i = 0; i < most_permissions; ++i)
    EXPECT_FALSE(out.anywhere(static_cast<permission>(i))) << permissions()[i].name;
}

TEST(Roles, ThatTheClusterAdminHasAreAll) {
  const auto admin = grants::of(ann, {role(cluster_admin, ann)}, {});
  for (std::size_t i = 0; i < most_permissions; ++i)
    EXPECT_TRUE(admin.holds(static_cast<permission>(i), {})) << permissions()[i].name;
}

/// What each action of the table of rights needs where roles decide, as text that a person has reviewed. "-":
/// roles decide nothing. "A | B": A is needed for what belongs to the user, and B for what belongs to others.
constexpr const char* golden = R"(view door: -
create session: -
remove session: -
report secret: -
view secret: -
view self: -
change self: -
view user: -
create user: ADMINISTRATE_USER
change user: ADMINISTRATE_USER
remove user: ADMINISTRATE_USER
view token: VIEW_TOKEN | VIEW_OTHER_TOKEN
create token: CREATE_TOKEN | CREATE_OTHER_TOKEN
remove token: UPDATE_TOKEN | ADMINISTRATE_TOKEN
view cluster: -
kill cluster: UPDATE_MASTER_CONFIG
view agent: -
change agent: UPDATE_AGENTS
remove agent: UPDATE_AGENTS
view configuration: VIEW_MASTER_CONFIG
change configuration: UPDATE_MASTER_CONFIG
view group: -
change group: UPDATE_GROUP
view role: -
change role: ASSIGN_ROLES
view policy: VIEW_WORKSPACE_CONFIG_POLICIES
change policy: MODIFY_WORKSPACE_CONFIG_POLICIES
view pool: -
change pool: MODIFY_RP_WORKSPACE_BINDINGS
view webhook: VIEW_WEBHOOKS
create webhook: EDIT_WEBHOOKS
change webhook: EDIT_WEBHOOKS
remove webhook: EDIT_WEBHOOKS
report webhook: UPDATE_EXPERIMENT
view usage: VIEW_CLUSTER_USAGE
view cluster message: VIEW_MASTER_CONFIG
change cluster message: UPDATE_MASTER_CONFIG
view master: VIEW_MASTER_CONFIG
change master: UPDATE_MASTER_CONFIG
create workspace: CREATE_WORKSPACE
view workspace: VIEW_WORKSPACE
change workspace: UPDATE_WORKSPACE
remove workspace: DELETE_WORKSPACE
create project: CREATE_PROJECT
view project: VIEW_PROJECT
change project: UPDATE_PROJECT
remove project: DELETE_PROJECT
view template: VIEW_TEMPLATES
change template: UPDATE_TEMPLATES
create model: CREATE_MODEL_REGISTRY
view model: VIEW_MODEL_REGISTRY
change model: EDIT_MODEL_REGISTRY
remove model: DELETE_MODEL_REGISTRY | DELETE_OTHER_USER_MODEL_REGISTRY
create experiment: CREATE_EXPERIMENT
view experiment: VIEW_EXPERIMENT_METADATA
change experiment: UPDATE_EXPERIMENT
kill experiment: UPDATE_EXPERIMENT
remove experiment: DELETE_EXPERIMENT
move experiment: UPDATE_EXPERIMENT
view search: VIEW_EXPERIMENT_METADATA
view trial: VIEW_EXPERIMENT_METADATA
change trial: UPDATE_EXPERIMENT_METADATA
kill trial: UPDATE_EXPERIMENT
remove trial: DELETE_EXPERIMENT
create trial: UPDATE_EXPERIMENT
report trial: UPDATE_EXPERIMENT
create task: CREATE_NSC
view task: -
change task: -
kill task: -
report task: -
view allocation: -
change allocation: -
report allocation: -
view checkpoint: VIEW_EXPERIMENT_ARTIFACTS
change checkpoint: UPDATE_EXPERIMENT
report checkpoint: UPDATE_EXPERIMENT
remove checkpoint: DELETE_EXPERIMENT
view files: VIEW_EXPERIMENT_ARTIFACTS
view log: VIEW_EXPERIMENT_ARTIFACTS
report log: -
remove log: UPDATE_MASTER_CONFIG
view actor: VIEW_MASTER_LOGS
change actor: UPDATE_MASTER_CONFIG
kill actor: UPDATE_MASTER_CONFIG
create fault: UPDATE_MASTER_CONFIG
)";

TEST(Roles, DecideAsThisTableSays) {
  const auto name_of = [](std::optional<permission> what) {
    return std::string(what ? permissions()[static_cast<std::size_t>(*what)].name : "-");
  };
  std::string all;
  for (const auto& rule : rules()) {
    const auto own = name_of(needed(rule.on)), other = name_of(needed(rule.on, true));
    all += std::string(name(rule.on.what)) + " " + name(rule.on.on) + ": " + own +
           (other == own ? "" : " | " + other) + "\n";
  }
  EXPECT_EQ(all, golden);
}

TEST(Roles, WhatNobodyThoughtOfIsForTheClusterAdmin) {
  EXPECT_EQ(needed({action::move, thing::door}), permission::update_master_config);
}

} // namespace
} // namespace troupe::authority
