// `troupe user`, `troupe token`, `troupe group`, `troupe role`.

#include "runtime/cli/house_verbs.hpp"
#include "runtime/cli/things.hpp"

#include <algorithm>
#include <map>
#include <ostream>

namespace troupe::cli::verbs {
namespace {

const std::vector<column> user_columns = {
  {"ID", "id"},       {"NAME", "username"}, {"DISPLAY NAME", "displayName"},
  {"ADMIN", "admin"}, {"ACTIVE", "active"}, {"LAST LOGIN", "lastAuthAt", show_as::age}};
const std::vector<column> token_columns = {{"ID", "id"},
                                           {"USER", "username"},
                                           {"DESCRIPTION", "description"},
                                           {"CREATED", "createdAt", show_as::age},
                                           {"EXPIRES", "expiry"},
                                           {"REVOKED", "revoked"}};
const std::vector<column> group_columns = {
  {"ID", "groupId"}, {"NAME", "name"}, {"MEMBERS", "users", show_as::count}};

std::string user_path(const value& user) { return "/api/v1/users/" + id_text(user); }
std::string group_path(const std::string& id) { return "/api/v1/groups/" + id; }

/// The ids of the users that these words name.
result<value> ids_of_users(client::server& cluster, const std::vector<std::string>& words) {
  value ids = value::array();
  for (const auto& word : words) {
    auto user = user_named(cluster, word);
    if (!user)
      return user.error();
    ids.push_back(part(*user, "id"));
  }
  return ids;
}

/// The names of these rows, by their ids.
std::map<value, value> names_in(const value& rows, const char* name) {
  std::map<value, value> names;
  for (const auto& one : rows)
    names.emplace(part(one, "id"), part(one, name));
  return names;
}
value name_of(const std::map<value, value>& names, const value& id) {
  const auto known = names.find(id);
  return known == names.end() ? id : known->second; // the caller does not see this one
}

} // namespace

// ---- users

int user_list(session& s, const arguments&) { return print_list(s, "/api/v1/users", "users", user_columns); }

int user_describe(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto user = user_named(**cluster, given.text("USER"));
  if (!user)
    return s.fail(user.error());
  auto columns = user_columns;
  columns.push_back({"REMOTE", "remote"});
  columns.push_back({"ACCOUNT", "agentUserGroup", show_as::compact});
  columns.push_back({"CHANGED", "modifiedAt", show_as::age});
  if (const int code = s.print(show_one(*user, columns, s.output())); code != exit_done)
    return code;
  if (!is_card(s.output()))
    return exit_done;
  auto got = (*cluster)->get("/api/v1/roles/search/by-user/" + id_text(*user));
  auto workspaces = (*cluster)->list("/api/v1/workspaces", "workspaces");
  if (!got || !workspaces)
    return s.fail(got ? workspaces.error() : got.error());
  const auto places = names_in(*workspaces, "name");
  value rows = value::array();
  for (const auto& role : part(got->body, "roles"))
    for (const char* how : {"userRoleAssignments", "groupRoleAssignments"})
      for (const auto& one : part(role, how)) {
        const auto& in = part(one, "roleAssignment.scopeWorkspaceId");
        rows.push_back({{"role", part(role, "role.name")},
                        {"workspace", in.is_null() ? value("everywhere") : name_of(places, in)},
                        {"group", part(one, "groupId")}});
      }
  return print_below(s, "ROLES", rows, {{"ROLE", "role"}, {"IN", "workspace"}, {"THROUGH GROUP", "group"}});
}

int user_create(session& s, const arguments& given) {
  return act_on(s, user_columns, [&](client::server& cluster) -> result<deed> {
    value user{{"username", given.text("NAME")},
               {"displayName", given.text("--display-name")},
               {"admin", given.has("--admin")},
               {"active", true}};
    std::string password;
    if (given.has("--password-file")) {
      auto read = password_in(given.text("--password-file"));
      if (!read)
        return read.error();
      password = std::move(*read);
    }
    if (given.has("--account")) {
      auto account = account_in(given.text("--account"));
      if (!account)
        return account.error();
      user["agentUserGroup"] = std::move(*account);
    }
    auto made = cluster.post("/api/v1/users", {{"user", std::move(user)}, {"password", password}});
    if (!made)
      return made.error();
    return deed{"user " + id_text(*made, "user.id"), part(*made, "user")};
  });
}

int user_set(session& s, const arguments& given) {
  if (auto fine = not_both(given, "--activate", "--deactivate"); !fine)
    return s.fail(fine.error());
  value body = value::object();
  if (given.has("--name"))
    body["username"] = given.text("--name");
  if (given.has("--display-name"))
    body["displayName"] = given.text("--display-name");
  if (given.has("--admin"))
    body["admin"] = given.text("--admin") == "on";
  if (given.has("--activate") || given.has("--deactivate"))
    body["active"] = given.has("--activate");
  if (given.has("--password-file")) {
    auto read = password_in(given.text("--password-file"));
    if (!read)
      return s.fail(read.error());
    body["password"] = std::move(*read);
  }
  if (given.has("--account")) {
    auto account = account_in(given.text("--account"));
    if (!account)
      return s.fail(account.error());
    body["agentUserGroup"] = std::move(*account);
  }
  if (body.empty())
    return s.fail({errc::invalid, "nothing is set\nhint: --name NAME, --display-name TEXT, --admin on or "
                                  "off, --activate, --deactivate, --password-file FILE, --account "
                                  "UID:GID:USER:GROUP"});
  return act_on(s, user_columns, [&](client::server& cluster) -> result<deed> {
    auto user = user_named(cluster, given.text("USER"));
    if (!user)
      return user.error();
    auto done = cluster.change("PATCH", user_path(*user), body);
    if (!done)
      return done.error();
    return deed{"changed user " + id_text(*user), part(*done, "user")};
  });
}

// ---- access tokens

namespace {

/// The tokens, each with the `username` of its user, or the number where that is not seen.
result<value> tokens(client::server& cluster, const client::query& with) {
  auto rows = cluster.list("/api/v1/tokens", "tokenInfo", with);
  auto users = rows ? cluster.list("/api/v1/users", "users") : rows.error();
  if (!users)
    return users.error();
  const auto people = names_in(*users, "username");
  for (auto& one : *rows)
    one["username"] = name_of(people, part(one, "userId"));
  return rows;
}

/// A token by its number, even where it is void.
result<value> token_named(client::server& cluster, const std::string& word) {
  auto rows = tokens(cluster, {{"showInactive", "true"}});
  if (!rows)
    return rows.error();
  for (const auto& one : *rows)
    if (!word.empty() && id_text(one) == word)
      return one;
  return error{errc::not_found, "token '" + word + "' not found\nhint: its number; troupe token list --all"};
}

int change_token(session& s, const value& body, const char* done) {
  return act_on(s, token_columns, [&](client::server& cluster) -> result<deed> {
    auto known = token_named(cluster, s.given.text("TOKEN"));
    if (!known)
      return known.error();
    const auto id = id_text(*known);
    auto changed = cluster.change("PATCH", "/api/v1/tokens/" + id, body);
    if (!changed)
      return changed.error();
    value now = part(*changed, "tokenInfo");
    now["username"] = part(*known, "username");
    return deed{std::string(done) + " token " + id, std::move(now)};
  });
}

} // namespace

int token_list(session& s, const arguments& given) {
  client::query with;
  if (given.has("--all"))
    with.emplace_back("showInactive", "true");
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto rows = tokens(**cluster, with);
  return rows ? s.print(show_rows(*rows, token_columns, s.output())) : s.fail(rows.error());
}

int token_describe(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto known = token_named(**cluster, given.text("TOKEN"));
  return known ? s.print(show_one(*known, token_columns, s.output())) : s.fail(known.error());
}

int token_create(session& s, const arguments& given) {
  const std::vector<column> columns = {{"ID", "tokenId"}, {"TOKEN", "token"}};
  return act_on(s, columns, [&](client::server& cluster) -> result<deed> {
    value body = {{"description", given.text("--description")}};
    auto life = given.text("--expires");
    if (life.ends_with('d')) { // the body wants hours: Go's durations have no days
      life.pop_back();
      if (life.empty() || life.size() > 5 || life.find_first_not_of("0123456789") != life.npos)
        return error{errc::invalid, "--expires: '" + life + "d' is not a number of days"};
      life = std::to_string(std::stoll(life) * 24) + "h";
    }
    if (!life.empty())
      body["lifespan"] = life;
    if (given.has("--user")) {
      auto user = user_named(cluster, given.text("--user"));
      if (!user)
        return user.error();
      body["userId"] = part(*user, "id");
    }
    auto made = cluster.post("/api/v1/tokens", body);
    if (!made)
      return made.error();
    s.io.err << "token " << id_text(*made, "tokenId") << ": its text is never shown again\n";
    return deed{part(*made, "token").get<std::string>(), *made};
  });
}

int token_set(session& s, const arguments& given) {
  if (!given.has("--description"))
    return s.fail({errc::invalid, "nothing is set\nhint: --description TEXT"});
  return change_token(s, {{"description", given.text("--description")}}, "changed");
}

int token_revoke(session& s, const arguments&) { return change_token(s, {{"setRevoked", true}}, "revoked"); }

// ---- groups

int group_list(session& s, const arguments&) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto rows = groups(**cluster);
  return rows
           ? s.print(show_rows(*rows,
                               {{"ID", "id"}, {"NAME", "name"}, {"MEMBERS", "numMembers", show_as::number}},
                               s.output()))
           : s.fail(rows.error());
}

