#pragma once
// Whether an admin would be left after a change. The last one can neither be deactivated nor lose the right
// to manage users: nobody else could restore it. Pure.

#include "actors/catalogue/catalogue.hpp"
#include "actors/catalogue/people.hpp"

namespace troupe {

/// Admins that count are active and have a password here. Where roles decide, they are those who have the
/// role ClusterAdmin for all workspaces, by themselves or by a group; else those with the flag.
class last_admin {
public:
  last_admin(const catalogue& users, const people& folk, bool by_roles)
      : users_(users), folk_(folk), by_roles_(by_roles) {}

  /// errc::invalid where the change leaves no admin and there is one now.
  result<void> allows(const commands::user_change& x) const;
  result<void> allows(const commands::group_change& x) const;
  result<void> allows(const commands::group_remove& x) const;
  result<void> allows(const commands::role_assign& x) const;
  template <class Command>
  result<void> allows(const Command&) const { ///< the others take nothing from an admin
    return {};
  }

private:
  /// What makes an admin: the flag or a role of the user's own (group 0), or a role of the group.
  struct right {
    user_id user;
    group_id group;
  };
  std::vector<right> rights() const;
  /// errc::invalid where `goes` is true for each right that there is.
  result<void> check(const std::function<bool(const right&)>& goes) const;
  bool counts(user_id id) const;

  const catalogue& users_;
  const people& folk_;
  const bool by_roles_;
};

} // namespace troupe
