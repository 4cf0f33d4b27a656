// `troupe workspace`, `troupe project`.

#include "runtime/cli/house_verbs.hpp"
#include "runtime/cli/things.hpp"

#include <ostream>

namespace troupe::cli::verbs {
namespace {

const std::vector<column> workspace_columns = {{"ID", "id"},
                                               {"NAME", "name"},
                                               {"OWNER", "username"},
                                               {"PROJECTS", "numProjects", show_as::number},
                                               {"EXPERIMENTS", "numExperiments", show_as::number},
                                               {"ARCHIVED", "archived"}};
const std::vector<column> project_columns = {{"ID", "id"},
                                             {"KEY", "key"},
                                             {"WORKSPACE", "workspaceName"},
                                             {"NAME", "name"},
                                             {"OWNER", "username"},
                                             {"EXPERIMENTS", "numExperiments", show_as::number},
                                             {"ACTIVE", "numActiveExperiments", show_as::number},
                                             {"ARCHIVED", "archived"}};

std::string workspace_path(const std::string& id) { return "/api/v1/workspaces/" + id; }
std::string project_path(const std::string& id) { return "/api/v1/projects/" + id; }

/// "none" means no pool: the cluster's default.
std::string pool_in(const arguments& given, const char* option) {
  const auto text = given.text(option);
  return text == "none" ? std::string() : text;
}

/// The options about a workspace as the bodies of POST and PATCH.
result<value> workspace_wish(session& s) {
  value body = value::object();
  if (s.given.has("--name"))
    body["name"] = s.given.text("--name");
  if (s.given.has("--default-pool"))
    body["defaultComputePool"] = pool_in(s.given, "--default-pool");
  if (s.given.has("--aux-pool"))
    body["defaultAuxPool"] = pool_in(s.given, "--aux-pool");
  if (s.given.has("--account")) {
    auto account = account_in(s.given.text("--account"));
    if (!account)
      return account.error();
    body["agentUserGroup"] = std::move(*account);
  }
  if (const auto file = s.given.text("--checkpoint-storage"); file == "none") {
    body["checkpointStorageConfig"] = value::object();
  } else if (!file.empty()) {
    auto section = map_in(s, file);
    if (!section)
      return section.error();
    // The section may also be part of a configuration.
    const auto& inner = part(*section, "checkpoint_storage");
    body["checkpointStorageConfig"] = section->size() == 1 && inner.is_object() ? inner : *section;
  }
  return body;
}

/// A thing whose deletion was ordered: as it is now, or as it was where it is gone.
value left_of(client::server& cluster, const std::string& path, const char* key, const value& before) {
  auto now = thing_at(cluster, path, key);
  return now ? *now : before;
}

result<deed> workspace_after(client::server& cluster, const std::string& id) {
  auto now = thing_at(cluster, workspace_path(id), "workspace");
  return now ? result<deed>(deed{"changed workspace " + id, std::move(*now)}) : now.error();
}
result<deed> project_after(client::server& cluster, const std::string& id) {
  auto now = thing_at(cluster, project_path(id), "project");
  return now ? result<deed>(deed{"changed project " + id, std::move(*now)}) : now.error();
}

/// Posts to the path of each option that is given, in this order.
struct step {
  const char* option;
  std::string path;
  value body = value::object();
};
result<void> take_steps(client::server& cluster, const arguments& given, const std::vector<step>& steps) {
  for (const auto& one : steps)
    if (given.has(one.option))
      if (auto done = cluster.post(one.path, one.body); !done)
        return done.error();
  return {};
}

} // namespace

// ---- workspaces

int workspace_list(session& s, const arguments&) {
  return print_list(s, "/api/v1/workspaces", "workspaces", workspace_columns);
}

int workspace_describe(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto known = workspace_named(**cluster, given.text("WORKSPACE"));
  if (!known)
    return s.fail(known.error());
  auto columns = workspace_columns;
  columns.push_back({"PINNED", "pinned"});
  columns.push_back({"DEFAULT POOL", "defaultComputePool"});
  columns.push_back({"AUX POOL", "defaultAuxPool"});
  columns.push_back({"ACCOUNT", "agentUserGroup", show_as::compact});
  columns.push_back({"CHECKPOINT STORAGE", "checkpointStorageConfig", show_as::compact});
  columns.push_back({"ERROR", "errorMessage"});
  if (const int code = s.print(show_one(*known, columns, s.output())); code != exit_done)
    return code;
  if (!is_card(s.output()))
    return exit_done;
  auto projects = (*cluster)->list(workspace_path(id_text(*known)) + "/projects", "projects");
  return projects ? print_below(s, "PROJECTS", *projects, project_columns) : s.fail(projects.error());
}

int workspace_create(session& s, const arguments& given) {
  return act_on(s, workspace_columns, [&](client::server& cluster) -> result<deed> {
    auto body = workspace_wish(s);
    if (!body)
      return body.error();
    (*body)["name"] = given.text("NAME");
    auto made = cluster.post("/api/v1/workspaces", *body);
    if (!made)
      return made.error();
    return deed{"workspace " + id_text(*made, "workspace.id"), part(*made, "workspace")};
  });
}

int workspace_set(session& s, const arguments& given) {
  for (auto fine : {not_both(given, "--archive", "--unarchive"), not_both(given, "--pin", "--unpin")})
    if (!fine)
      return s.fail(fine.error());
  auto body = workspace_wish(s);
  if (!body)
    return s.fail(body.error());
  if (body->empty() && !given.has("--archive") && !given.has("--unarchive") && !given.has("--pin") &&
      !given.has("--unpin"))
    return s.fail({errc::invalid, "nothing is set\nhint: --name NAME, --default-pool POOL, --aux-pool POOL, "
                                  "--account UID:GID:USER:GROUP, --checkpoint-storage FILE, --archive, "
                                  "--unarchive, --pin, --unpin"});
  return act_on(s, workspace_columns, [&](client::server& cluster) -> result<deed> {
    auto known = workspace_named(cluster, given.text("WORKSPACE"));
    if (!known)
      return known.error();
    const auto id = id_text(*known), path = workspace_path(id);
    // An archived workspace accepts no change, so it is unarchived first and archived last.
    if (auto done = take_steps(cluster, given, {{"--unarchive", path + "/unarchive"}}); !done)
      return done.error();
    if (!body->empty())
      if (auto done = cluster.change("PATCH", path, *body); !done)
        return done.error();
    if (auto done = take_steps(
          cluster, given,
          {{"--pin", path + "/pin"}, {"--unpin", path + "/unpin"}, {"--archive", path + "/archive"}});
        !done)
      return done.error();
    return workspace_after(cluster, id);
  });
}

int workspace_delete(session& s, const arguments& given) {
  if (!given.has("--yes"))
    return s.fail(
      {errc::invalid, "deletes a workspace with all its projects and experiments\nhint: give --yes"});
  return act_on(s, workspace_columns, [&](client::server& cluster) -> result<deed> {
    auto known = workspace_named(cluster, given.text("WORKSPACE"));
    if (!known)
      return known.error();
    const auto id = id_text(*known), path = workspace_path(id);
    auto done = cluster.change("DELETE", path);
    if (!done)
      return done.error();
    return deed{(part(*done, "completed") == value(true) ? "deleted workspace " : "deleting workspace ") + id,
                left_of(cluster, path, "workspace", *known)};
  });
}

// ---- projects

int project_list(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  std::string in = "0"; // 0 means all workspaces
  if (given.has("--workspace")) {
    auto workspace = workspace_named(**cluster, given.text("--workspace"));
    if (!workspace)
      return s.fail(workspace.error());
    in = id_text(*workspace);
  }
  return print_list(s, workspace_path(in) + "/projects", "projects", project_columns);
}

int project_describe(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto known = project_named(**cluster, given.text("PROJECT"));
  if (!known)
    return s.fail(known.error());
  auto columns = project_columns;
  columns.push_back({"DESCRIPTION", "description"});
  columns.push_back({"RUNS", "numRuns", show_as::number});
  columns.push_back({"LAST STARTED", "lastExperimentStartedAt", show_as::age});
  columns.push_back({"ERROR", "errorMessage"});
  if (const int code = s.print(show_one(*known, columns, s.output())); code != exit_done)
    return code;
  return print_below(s, "NOTES", part(*known, "notes"), {{"NAME", "name"}, {"CONTENTS", "contents"}});
}

int project_create(session& s, const arguments& given) {
  return act_on(s, project_columns, [&](client::server& cluster) -> result<deed> {
    auto workspace = workspace_named(cluster, given.text("WORKSPACE"));
    if (!workspace)
      return workspace.error();
    auto made = cluster.post(workspace_path(id_text(*workspace)) + "/projects",
                             {{"name", given.text("NAME")},
                              {"description", given.text("--description")},
                              {"key", given.text("--key")}});
    if (!made)
      return made.error();
    return deed{"project " + id_text(*made, "project.id"), part(*made, "project")};
  });
}

int project_set(session& s, const arguments& given) {
  if (auto fine = not_both(given, "--archive", "--unarchive"); !fine)
    return s.fail(fine.error());
  value body = value::object();
  for (const auto& [option, key] :
       {std::pair{"--name", "name"}, {"--description", "description"}, {"--key", "key"}})
    if (given.has(option))
      body[key] = given.text(option);
  std::vector<value> notes;
  for (const auto& one : given.all("--note")) {
    const auto equals = one.find('=');
    if (equals == one.npos || equals == 0)
      return s.fail(
        {errc::invalid, "--note takes NAME=TEXT, not '" + one + "'\nhint: --note 'plan=more layers'"});
    notes.push_back({{"name", one.substr(0, equals)}, {"contents", one.substr(equals + 1)}});
  }
  if (body.empty() && notes.empty() && !given.has("--archive") && !given.has("--unarchive") &&
      !given.has("--workspace") && !given.has("--clear-notes"))
    return s.fail({errc::invalid, "nothing is set\nhint: --name NAME, --description TEXT, --key KEY, --note "
                                  "NAME=TEXT, --clear-notes, --workspace WORKSPACE, --archive, --unarchive"});
  return act_on(s, project_columns, [&](client::server& cluster) -> result<deed> {
    auto known = project_named(cluster, given.text("PROJECT"));
    if (!known)
      return known.error();
    const auto id = id_text(*known), path = project_path(id);
    value to = value::object();
    if (given.has("--workspace")) {
      auto workspace = workspace_named(cluster, given.text("--workspace"));
      if (!workspace)
        return workspace.error();
      to["destinationWorkspaceId"] = part(*workspace, "id");
    }
    // An archived project accepts no change, so it is unarchived first and archived last.
    if (auto done = take_steps(cluster, given, {{"--unarchive", path + "/unarchive"}}); !done)
      return done.error();
    if (!body.empty())
      if (auto done = cluster.change("PATCH", path, body); !done)
        return done.error();
    if (given.has("--clear-notes"))
      if (auto done = cluster.change("PUT", path + "/notes", {{"notes", value::array()}}); !done)
        return done.error();
    for (const auto& note : notes)
      if (auto done = cluster.post(path + "/notes", note); !done)
        return done.error();
    if (auto done =
          take_steps(cluster, given, {{"--workspace", path + "/move", to}, {"--archive", path + "/archive"}});
        !done)
      return done.error();
    return project_after(cluster, id);
  });
}

int project_delete(session& s, const arguments& given) {
  if (!given.has("--yes"))
    return s.fail({errc::invalid, "deletes a project with all its experiments\nhint: give --yes"});
  return act_on(s, project_columns, [&](client::server& cluster) -> result<deed> {
    auto known = project_named(cluster, given.text("PROJECT"));
    if (!known)
      return known.error();
    const auto id = id_text(*known), path = project_path(id);
    auto done = cluster.change("DELETE", path);
    if (!done)
      return done.error();
    return deed{(part(*done, "completed") == value(true) ? "deleted project " : "deleting project ") + id,
                left_of(cluster, path, "project", *known)};
  });
}

} // namespace troupe::cli::verbs
