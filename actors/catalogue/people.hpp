#pragma once
// Groups of users, the roles that users and groups have, and what each user's page keeps: what may become of
// them is decided here; whether the caller has the right is decided before. Pure. The cluster's actor is its
// shell: its facts stand in the stream "cluster". Texts of errors are those that Determined's clients know.

#include "actors/machine.hpp"
#include "model/commands/house_commands.hpp"

#include <functional>

namespace troupe {

/// Not thread-safe: one actor owns it. `by` is the name of the user who asks; `known` says which users and
/// workspaces there are.
class people {
public:
  using decided = result<std::vector<people_fact>>;
  struct world {
    std::function<bool(user_id)> user;
    std::function<bool(workspace_id)> workspace;
    std::function<result<void>(workspace_id)> takes; ///< whether it takes something new, or why not
  };

  /// errc::invalid where the name is no name, errc::conflict where it is taken, errc::not_found for a user.
  [[nodiscard]] decided make(const commands::group_create& wanted, const world& known, const std::string& by,
                             time_point now);
  /// No fact where nothing changes. errc::invalid where a user who is to go is not in it.
  [[nodiscard]] decided change(const commands::group_change& wanted, const world& known,
                               const std::string& by, time_point now);
  /// The roles that the group gave go with it.
  [[nodiscard]] decided remove(const commands::group_remove& wanted, const std::string& by, time_point now);
  /// All are given, or none is: errc::conflict where one has its role already, errc::not_found where a role
  /// that is to be taken is not there, errc::invalid for a role of the cluster in a workspace.
  [[nodiscard]] decided assign(const commands::role_assign& wanted, const world& known, const std::string& by,
                               time_point now);
  [[nodiscard]] decided set(const commands::user_set& wanted, const world& known, const std::string& by,
                            time_point now);
  /// At most one fact an hour for each.
  [[nodiscard]] decided visit(const commands::project_visit& wanted, time_point now);

  void replay(const people_fact& fact);
  void replay(const cluster_fact& fact);

  const std::map<group_id, group_changed>& groups() const { return groups_; }
  std::vector<roles_changed> given(int role) const; ///< to whom, for all workspaces
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
    settings_; ///< by path and key
  std::map<std::pair<user_id, project_id>, time_point> visits_;
};

/// Whether a role of this number may be given for one workspace alone.
bool of_workspaces(int role);

} // namespace troupe
