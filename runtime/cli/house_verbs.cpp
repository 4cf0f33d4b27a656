#include "runtime/cli/house_verbs.hpp"

#include "runtime/cli/experiments.hpp"
#include "runtime/cli/follow.hpp"
#include "runtime/cli/session.hpp"
#include "runtime/client/submission.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <ostream>

namespace troupe::cli::verbs {
namespace {

/// Runs `act` with the cluster; prints what it answers as it is, or why not.
template <class Act>
int with_cluster(session& s, const Act& act) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  result<std::string> text = act(**cluster);
  if (!text)
    return s.fail(text.error());
  s.io.out << *text;
  return exit_done;
}

int listed(session& s, const std::string& path, const char* key, const std::vector<column>& columns,
           const client::query& with = {}) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto rows = (*cluster)->list(path, key, with);
  return rows ? s.print(show_rows(*rows, columns, s.output())) : s.fail(rows.error());
}

std::string numbered(const value& x) { return x.is_number_integer() ? to_json(x) : std::string(); }

/// The row of `path` whose `name` is this word, or whose `id` is, where the word is a number.
result<value> named(client::server& cluster, const std::string& path, const char* key, const char* what,
                    const std::string& word, const char* name = "name") {
  auto rows = cluster.list(path, key);
  if (!rows)
    return rows.error();
  for (const auto& one : *rows)
    if (part(one, name) == word)
      return one;
  for (const auto& one : *rows)
    if (numbered(part(one, "id")) == word)
      return one;
  return error{errc::not_found,
               std::string(what) + " '" + word + "' not found\nhint: troupe " + what + " list"};
}

} // namespace

result<value> workspace_named(client::server& cluster, const std::string& word) {
  return named(cluster, "/api/v1/workspaces", "workspaces", "workspace", word);
}

namespace {
/// A number, or "WORKSPACE/NAME".
result<value> project_named(client::server& cluster, const std::string& word) {
  const auto slash = word.find('/');
  if (slash == word.npos) {
    auto got = cluster.get("/api/v1/projects/" + word);
    return got ? result<value>(part(got->body, "project")) : got.error();
  }
  auto workspace = workspace_named(cluster, word.substr(0, slash));
  if (!workspace)
    return workspace.error();
  return named(cluster, "/api/v1/workspaces/" + numbered(part(*workspace, "id")) + "/projects", "projects",
               "project", word.substr(slash + 1));
}
result<value> user_named(client::server& cluster, const std::string& word) {
  return named(cluster, "/api/v1/users", "users", "user", word, "username");
}

/// Does `act` to each experiment that is named; all are tried, the first failure gives the exit code.
template <class Act>
int on_experiments(session& s, const char* done, const Act& act) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  int code = exit_done;
  for (const auto& word : s.given.all("EXPERIMENT")) {
    auto id = named_experiment(**cluster, word);
    auto answer = id ? act(**cluster, to_string(*id)) : result<value>(id.error());
    if (answer) {
      s.io.out << done << " experiment " << to_string(*id) << "\n";
      continue;
    }
    const int failed = s.fail(answer.error());
    code = code == exit_done ? failed : code;
  }
  return code;
}

} // namespace

// ---- experiments