int group_describe(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto known = group_named(**cluster, given.text("GROUP"));
  auto group = known ? thing_at(**cluster, group_path(id_text(*known)), "group") : known;
  if (!group)
    return s.fail(group.error());
  if (const int code = s.print(show_one(*group, group_columns, s.output())); code != exit_done)
    return code;
  return print_below(s, "USERS", part(*group, "users"), user_columns);
}

int group_create(session& s, const arguments& given) {
  return act_on(s, group_columns, [&](client::server& cluster) -> result<deed> {
    auto users = ids_of_users(cluster, given.all("--user"));
    if (!users)
      return users.error();
    auto made = cluster.post("/api/v1/groups", {{"name", given.text("NAME")}, {"addUsers", *users}});
    if (!made)
      return made.error();
    return deed{"group " + id_text(*made, "group.groupId"), part(*made, "group")};
  });
}

int group_set(session& s, const arguments& given) {
  if (!given.has("--name") && !given.has("--add") && !given.has("--remove"))
    return s.fail({errc::invalid, "nothing is set\nhint: --name NAME, --add USER, --remove USER"});
  return act_on(s, group_columns, [&](client::server& cluster) -> result<deed> {
    auto known = group_named(cluster, given.text("GROUP"));
    if (!known)
      return known.error();
    auto add = ids_of_users(cluster, given.all("--add"));
    auto remove = ids_of_users(cluster, given.all("--remove"));
    if (!add || !remove)
      return add ? remove.error() : add.error();
    const auto id = id_text(*known);
    value body{{"addUsers", std::move(*add)}, {"removeUsers", std::move(*remove)}};
    if (given.has("--name"))
      body["name"] = given.text("--name");
    auto done = cluster.change("PUT", group_path(id), body);
    if (!done)
      return done.error();
    return deed{"changed group " + id, part(*done, "group")};
  });
}

