#include "actors/catalogue/last_admin.hpp"

#include "model/authority/roles.hpp"

#include <algorithm>

namespace troupe {

bool last_admin::counts(user_id id) const {
  const auto at = users_.users().find(id);
  return at != users_.users().end() && at->second.active && !at->second.remote;
}

std::vector<last_admin::right> last_admin::rights() const {
  std::vector<right> out;
  if (!by_roles_) {
    for (const auto& [id, user] : users_.users())
      if (user.admin)
        out.push_back({id, {}});
  } else {
    for (const auto& given : folk_.given(authority::cluster_admin)) {
      if (given.user)
        out.push_back({given.user, {}});
      else if (const auto at = folk_.groups().find(given.group); at != folk_.groups().end())
        for (const auto member : at->second.members)
          out.push_back({member, given.group});
    }
  }
  std::erase_if(out, [this](const right& x) { return !counts(x.user); });
  return out;
}

result<void> last_admin::check(const std::function<bool(const right&)>& goes) const {
  const auto now = rights();
  if (now.empty() || !std::all_of(now.begin(), now.end(), goes))
    return {};
  return error{errc::invalid,
               std::string("no active admin would be left, and nobody could manage users any more\nhint: ") +
                 (by_roles_ ? "give another user the role ClusterAdmin for all workspaces first"
                            : "make another user an admin first")};
}

result<void> last_admin::allows(const commands::user_change& x) const {
  const bool leaves =
    (x.active && !*x.active) || (x.remote && *x.remote) || (!by_roles_ && x.admin && !*x.admin);
  return leaves ? check([&](const right& one) { return one.user == x.id; }) : result<void>{};
}

result<void> last_admin::allows(const commands::group_change& x) const {
  const auto goes = [&](user_id id) {
    return std::find(x.remove.begin(), x.remove.end(), id) != x.remove.end();
  };
  if (std::any_of(x.add.begin(), x.add.end(), [&](user_id id) { return counts(id) && !goes(id); }))
    return {}; // where the group has the role, the added user has it then
  return check([&](const right& one) { return one.group && one.group == x.id && goes(one.user); });
}

result<void> last_admin::allows(const commands::group_remove& x) const {
  return check([&](const right& one) { return one.group && one.group == x.id; });
}

result<void> last_admin::allows(const commands::role_assign& x) const {
  if (!x.taken || !by_roles_)
    return {};
  return check([&](const right& one) {
    return std::any_of(x.roles.begin(), x.roles.end(), [&](const commands::role_assign::one& taken) {
      return taken.role == authority::cluster_admin && !taken.workspace &&
             (one.group ? taken.group == one.group : taken.user == one.user);
    });
  });
}

} // namespace troupe