int experiment_archive(session& s, const arguments&) {
  return on_experiments(s, "archived", [](client::server& cluster, const std::string& id) {
    return cluster.post("/api/v1/experiments/" + id + "/archive");
  });
}
int experiment_unarchive(session& s, const arguments&) {
  return on_experiments(s, "unarchived", [](client::server& cluster, const std::string& id) {
    return cluster.post("/api/v1/experiments/" + id + "/unarchive");
  });
}
int experiment_delete(session& s, const arguments& given) {
  if (!given.has("--yes"))
    return s.fail(
      {errc::invalid, "deletes checkpoints, reports and logs, which cannot be taken back\nhint: give --yes"});
  return on_experiments(s, "deleting", [](client::server& cluster, const std::string& id) {
    return cluster.change("DELETE", "/api/v1/experiments/" + id);
  });
}
int experiment_move(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto to = project_named(**cluster, given.text("--project"));
  if (!to)
    return s.fail(to.error());
  const auto project = part(*to, "id");
  return on_experiments(s, "moved", [&](client::server& c, const std::string& id) {
    return c.post("/api/v1/experiments/" + id + "/move", {{"destinationProjectId", project}});
  });
}
int experiment_continue(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  std::string text;
  if (given.has("--config-file")) {
    std::ifstream in(given.text("--config-file"));
    if (!in)
      return s.fail({errc::invalid, given.text("--config-file") + ": cannot be read"});
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  if (const auto pairs = given.all("--config"); !pairs.empty()) {
    auto both = client::with_overrides(text.empty() ? "{}" : text, "the configuration", pairs);
    if (!both)
      return s.fail(both.error());
    text = std::move(*both);
  }
  auto id = named_experiment(**cluster, given.text("EXPERIMENT"));
  if (!id)
    return s.fail(id.error());
  auto done = (*cluster)->post("/api/v1/experiments/continue", {{"id", id->value}, {"overrideConfig", text}});
  if (!done)
    return s.fail(done.error());
  s.io.out << "continued experiment " << to_string(*id) << std::endl;
  return given.has("--follow") ? follow_to_exit(s, **cluster, *id) : int(exit_done);
}
int experiment_label(session& s, const arguments& given) {
  return with_cluster(s, [&](client::server& cluster) -> result<std::string> {
    auto id = named_experiment(cluster, given.text("EXPERIMENT"));
    if (!id)
      return id.error();
    const auto path = "/api/v1/experiments/" + to_string(*id);
    auto got = cluster.get(path);
    if (!got)
      return got.error();
    std::vector<std::string> labels;
    for (const auto& one : part(got->body, "experiment.labels"))
      labels.push_back(one);
    for (const auto& one : given.all("--remove"))
      std::erase(labels, one);
    for (const auto& one : given.all("--add"))
      if (std::find(labels.begin(), labels.end(), one) == labels.end())
        labels.push_back(one);
    if (given.has("--add") || given.has("--remove"))
      if (auto done = cluster.change("PATCH", path, {{"labels", labels}}); !done)
        return done.error();
    std::string text;
    for (const auto& one : labels)
      text += one + "\n";
    return text;
  });
}

// ---- places

int workspace_list(session& s, const arguments&) {
  return listed(s, "/api/v1/workspaces", "workspaces",
                {{"ID", "id"},
                 {"NAME", "name"},
                 {"OWNER", "username"},
                 {"PROJECTS", "numProjects", show_as::number},
                 {"EXPERIMENTS", "numExperiments", show_as::number},
                 {"ARCHIVED", "archived"}});
}
int workspace_create(session& s, const arguments& given) {
  return with_cluster(s, [&](client::server& cluster) -> result<std::string> {
    auto made = cluster.post("/api/v1/workspaces", {{"name", given.text("NAME")}});
    return made ? result<std::string>("workspace " + numbered(part(*made, "workspace.id")) + "\n")
                : made.error();
  });
}
int workspace_delete(session& s, const arguments& given) {
  if (!given.has("--yes"))
    return s.fail(
      {errc::invalid, "deletes a workspace with all its projects and experiments\nhint: give --yes"});
  return with_cluster(s, [&](client::server& cluster) -> result<std::string> {
    auto known = workspace_named(cluster, given.text("WORKSPACE"));
    if (!known)
      return known.error();
    const auto id = numbered(part(*known, "id"));
    auto done = cluster.change("DELETE", "/api/v1/workspaces/" + id);
    if (!done)
      return done.error();
    return (part(*done, "completed") == value(true) ? "deleted workspace " : "deleting workspace ") + id +
           "\n";
  });
}
int project_list(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  std::string in = "0"; // all
  if (given.has("--workspace")) {
    auto workspace = workspace_named(**cluster, given.text("--workspace"));
    if (!workspace)
      return s.fail(workspace.error());
    in = numbered(part(*workspace, "id"));
  }
  return listed(s, "/api/v1/workspaces/" + in + "/projects", "projects",
                {{"ID", "id"},
                 {"KEY", "key"},
                 {"WORKSPACE", "workspaceName"},
                 {"NAME", "name"},
                 {"OWNER", "username"},
                 {"EXPERIMENTS", "numExperiments", show_as::number},
                 {"ACTIVE", "numActiveExperiments", show_as::number},
                 {"ARCHIVED", "archived"}});
}
int project_create(session& s, const arguments& given) {
  return with_cluster(s, [&](client::server& cluster) -> result<std::string> {
    auto workspace = workspace_named(cluster, given.text("WORKSPACE"));
    if (!workspace)
      return workspace.error();
    auto made = cluster.post("/api/v1/workspaces/" + numbered(part(*workspace, "id")) + "/projects",
                             {{"name", given.text("NAME")}, {"description", given.text("--description")}});
    return made ? result<std::string>("project " + numbered(part(*made, "project.id")) + "\n") : made.error();
  });
}
int project_delete(session& s, const arguments& given) {
  if (!given.has("--yes"))
    return s.fail({errc::invalid, "deletes a project with all its experiments\nhint: give --yes"});
  return with_cluster(s, [&](client::server& cluster) -> result<std::string> {
    auto known = project_named(cluster, given.text("PROJECT"));
    if (!known)
      return known.error();
    const auto id = numbered(part(*known, "id"));
    auto done = cluster.change("DELETE", "/api/v1/projects/" + id);
    if (!done)
      return done.error();
    return (part(*done, "completed") == value(true) ? "deleted project " : "deleting project ") + id + "\n";
  });
}
int model_list(session& s, const arguments&) {
  return listed(s, "/api/v1/models", "models",
                {{"ID", "id"},
                 {"NAME", "name"},
                 {"VERSIONS", "numVersions", show_as::number},
                 {"OWNER", "username"},
                 {"LABELS", "labels"},
                 {"CHANGED", "lastUpdatedTime", show_as::age},
                 {"ARCHIVED", "archived"}});
}
int template_list(session& s, const arguments&) {
  return listed(
    s, "/api/v1/templates", "templates",
    {{"NAME", "name"}, {"WORKSPACE", "workspaceId"}, {"CONFIGURATION", "config", show_as::compact}});
}

// ---- people

int user_list(session& s, const arguments&) {
  return listed(s, "/api/v1/users", "users",
                {{"ID", "id"},
                 {"NAME", "username"},
                 {"DISPLAY NAME", "displayName"},
                 {"ADMIN", "admin"},
                 {"ACTIVE", "active"},
                 {"LAST LOGIN", "lastAuthAt", show_as::age}});
}
int user_create(session& s, const arguments& given) {
  return with_cluster(s, [&](client::server& cluster) -> result<std::string> {
    std::string password;
    if (given.has("--password-file")) {
      std::ifstream in(given.text("--password-file"));
      if (!in || !std::getline(in, password))
        return error{errc::invalid, given.text("--password-file") +
                                      ": cannot be read\nhint: its first line is the password"};
    }
    auto made = cluster.post("/api/v1/users", {{"user",
                                                {{"username", given.text("NAME")},
                                                 {"displayName", given.text("--display-name")},
                                                 {"admin", given.has("--admin")},
                                                 {"active", true}}},
                                               {"password", password}});
    return made ? result<std::string>("user " + numbered(part(*made, "user.id")) + "\n") : made.error();
  });
}
int token_list(session& s, const arguments& given) {
  client::query with;
  if (given.has("--all"))
    with.emplace_back("showInactive", "true");
  return listed(s, "/api/v1/tokens", "tokenInfo",
                {{"ID", "id"},
                 {"USER", "userId"},
                 {"DESCRIPTION", "description"},
                 {"CREATED", "createdAt", show_as::age},
                 {"EXPIRES", "expiry"},
                 {"REVOKED", "revoked"}},
                with);
}
int token_create(session& s, const arguments& given) {
  return with_cluster(s, [&](client::server& cluster) -> result<std::string> {
    value body = {{"description", given.text("--description")}};
    auto life = given.text("--expires");
    if (life.ends_with('d')) { // as Go writes it
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
    s.io.err << "token " << numbered(part(*made, "tokenId")) << ": its text is never shown again\n";
    return part(*made, "token").get<std::string>() + "\n";
  });
}
int token_revoke(session& s, const arguments& given) {
  return with_cluster(s, [&](client::server& cluster) -> result<std::string> {
    auto done = cluster.change("PATCH", "/api/v1/tokens/" + given.text("TOKEN"), {{"setRevoked", true}});
    return done ? result<std::string>("revoked token " + given.text("TOKEN") + "\n") : done.error();
  });
}

namespace {

result<value> groups(client::server& cluster) {
  auto got = cluster.post("/api/v1/groups/search", {{"limit", 500}});
  if (!got)
    return got.error();
  value rows = value::array();
  for (const auto& one : part(*got, "groups"))
    rows.push_back({{"id", part(one, "group.groupId")},
                    {"name", part(one, "group.name")},
                    {"numMembers", part(one, "numMembers")}});
  return rows;
}

result<value> group_named(client::server& cluster, const std::string& word) {
  auto rows = groups(cluster);
  if (!rows)
    return rows.error();
  for (const auto& one : *rows)
    if (part(one, "name") == word || numbered(part(one, "id")) == word)
      return one;
  return error{errc::not_found, "group '" + word + "' not found\nhint: troupe group list"};
}

result<value> roles(client::server& cluster) {
  auto got = cluster.post("/api/v1/roles/search", {{"limit", 500}});
  return got ? result<value>(part(*got, "roles")) : got.error();
}

} // namespace

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
int group_create(session& s, const arguments& given) {
  return with_cluster(s, [&](client::server& cluster) -> result<std::string> {
    value users = value::array();
    for (const auto& word : given.all("--user")) {
      auto user = user_named(cluster, word);
      if (!user)
        return user.error();
      users.push_back(part(*user, "id"));
    }
    auto made = cluster.post("/api/v1/groups", {{"name", given.text("NAME")}, {"addUsers", users}});
    return made ? result<std::string>("group " + numbered(part(*made, "group.groupId")) + "\n")
                : made.error();
  });
}
int group_delete(session& s, const arguments& given) {
  return with_cluster(s, [&](client::server& cluster) -> result<std::string> {
    auto known = group_named(cluster, given.text("GROUP"));
    if (!known)
      return known.error();
    const auto id = numbered(part(*known, "id"));
    auto done = cluster.change("DELETE", "/api/v1/groups/" + id);
    return done ? result<std::string>("deleted group " + id + "\n") : done.error();
  });
}
int role_list(session& s, const arguments&) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto rows = roles(**cluster);
  return rows ? s.print(show_rows(*rows,
                                  {{"ID", "roleId"},
                                   {"NAME", "name"},
                                   {"PERMISSIONS", "permissions", show_as::count},
                                   {"OF A WORKSPACE", "scopeTypeMask.workspace"}},
                                  s.output()))
              : s.fail(rows.error());
}
int role_give(session& s, const arguments& given) {
  return with_cluster(s, [&](client::server& cluster) -> result<std::string> {
    auto all = roles(cluster);
    if (!all)
      return all.error();
    value assignment;
    for (const auto& one : *all)
      if (part(one, "name") == given.text("ROLE") || numbered(part(one, "roleId")) == given.text("ROLE"))
        assignment["role"] = {{"roleId", part(one, "roleId")}};
    if (assignment.is_null())
      return error{errc::not_found, "role '" + given.text("ROLE") + "' not found\nhint: troupe role list"};
    if (given.has("--user") == given.has("--group"))
      return error{errc::invalid, "give either --user or --group"};
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
    auto done = cluster.post(
      given.has("--take") ? "/api/v1/roles/remove-assignments" : "/api/v1/roles/add-assignments", body);
    return done ? result<std::string>(given.has("--take") ? "taken\n" : "given\n") : done.error();
  });
}

// ---- policies

namespace {

result<std::string> policy_path(client::server& cluster, const arguments& given) {
  if (!given.has("--workspace"))
    return "/api/v1/config-policies/global/EXPERIMENT";
  auto workspace = workspace_named(cluster, given.text("--workspace"));
  if (!workspace)
    return workspace.error();
  return "/api/v1/config-policies/workspaces/" + numbered(part(*workspace, "id")) + "/EXPERIMENT";
}

} // namespace

int policy_describe(session& s, const arguments& given) {
  return with_cluster(s, [&](client::server& cluster) -> result<std::string> {
    auto path = policy_path(cluster, given);
    if (!path)
      return path.error();
    auto got = cluster.get(*path);
    if (!got)
      return got.error();
    const auto& shown = part(got->body, "configPolicies");
    return s.output().format == output_format::json ? to_json(shown, 2) + "\n" : to_yaml(shown);
  });
}
int policy_set(session& s, const arguments& given) {
  return with_cluster(s, [&](client::server& cluster) -> result<std::string> {
    auto path = policy_path(cluster, given);
    if (!path)
      return path.error();
    std::ifstream in(given.text("FILE"));
    if (!in)
      return error{errc::invalid, given.text("FILE") + ": cannot be read"};
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    auto done = cluster.change("PUT", *path, {{"configPolicies", text}});
    return done ? result<std::string>("set\n") : done.error();
  });
}
int policy_delete(session& s, const arguments& given) {
  return with_cluster(s, [&](client::server& cluster) -> result<std::string> {
    auto path = policy_path(cluster, given);
    auto done = path ? cluster.change("DELETE", *path) : result<value>(path.error());
    return done ? result<std::string>("deleted\n") : done.error();
  });
}

// ---- webhooks

int webhook_list(session& s, const arguments&) {
  return listed(s, "/api/v1/webhooks", "webhooks",
                {{"ID", "id"},
                 {"NAME", "name"},
                 {"URL", "url"},
                 {"TYPE", "webhookType"},
                 {"WORKSPACE", "workspaceId"},
                 {"MODE", "mode"}});
}
int webhook_create(session& s, const arguments& given) {
  return with_cluster(s, [&](client::server& cluster) -> result<std::string> {
    value triggers = value::array();
    for (const auto& state : given.all("--state")) {
      auto upper = state;
      std::transform(upper.begin(), upper.end(), upper.begin(),
                     [](unsigned char c) { return std::toupper(c); });
      triggers.push_back(
        {{"triggerType", "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE"}, {"condition", {{"state", upper}}}});
    }
    for (const auto& regex : given.all("--log"))
      triggers.push_back({{"triggerType", "TRIGGER_TYPE_TASK_LOG"}, {"condition", {{"regex", regex}}}});
    if (given.has("--custom"))
      triggers.push_back({{"triggerType", "TRIGGER_TYPE_CUSTOM"}, {"condition", value::object()}});
    value body{{"name", given.text("NAME")},
               {"url", given.text("URL")},
               {"webhookType", given.has("--slack") ? "WEBHOOK_TYPE_SLACK" : "WEBHOOK_TYPE_DEFAULT"},
               {"mode", given.has("--specific") || given.has("--custom") ? "WEBHOOK_MODE_SPECIFIC"
                                                                         : "WEBHOOK_MODE_WORKSPACE"},
               {"triggers", std::move(triggers)}};
    if (given.has("--workspace")) {
      auto workspace = workspace_named(cluster, given.text("--workspace"));
      if (!workspace)
        return workspace.error();
      body["workspaceId"] = part(*workspace, "id");
    }
    auto made = cluster.post("/api/v1/webhooks", body);
    return made ? result<std::string>("webhook " + numbered(part(*made, "webhook.id")) + "\n") : made.error();
  });
}
int webhook_delete(session& s, const arguments& given) {
  return with_cluster(s, [&](client::server& cluster) -> result<std::string> {
    auto at = named(cluster, "/api/v1/webhooks", "webhooks", "webhook", given.text("WEBHOOK"));
    auto done = at ? cluster.change("DELETE", "/api/v1/webhooks/" + numbered(part(*at, "id")))
                   : result<value>(at.error());
    return done ? result<std::string>("deleted\n") : done.error();
  });
}
int webhook_test(session& s, const arguments& given) {
  return with_cluster(s, [&](client::server& cluster) -> result<std::string> {
    auto at = named(cluster, "/api/v1/webhooks", "webhooks", "webhook", given.text("WEBHOOK"));
    auto done = at ? cluster.post("/api/v1/webhooks/" + numbered(part(*at, "id")) + "/test")
                   : result<value>(at.error());
    return done ? result<std::string>("delivered\n") : done.error();
  });
}

} // namespace troupe::cli::verbs