int group_delete(session& s, const arguments& given) {
  return act_on(s, group_columns, [&](client::server& cluster) -> result<deed> {
    auto known = group_named(cluster, given.text("GROUP"));
    if (!known)
      return known.error();
    const auto id = id_text(*known);
    auto group = thing_at(cluster, group_path(id), "group");
    if (!group)
      return group.error();
    if (auto done = cluster.change("DELETE", group_path(id)); !done)
      return done.error();
    return deed{"deleted group " + id, std::move(*group)};
  });
}

// ---- roles

namespace {

const std::vector<column> role_columns = {{"ID", "roleId"},
                                          {"NAME", "name"},
                                          {"PERMISSIONS", "permissions", show_as::count},
                                          {"OF A WORKSPACE", "scopeTypeMask.workspace"}};

/// A role with its assignments: {role, userRoleAssignments, groupRoleAssignments}.
result<value> role_with_assignments(client::server& cluster, const value& role) {
  auto got = cluster.post("/api/v1/roles/search/by-ids", {{"roleIds", value::array({part(role, "roleId")})}});
  if (!got)
    return got.error();
  const auto& list = part(*got, "roles");
  return list.is_array() && !list.empty() ? result<value>(list[0])
                                          : error{errc::not_found, "role '" + id_text(role, "roleId") +
                                                                     "' not found\nhint: troupe role list"};
}

} // namespace

