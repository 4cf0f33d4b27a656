// `troupe template`, `troupe model`.

#include "model/config/secrets.hpp"
#include "runtime/cli/house_verbs.hpp"
#include "runtime/cli/things.hpp"

#include <ostream>

namespace troupe::cli::verbs {
namespace {

const std::vector<column> template_columns = {
  {"NAME", "name"}, {"WORKSPACE", "workspaceId"}, {"CONFIGURATION", "config", show_as::compact}};
const std::vector<column> model_columns = {{"ID", "id"},
                                           {"NAME", "name"},
                                           {"VERSIONS", "numVersions", show_as::number},
                                           {"OWNER", "username"},
                                           {"LABELS", "labels"},
                                           {"CHANGED", "lastUpdatedTime", show_as::age},
                                           {"ARCHIVED", "archived"}};
const std::vector<column> version_columns = {{"VERSION", "version", show_as::number},
                                             {"NAME", "name"},
                                             {"CHECKPOINT", "checkpoint.uuid"},
                                             {"OWNER", "username"},
                                             {"LABELS", "labels"},
                                             {"COMMENT", "comment"},
                                             {"METADATA", "metadata", show_as::compact},
                                             {"CREATED", "creationTime", show_as::age}};

std::string template_path(const std::string& name) {
  return "/api/v1/templates/" + client::percent_encode(name);
}
std::string model_path(const std::string& name) { return "/api/v1/models/" + client::percent_encode(name); }

/// The server's "not found", with the verb that lists what exists.
error with_list(error why, const char* what) {
  if (why.code == errc::not_found && why.what.starts_with(what) &&
      why.what.find("\nhint: ") == std::string::npos)
    why.what += std::string("\nhint: troupe ") + what + " list";
  return why;
}

result<value> template_named(client::server& cluster, const std::string& name) {
  auto found = thing_at(cluster, template_path(name), "template");
  return found ? found : with_list(found.error(), "template");
}
/// A model by name or number.
result<value> model_named(client::server& cluster, const std::string& word) {
  auto found = thing_at(cluster, model_path(word), "model");
  return found ? found : with_list(found.error(), "model");
}
/// The path of a model by its number, because its name may change meanwhile.
std::string path_of(const value& model) { return model_path(id_text(model)); }

result<value> versions_of(client::server& cluster, const value& model) {
  auto rows = cluster.list(path_of(model) + "/versions", "modelVersions");
  if (rows)
    for (auto& one : *rows)
      one.erase("model"); // the user named the model
  return rows;
}

/// The options that are given, under the keys of the body.
value texts_in(const arguments& given, const std::vector<std::pair<const char*, const char*>>& options) {
  value body = value::object();
  for (const auto& [option, key] : options)
    if (given.has(option))
      body[key] = given.text(option);
  return body;
}

/// Adds labels and metadata to `body` where they change: the server replaces each as a whole.
result<void> add_marks(value& body, const value& now, const arguments& given) {
  if (given.has("--add-label") || given.has("--remove-label"))
    body["labels"] = changed_labels(part(now, "labels"), given, "--add-label", "--remove-label");
  if (given.has("--label"))
    body["labels"] = changed_labels(value::array(), given, "--label", "--remove-label");
  if (given.has("--metadata") || given.has("--remove-metadata")) {
    auto metadata = changed_metadata(part(now, "metadata"), given);
    if (!metadata)
      return metadata.error();
    body["metadata"] = std::move(*metadata);
  }
  return {};
}

/// A version by its number.
result<value> version_at(client::server& cluster, const std::string& path) {
  auto found = thing_at(cluster, path, "modelVersion");
  if (!found && found.error().code == errc::not_found)
    return error{errc::not_found, found.error().what + "\nhint: troupe model versions MODEL"};
  return found;
}

bool changes_marks(const arguments& given) {
  return given.has("--add-label") || given.has("--remove-label") || given.has("--metadata") ||
         given.has("--remove-metadata");
}

/// The number in "3". Fails with errc::invalid on other words.
result<std::string> version_in(const arguments& given) {
  const auto word = given.text("VERSION");
  if (word.empty() || word.size() > 18 || word.find_first_not_of("0123456789") != word.npos)
    return error{errc::invalid,
                 "'" + word + "' is not the number of a version\nhint: troupe model versions MODEL"};
  return word;
}

} // namespace

// ---- templates

int template_list(session& s, const arguments&) {
  return print_list(s, "/api/v1/templates", "templates", template_columns);
}

int template_describe(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto known = template_named(**cluster, given.text("TEMPLATE"));
  if (!known)
    return s.fail(known.error());
  if (!is_card(s.output()))
    return s.print(show_one(*known, template_columns, s.output()));
  if (const int code =
        s.print(show_one(*known, {{"NAME", "name"}, {"WORKSPACE", "workspaceId"}}, s.output()));
      code != exit_done)
    return code;
  return s.print("\n" + to_yaml(part(*known, "config")));
}

int template_create(session& s, const arguments& given) {
  return act_on(s, template_columns, [&](client::server& cluster) -> result<deed> {
    auto config = map_in(s, given.text("FILE"));
    if (!config)
      return config.error();
    const auto name = given.text("NAME");
    value body{{"name", name}, {"config", std::move(*config)}};
    if (given.has("--workspace")) {
      auto workspace = workspace_named(cluster, given.text("--workspace"));
      if (!workspace)
        return workspace.error();
      body["workspaceId"] = part(*workspace, "id");
    }
    auto made = cluster.post(template_path(name), body);
    if (!made)
      return made.error();
    return deed{"template " + name, part(*made, "template")};
  });
}

int template_set(session& s, const arguments& given) {
  if (!given.has("--name") && !given.has("--config-file") && !given.has("--workspace"))
    return s.fail(
      {errc::invalid, "nothing is set\nhint: --name NAME, --config-file FILE, --workspace WORKSPACE"});
  return act_on(s, template_columns, [&](client::server& cluster) -> result<deed> {
    auto name = given.text("TEMPLATE");
    value config;
    if (given.has("--config-file")) {
      auto read = map_in(s, given.text("--config-file"));
      if (!read)
        return read.error();
      config = std::move(*read);
    }
    auto now = template_named(cluster, name);
    if (!now)
      return now.error();
    if (given.has("--workspace")) {
      auto workspace = workspace_named(cluster, given.text("--workspace"));
      if (!workspace)
        return workspace.error();
      if (config.is_null())
        config = part(*now, "config");
      if (to_json(config).find(config::secret_mask) != std::string::npos) // a mask is not sent back
        return error{errc::invalid, "template '" + name +
                                      "' holds secrets, which move only with its text\nhint: give "
                                      "--config-file FILE as well"};
      auto put = cluster.change("PUT", template_path(name),
                                {{"config", config}, {"workspaceId", part(*workspace, "id")}});
      if (!put)
        return put.error();
      now = part(*put, "template");
    } else if (!config.is_null()) {
      auto put = cluster.change("PATCH", template_path(name), config);
      if (!put)
        return put.error();
      now = part(*put, "template");
    }
    if (const auto to = given.text("--name"); given.has("--name") && to != name) {
      auto renamed = cluster.change("PATCH", "/api/v1/template/rename", {{"oldName", name}, {"newName", to}});
      if (!renamed)
        return renamed.error();
      now = part(*renamed, "template");
      name = to;
    }
    return deed{"changed template " + name, std::move(*now)};
  });
}

int template_delete(session& s, const arguments& given) {
  return act_on(s, template_columns, [&](client::server& cluster) -> result<deed> {
    const auto name = given.text("TEMPLATE");
    auto known = template_named(cluster, name);
    if (!known)
      return known.error();
    if (auto done = cluster.change("DELETE", template_path(name)); !done)
      return done.error();
    return deed{"deleted template " + name, std::move(*known)};
  });
}

// ---- models

int model_list(session& s, const arguments&) {
  return print_list(s, "/api/v1/models", "models", model_columns);
}

int model_describe(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto model = model_named(**cluster, given.text("MODEL"));
  auto versions = model ? versions_of(**cluster, *model) : result<value>(model.error());
  if (!versions)
    return s.fail(versions.error());
  auto columns = model_columns;
  columns.push_back({"DESCRIPTION", "description"});
  columns.push_back({"NOTES", "notes"});
  columns.push_back({"METADATA", "metadata", show_as::compact});
  columns.push_back({"WORKSPACE", "workspaceId"});
  columns.push_back({"CREATED", "creationTime", show_as::age});
  auto whole = *model;
  whole["modelVersions"] = *versions;
  if (const int code = s.print(show_one(whole, columns, s.output())); code != exit_done)
    return code;
  return print_below(s, "VERSIONS", *versions, version_columns);
}

int model_create(session& s, const arguments& given) {
  return act_on(s, model_columns, [&](client::server& cluster) -> result<deed> {
    auto body = texts_in(given, {{"--description", "description"}, {"--notes", "notes"}});
    body["name"] = given.text("NAME");
    if (auto fine = add_marks(body, {}, given); !fine)
      return fine.error();
    if (given.has("--workspace")) {
      auto workspace = workspace_named(cluster, given.text("--workspace"));
      if (!workspace)
        return workspace.error();
      body["workspaceId"] = part(*workspace, "id");
    }
    auto made = cluster.post("/api/v1/models", body);
    if (!made)
      return made.error();
    return deed{"model " + id_text(*made, "model.id"), part(*made, "model")};
  });
}

int model_set(session& s, const arguments& given) {
  if (auto fine = not_both(given, "--archive", "--unarchive"); !fine)
    return s.fail(fine.error());
  auto body = texts_in(given, {{"--name", "name"}, {"--description", "description"}, {"--notes", "notes"}});
  if (body.empty() && !changes_marks(given) && !given.has("--archive") && !given.has("--unarchive") &&
      !given.has("--workspace"))
    return s.fail({errc::invalid, "nothing is set\nhint: --name NAME, --description TEXT, --notes TEXT, "
                                  "--add-label LABEL, --remove-label LABEL, --metadata KEY=VALUE, "
                                  "--remove-metadata KEY, --workspace WORKSPACE, --archive, --unarchive"});
  return act_on(s, model_columns, [&](client::server& cluster) -> result<deed> {
    auto known = model_named(cluster, given.text("MODEL"));
    if (!known)
      return known.error();
    if (auto fine = add_marks(body, *known, given); !fine)
      return fine.error();
    value to;
    if (given.has("--workspace")) {
      auto workspace = workspace_named(cluster, given.text("--workspace"));
      if (!workspace)
        return workspace.error();
      to = part(*workspace, "id");
    }
    // An archived model accepts no change, so it is unarchived first and archived last.
    const auto path = path_of(*known);
    if (given.has("--unarchive"))
      if (auto done = cluster.post(path + "/unarchive"); !done)
        return done.error();
    if (!body.empty())
      if (auto done = cluster.change("PATCH", path, body); !done)
        return done.error();
    if (!to.is_null())
      if (auto done = cluster.post(path + "/move", {{"destinationWorkspaceId", to}}); !done)
        return done.error();
    if (given.has("--archive"))
      if (auto done = cluster.post(path + "/archive"); !done)
        return done.error();
    auto now = thing_at(cluster, path, "model");
    if (!now)
      return now.error();
    return deed{"changed model " + id_text(*known), std::move(*now)};
  });
}

int model_delete(session& s, const arguments& given) {
  if (!given.has("--yes"))
    return s.fail(
      {errc::invalid, "deletes a model with its versions; the checkpoints stay\nhint: give --yes"});
  return act_on(s, model_columns, [&](client::server& cluster) -> result<deed> {
    auto known = model_named(cluster, given.text("MODEL"));
    if (!known)
      return known.error();
    if (auto done = cluster.change("DELETE", path_of(*known)); !done)
      return done.error();
    return deed{"deleted model " + id_text(*known), std::move(*known)};
  });
}

int model_versions(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto model = model_named(**cluster, given.text("MODEL"));
  return model ? print_list(s, path_of(*model) + "/versions", "modelVersions", version_columns)
               : s.fail(model.error());
}

int model_register(session& s, const arguments& given) {
  return act_on(s, version_columns, [&](client::server& cluster) -> result<deed> {
    auto model = model_named(cluster, given.text("MODEL"));
    if (!model)
      return model.error();
    auto body = texts_in(given, {{"--name", "name"}, {"--comment", "comment"}, {"--notes", "notes"}});
    body["checkpointUuid"] = given.text("UUID");
    if (auto fine = add_marks(body, {}, given); !fine)
      return fine.error();
    auto made = cluster.post(path_of(*model) + "/versions", body);
    if (!made)
      return with_list(made.error(), "checkpoint");
    return deed{"version " + id_text(*made, "modelVersion.version"), part(*made, "modelVersion")};
  });
}

int model_set_version(session& s, const arguments& given) {
  auto version = version_in(given);
  if (!version)
    return s.fail(version.error());
  auto body = texts_in(given, {{"--name", "name"}, {"--comment", "comment"}, {"--notes", "notes"}});
  if (body.empty() && !changes_marks(given))
    return s.fail({errc::invalid, "nothing is set\nhint: --name NAME, --comment TEXT, --notes TEXT, "
                                  "--add-label LABEL, --remove-label LABEL, --metadata KEY=VALUE, "
                                  "--remove-metadata KEY"});
  return act_on(s, version_columns, [&](client::server& cluster) -> result<deed> {
    auto model = model_named(cluster, given.text("MODEL"));
    if (!model)
      return model.error();
    const auto path = path_of(*model) + "/versions/" + *version;
    auto now = version_at(cluster, path);
    if (!now)
      return now.error();
    if (auto fine = add_marks(body, *now, given); !fine)
      return fine.error();
    auto done = cluster.change("PATCH", path, body);
    if (!done)
      return done.error();
    return deed{"changed version " + *version, part(*done, "modelVersion")};
  });
}

int model_unregister(session& s, const arguments& given) {
  auto version = version_in(given);
  if (!version)
    return s.fail(version.error());
  return act_on(s, version_columns, [&](client::server& cluster) -> result<deed> {
    auto model = model_named(cluster, given.text("MODEL"));
    if (!model)
      return model.error();
    const auto path = path_of(*model) + "/versions/" + *version;
    auto known = version_at(cluster, path);
    if (!known)
      return known.error();
    if (auto done = cluster.change("DELETE", path); !done)
      return done.error();
    return deed{"unregistered version " + *version, std::move(*known)};
  });
}

} // namespace troupe::cli::verbs
