// Rows of the verb table: users, tokens, groups, roles.

#include "runtime/cli/house_verbs.hpp"
#include "runtime/cli/rows.hpp"

namespace troupe::cli::rows {
namespace {

using enum option_kind;

constexpr option_spec user_create_flags[] = {
  {"--admin", "", "The user may change the cluster", toggle},
  {"--display-name", "TEXT", "What people see (default: the name)", text},
  {"--password-file", "FILE",
   "File whose first line is the password (default: a blank one, on loopback only)", text},
  account,
};
constexpr option_spec user_set_flags[] = {
  {"--name", "NAME", "New name; by an admin", text},
  {"--display-name", "TEXT", "What people see", text},
  {"--admin", "on|off", "Whether the user may change the cluster; by an admin", text, "on off"},
  {"--activate", "", "Let the user log in again; by an admin", toggle},
  {"--deactivate", "", "Let the user log in no more, and end the sessions and tokens; by an admin", toggle},
  {"--password-file", "FILE", "File whose first line is the new password", text},
  account,
};
constexpr argument_spec one_user[] = {{"USER", "Name or number of the user"}};
constexpr option_spec token_list_flags[] = {{"--all", "", "List also those that are void", toggle}};
constexpr option_spec token_create_flags[] = {
  {"--expires", "TIME", "Life of the token, as 12h or 30d (default: 30d, the longest)", text},
  {"--description", "TEXT", "Purpose of the token", text},
  {"--user", "USER", "User that the token stands for (default: the caller; others: admins only)", text},
};
constexpr option_spec token_set_flags[] = {{"--description", "TEXT", "Purpose of the token", text}};
constexpr option_spec group_create_flags[] = {
  {"--user", "USER", "Member of the group; may be given several times", list}};
constexpr option_spec group_set_flags[] = {
  {"--name", "NAME", "New name", text},
  {"--add", "USER", "User to take into the group; may be given several times", list},
  {"--remove", "USER", "User to take out of the group; may be given several times", list},
};
constexpr option_spec give_flags[] = {
  {"--user", "USER", "Name or number of the user who gets the role", text},
  {"--group", "GROUP", "Name or number of the group that gets the role", text},
  {"--workspace", "WORKSPACE", "Workspace in which the role holds (default: everywhere)", text},
  {"--take", "", "Take the role away", toggle},
};
constexpr argument_spec one_token[] = {{"TOKEN", "Number of the token"}};
constexpr argument_spec one_group[] = {{"GROUP", "Name or number of the group"}};
constexpr argument_spec one_role[] = {{"ROLE", "Name or number of the role"}};

constexpr verb_spec table[] = {
  {"user list", "List the users", no_words, no_options, true, true, "troupe user list",
   "troupe user describe", verbs::user_list},
  {"user describe", "Show one user with the roles", one_user, no_options, true, true,
   "troupe user describe eve", "troupe user list", verbs::user_describe},
  {"user create", "Create a user; by an admin", new_name, user_create_flags, true, true,
   "troupe user create eve --password-file secret\ntroupe user create eve --admin -o json", "troupe user set",
   verbs::user_create},
  {"user set", "Change a user: of yourself the display name and the password, the rest by an admin", one_user,
   user_set_flags, true, true,
   "troupe user set eve --display-name 'Eve E.' --admin on\ntroupe user set eve --deactivate\n"
   "troupe user set eve --account 1000:1000:eve:users",
   "troupe user describe", verbs::user_set},
  {"token list", "List your access tokens; an admin's list has everybody's", no_words, token_list_flags, true,
   true, "troupe token list --all", "troupe token create", verbs::token_list},
  {"token describe", "Show one access token", one_token, no_options, true, true, "troupe token describe 3",
   "troupe token list", verbs::token_describe},
  {"token create", "Make an access token and print it", no_words, token_create_flags, true, true,
   "troupe token create --expires 30d --description nightly", "troupe token revoke", verbs::token_create},
  {"token set", "Change what is said of an access token", one_token, token_set_flags, true, true,
   "troupe token set 3 --description weekly", "troupe token describe", verbs::token_set},
  {"token revoke", "End an access token", one_token, no_options, true, true, "troupe token revoke 3",
   "troupe token list", verbs::token_revoke},
  {"group list", "List the groups that you are in; an admin's list has all", no_words, no_options, true, true,
   "troupe group list", "troupe group describe", verbs::group_list},
  {"group describe", "Show one group with its users", one_group, no_options, true, true,
   "troupe group describe vision", "troupe group list", verbs::group_describe},
  {"group create", "Make a group of users; by an admin", new_name, group_create_flags, true, true,
   "troupe group create vision --user eve --user bob", "troupe role give", verbs::group_create},
  {"group set", "Rename a group, take users in and out; by an admin", one_group, group_set_flags, true, true,
   "troupe group set vision --add ann --remove bob", "troupe group describe", verbs::group_set},
  {"group delete", "Delete a group; by an admin", one_group, no_options, true, true,
   "troupe group delete vision", "troupe group list", verbs::group_delete},
  {"role list", "List the roles that Determined has", no_words, no_options, true, true, "troupe role list",
   "troupe role describe", verbs::role_list},
  {"role describe", "Show what a role permits, and who has it", one_role, no_options, true, true,
   "troupe role describe Editor", "troupe role give", verbs::role_describe},
  {"role give", "Give a role to a user or a group, or take it. Rights follow roles with cluster.authz: rbac",
   one_role, give_flags, true, true, "troupe role give Editor --group vision --workspace vision",
   "troupe role describe", verbs::role_give},
};

} // namespace

std::span<const verb_spec> of_people() { return table; }

} // namespace troupe::cli::rows
