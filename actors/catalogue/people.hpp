#pragma once
// Groups of users, the roles of users and groups, and the settings that the web page stores for each user.
// The machine decides which changes of these are possible; the right of the caller is checked before. Pure.
// The cluster's actor is the shell; the facts stand in the stream "cluster". The texts of errors are those
// that Determined's clients know.

#include "actors/machine.hpp"
#include "model/authority/roles.hpp"
#include "model/commands/house_commands.hpp"

#include <functional>

namespace troupe {

/// Not thread-safe: one actor owns the machine. `by` is the name of the user who asks; `known` knows which
/// users and workspaces exist.
class people {
public:
  using decided = result<std::vector<people_fact>>;
  struct world {
    std::function<bool(user_id)> user;
    std::function<bool(workspace_id)> workspace;
    std::function<result<void>(workspace_id)> takes; ///< fails where it takes nothing new
  };

  /// Fails with errc::invalid where the name is not valid, with errc::conflict where it is taken, and with
  /// errc::not_found for an unknown user.
  [[nodiscard]] decided make(const commands::group_create& wanted, const world& known, const std::string& by,
                             time_point now);
  /// Gives no fact where nothing changes. Fails with errc::invalid where a user who is to be removed is not a
  /// member.
  [[nodiscard]] decided change(const commands::group_change& wanted, const world& known,
                               const std::string& by, time_point now);
  /// Also removes the roles of the group.
  [[nodiscard]] decided remove(const commands::group_remove& wanted, const std::string& by, time_point now);
  /// Gives and takes all these roles, or none. Fails with errc::conflict where a user or group has its role
  /// already, with errc::not_found where a role that is to be taken was not given, and with errc::invalid
  /// where a role of the cluster is given for a workspace.
  [[nodiscard]] decided assign(const commands::role_assign& wanted, const world& known, const std::string& by,
                               time_point now);
  [[nodiscard]] decided set(const commands::user_set& wanted, const world& known, const std::string& by,
                            time_point now);
  /// Gives at most one fact an hour for each user and project.
  [[nodiscard]] decided visit(const commands::project_visit& wanted, time_point now);

  void replay(const people_fact& fact);
  void replay(const cluster_fact& fact);

  const std::map<group_id, group_changed>& groups() const { return groups_; }
  std::vector<roles_changed> given(int role) const; ///< who has the role for all workspaces
  /// Whether the user has the permission in the workspace by the roles of the user and the user's groups.
  bool may(user_id user, authority::permission what, workspace_id in) const;
  std::string snapshot() const;
  value describe() const; ///< the state, for people

private:
  using role_key = std::tuple<int, workspace_id, user_id, group_id>;
  static role_key key_of(const roles_changed& x) { return {x.role, x.workspace, x.user, x.group}; }

  result<void> check_name(const std::string& name, group_id of) const;
  people_fact note(people_fact fact);

  std::map<group_id, group_changed> groups_;
  group_id newest_group_;
  std::map<role_key, roles_changed> roles_;
  std::map<std::tuple<user_id, std::string, std::string>, user_setting_changed>
    settings_; ///< by user, path and key
  std::map<std::pair<user_id, project_id>, time_point> visits_;
};

/// Whether a role of this number may be given for one workspace alone.
bool of_workspaces(int role);

} // namespace troupe
