#pragma once
// Decides whether an admin would be left after a change. The last admin can neither be deactivated nor lose
// the right to manage users, as no other user could restore it. Pure.

#include "actors/catalogue/catalogue.hpp"
#include "actors/catalogue/people.hpp"

namespace troupe {

/// Only admins count that are active and have a password here. Where roles decide, a user is an admin who has
/// the role ClusterAdmin for all workspaces, directly or by a group; otherwise the flag `admin` decides.
class last_admin {
public:
  last_admin(const catalogue& users, const people& folk, bool by_roles)
      : users_(users), folk_(folk), by_roles_(by_roles) {}

  /// Fails with errc::invalid where there is an admin now, and the change leaves none.
  result<void> allows(const commands::user_change& x) const;
  result<void> allows(const commands::group_change& x) const;
  result<void> allows(const commands::group_remove& x) const;
  result<void> allows(const commands::role_assign& x) const;
  template <class Command>
  result<void> allows(const Command&) const { ///< other commands take nothing from an admin
    return {};
  }

private:
  /// What makes a user an admin: the flag or a role of the user (group 0), or a role of a group.
  struct right {
    user_id user;
    group_id group;
  };
  std::vector<right> rights() const;
  /// Fails with errc::invalid where `goes` is true for every existing right.
  result<void> check(const std::function<bool(const right&)>& goes) const;
  bool counts(user_id id) const;

  const catalogue& users_;
  const people& folk_;
  const bool by_roles_;
};

} // namespace troupe
