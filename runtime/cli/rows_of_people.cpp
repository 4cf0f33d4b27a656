// Rows of the verb table: users, tokens, groups, roles.

#include "runtime/cli/house_verbs.hpp"
#include "runtime/cli/rows.hpp"

namespace troupe::cli::rows {
namespace {

using enum option_kind;

constexpr option_spec user_flags[] = {
  {"--admin", "", "The user may change the cluster", toggle},
  {"--display-name", "TEXT", "What people see (default: the name)", text},
  {"--password-file", "FILE",
   "File whose first line is the password (default: a blank one, on loopback only)", text},
};
constexpr option_spec tokens_flags[] = {{"--all", "", "List also those that are void", toggle}};
constexpr option_spec token_flags[] = {
  {"--expires", "TIME", "Life of the token, as 12h or 30d (default: 30d, the longest)", text},
  {"--description", "TEXT", "What it is for", text},
  {"--user", "USER", "Whom it stands for (default: the caller; others: admins only)", text},
};
constexpr option_spec group_flags[] = {
  {"--user", "USER", "Member of the group; may be given several times", list}};
constexpr option_spec give_flags[] = {
  {"--user", "USER", "Name or number of the user who gets it", text},
  {"--group", "GROUP", "Name or number of the group that gets it", text},
  {"--workspace", "WORKSPACE", "Where it holds (default: everywhere)", text},
  {"--take", "", "Take it away", toggle},
};
constexpr argument_spec one_token[] = {{"TOKEN", "Number of the token"}};
constexpr argument_spec one_group[] = {{"GROUP", "Name or number of the group"}};
constexpr argument_spec one_role[] = {{"ROLE", "Name or number of the role"}};

constexpr verb_spec table[] = {
  {"user list",
   "List the users",
   {},
   {},
   true,
   true,
   "troupe user list",
   "troupe user create",
   verbs::user_list},
  {"user create", "Create a user; by an admin", new_name, user_flags, false, true,
   "troupe user create eve --password-file secret", "troupe user list", verbs::user_create},
  {"token list",
   "List your access tokens; an admin's list has everybody's",
   {},
   tokens_flags,
   true,
   true,
   "troupe token list --all",
   "troupe token create",
   verbs::token_list},
  {"token create",
   "Make an access token and print it",
   {},
   token_flags,
   false,
   true,
   "troupe token create --expires 30d --description nightly",
   "troupe token revoke",
   verbs::token_create},
  {"token revoke",
   "End an access token",
   one_token,
   {},
   false,
   true,
   "troupe token revoke 3",
   "troupe token list",
   verbs::token_revoke},
  {"group list",
   "List the groups that you are in; an admin's list has all",
   {},
   {},
   true,
   true,
   "troupe group list",
   "troupe group create",
   verbs::group_list},
  {"group create", "Make a group of users; by an admin", new_name, group_flags, false, true,
   "troupe group create vision --user eve --user bob", "troupe role give", verbs::group_create},
  {"group delete",
   "Delete a group; by an admin",
   one_group,
   {},
   false,
   true,
   "troupe group delete vision",
   "troupe group list",
   verbs::group_delete},
  {"role list",
   "List the roles that Determined has",
   {},
   {},
   true,
   true,
   "troupe role list",
   "troupe role give",
   verbs::role_list},
  {"role give", "Give a role to a user or a group, or take it. Rights follow roles with cluster.authz: rbac",
   one_role, give_flags, false, true, "troupe role give Editor --group vision --workspace vision",
   "troupe role list", verbs::role_give},
};

} // namespace

std::span<const verb_spec> of_people() { return table; }

} // namespace troupe::cli::rows