int role_list(session& s, const arguments&) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto rows = roles(**cluster);
  return rows ? s.print(show_rows(*rows, role_columns, s.output())) : s.fail(rows.error());
}

int role_describe(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto known = role_named(**cluster, given.text("ROLE"));
  auto role = known ? role_with_assignments(**cluster, *known) : known;
  if (!role)
    return s.fail(role.error());
  if (!is_card(s.output()))
    return s.print(show_one(*role,
                            {{"ID", "role.roleId"},
                             {"NAME", "role.name"},
                             {"PERMISSIONS", "role.permissions", show_as::count},
                             {"OF A WORKSPACE", "role.scopeTypeMask.workspace"},
                             {"USERS", "userRoleAssignments", show_as::count},
                             {"GROUPS", "groupRoleAssignments", show_as::count}},
                            s.output()));
  if (const int code = s.print(show_one(*known, role_columns, s.output())); code != exit_done)
    return code;
  auto users = (*cluster)->list("/api/v1/users", "users");
  auto teams = groups(**cluster);
  auto workspaces = (*cluster)->list("/api/v1/workspaces", "workspaces");
  for (const auto* some : {&users, &teams, &workspaces})
    if (!*some)
      return s.fail(some->error());
  const auto people = names_in(*users, "username"), team_names = names_in(*teams, "name"),
             places = names_in(*workspaces, "name");
  value rows = value::array();
  const auto add = [&](const char* list, const char* kind, const char* id,
                       const std::map<value, value>& names) {
    for (const auto& one : part(*role, list)) {
      const auto& in = part(one, "roleAssignment.scopeWorkspaceId");
      rows.push_back({{"kind", kind},
                      {"name", name_of(names, part(one, id))},
                      {"workspace", in.is_null() ? value("everywhere") : name_of(places, in)}});
    }
  };
  add("userRoleAssignments", "user", "userId", people);
  add("groupRoleAssignments", "group", "groupId", team_names);
  if (const int code =
        print_below(s, "GIVEN TO", rows, {{"KIND", "kind"}, {"NAME", "name"}, {"IN", "workspace"}});
      code != exit_done)
    return code;
  return print_below(s, "PERMISSIONS", part(*known, "permissions"),
                     {{"NAME", "name"}, {"OF A WORKSPACE", "scopeTypeMask.workspace"}});
}

int role_give(session& s, const arguments& given) {
  if (given.has("--user") == given.has("--group"))
    return s.fail({errc::invalid, "give either --user or --group"});
  const std::vector<column> columns = {{"ID", "role.roleId"},
                                       {"NAME", "role.name"},
                                       {"USERS", "userRoleAssignments", show_as::count},
                                       {"GROUPS", "groupRoleAssignments", show_as::count}};
  return act_on(s, columns, [&](client::server& cluster) -> result<deed> {
    auto role = role_named(cluster, given.text("ROLE"));
    if (!role)
      return role.error();
    value assignment{{"role", {{"roleId", part(*role, "roleId")}}}};
    if (given.has("--workspace")) {
      auto workspace = workspace_named(cluster, given.text("--workspace"));
      if (!workspace)
        return workspace.error();
      assignment["scopeWorkspaceId"] = part(*workspace, "id");
    }
    const bool to_user = given.has("--user");
    auto whom =
      to_user ? user_named(cluster, given.text("--user")) : group_named(cluster, given.text("--group"));
    if (!whom)
      return whom.error();
    value body;
    body[to_user ? "userRoleAssignments" : "groupRoleAssignments"] = {
      {{to_user ? "userId" : "groupId", part(*whom, "id")}, {"roleAssignment", assignment}}};
    const bool taken = given.has("--take");
    auto done =
      cluster.post(taken ? "/api/v1/roles/remove-assignments" : "/api/v1/roles/add-assignments", body);
    auto now = done ? role_with_assignments(cluster, *role) : done;
    if (!now)
      return now.error();
    return deed{taken ? "taken" : "given", std::move(*now)};
  });
}

} // namespace troupe::cli::verbs
