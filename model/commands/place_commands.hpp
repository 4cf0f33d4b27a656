#pragma once
// Commands about places and the registry: workspaces, projects, descriptions of experiments, templates,
// models. A change names only what becomes different. The route, which knows the owner, checks the caller's
// rights.

#include "model/commands/commands.hpp"

namespace troupe::commands {

struct workspace_wish {
  std::optional<std::string> name, compute_pool, aux_pool;
  std::optional<bool> archived;
  std::optional<host_account> runs_as;
  std::optional<value> checkpoint_storage;
};
template <class T>
constexpr auto workspace_fields() {
  return std::tuple{maybe("name", &T::name, "1 to 80 characters, unlike any other in any case"),
                    maybe("compute_pool", &T::compute_pool, "where tasks with slots go that name no pool"),
                    maybe("aux_pool", &T::aux_pool, "where tasks without slots go that name no pool"),
                    maybe("archived", &T::archived, "nothing in it can be changed"),
                    maybe("runs_as", &T::runs_as, "account of the hosts for tasks that are started there"),
                    maybe("checkpoint_storage", &T::checkpoint_storage,
                          "section of a configuration; an empty one: none of its own")};
}
struct workspace_create : workspace_wish {
  static constexpr auto fields() { return workspace_fields<workspace_create>(); }
  static constexpr about is{
    "workspace.create",
    cluster,
    {action::create, thing::workspace},
    repeat::again,
    "Creates a workspace, which its creator has pinned; `conflict` where the name is taken.",
    "{id}"};
};
struct workspace_change : workspace_wish {
  workspace_id id;
  template <class t = workspace_change>
  static constexpr auto fields() {
    return std::tuple_cat(std::tuple{need("id", &t::id, "number of the workspace")}, workspace_fields<t>());
  }
  static constexpr about is{"workspace.change",
                            cluster,
                            {action::change, thing::workspace},
                            repeat::safe,
                            "Changes a workspace. That of number 1 is never changed."};
};
struct workspace_pin {
  workspace_id id;
  bool on = true;
  template <class t = workspace_pin>
  static constexpr auto fields() {
    return std::tuple{need("id", &t::id, "number of the workspace"),
                      maybe("on", &t::on, "false: no longer among the caller's favourites")};
  }
  static constexpr about is{"workspace.pin",
                            cluster,
                            {action::view, thing::workspace},
                            repeat::safe,
                            "Puts a workspace among the caller's favourites."};
};
struct workspace_remove {
  workspace_id id;
  template <class t = workspace_remove>
  static constexpr auto fields() {
    return std::tuple{need("id", &t::id, "number of the workspace")};
  }
  static constexpr about is{
    "workspace.remove",
    cluster,
    {action::remove, thing::workspace},
    repeat::safe,
    "Deletes a workspace with all it holds, experiments behind the answer; `conflict` while it owns models.",
    "{completed}"};
};

struct note {
  std::string name, contents;
  template <class t = note>
  static constexpr auto fields() {
    return std::tuple{maybe("name", &t::name, "heading"), maybe("contents", &t::contents, "text")};
  }
};
struct project_wish {
  std::optional<std::string> name, key, description;
  std::optional<bool> archived;
  std::optional<std::vector<note>> notes;
};
template <class T>
constexpr auto project_fields() {
  return std::tuple{maybe("name", &T::name, "1 to 80 characters, unlike any other of the workspace"),
                    maybe("key", &T::key, "1 to 5 letters and digits, unique; missing: made from the name"),
                    maybe("description", &T::description, "what it is for"),
                    maybe("archived", &T::archived, "its experiments are hidden"),
                    maybe("notes", &T::notes, "all of them")};
}
struct project_create : project_wish {
  workspace_id workspace;
  template <class t = project_create>
  static constexpr auto fields() {
    return std::tuple_cat(std::tuple{need("workspace", &t::workspace, "where it is")}, project_fields<t>());
  }
  static constexpr about is{"project.create",
                            cluster,
                            {action::create, thing::project},
                            repeat::again,
                            "Creates a project; `conflict` where the name or the key is taken.",
                            "{id}"};
};
struct project_change : project_wish {
  project_id id;
  std::optional<workspace_id> workspace;
  std::optional<std::vector<note>> add_notes;
  template <class t = project_change>
  static constexpr auto fields() {
    return std::tuple_cat(std::tuple{need("id", &t::id, "number of the project"),
                                     maybe("workspace", &t::workspace, "where it is to be"),
                                     maybe("add_notes", &t::add_notes, "beside those that it has")},
                          project_fields<t>());
  }
  static constexpr about is{"project.change",
                            cluster,
                            {action::change, thing::project},
                            repeat::safe,
                            "Changes or moves a project. That of number 1 is never changed."};
};
struct project_remove {
  project_id id;
  template <class t = project_remove>
  static constexpr auto fields() {
    return std::tuple{need("id", &t::id, "number of the project")};
  }
  static constexpr about is{"project.remove",
                            cluster,
                            {action::remove, thing::project},
                            repeat::safe,
                            "Deletes a project with its experiments, these behind the answer.",
                            "{completed}"};
};

struct experiment_describe {
  experiment_id id;
  std::optional<std::string> name, description, notes;
  std::optional<std::vector<std::string>> labels, add_labels, remove_labels;
  std::optional<bool> archived;
  std::optional<std::int64_t> save_experiment_best, save_trial_best, save_trial_latest;
  template <class t = experiment_describe>
  static constexpr auto fields() {
    return std::tuple{
      need("id", &t::id, "number of the experiment"),
      maybe("name", &t::name, "not blank"),
      maybe("description", &t::description, "what it is for"),
      maybe("notes", &t::notes, "text of any length"),
      maybe("labels", &t::labels, "all of them; one that comes twice is kept once"),
      maybe("add_labels", &t::add_labels, "beside those that it has"),
      maybe("remove_labels", &t::remove_labels, "out of those that it has"),
      maybe("archived", &t::archived, "out of lists; only of one that has ended"),
      maybe("save_experiment_best", &t::save_experiment_best, "checkpoints that are kept: the best of all")
        .between(0, 1e9),
      maybe("save_trial_best", &t::save_trial_best, "the best of each trial").between(0, 1e9),
      maybe("save_trial_latest", &t::save_trial_latest, "the newest of each trial").between(0, 1e9)};
  }
  static constexpr about is{"experiment.describe",
                            cluster,
                            {action::change, thing::experiment},
                            repeat::safe,
                            "Changes what people say of an experiment, or archives it."};
};
struct experiment_move {
  experiment_id id;
  project_id project;
  template <class t = experiment_move>
  static constexpr auto fields() {
    return std::tuple{need("id", &t::id, "number of the experiment"),
                      need("project", &t::project, "where it is to be")};
  }
  static constexpr about is{"experiment.move",
                            cluster,
                            {action::move, thing::experiment},
                            repeat::safe,
                            "Moves an experiment to another project; `invalid` from or to what is archived."};
};

// ---- templates and the registry of models

struct template_put {
  std::string name;
  std::optional<workspace_id> workspace;
  value config = value::object();
  bool fresh = false, known = false;
  template <class t = template_put>
  static constexpr auto fields() {
    return std::tuple{need("name", &t::name, "unique in the cluster"),
                      maybe("workspace", &t::workspace, "where it belongs; a new one's default is 1"),
                      need("config", &t::config, "section of a configuration").an_object(),
                      maybe("fresh", &t::fresh, "`conflict` where there is one of that name"),
                      maybe("known", &t::known, "`not_found` where there is none")};
  }
  static constexpr about is{"template.put",
                            cluster,
                            {action::change, thing::config_template},
                            repeat::safe,
                            "Creates or replaces a template; it is checked where it is used."};
};
struct template_rename {
  std::string name, to;
  template <class t = template_rename>
  static constexpr auto fields() {
    return std::tuple{need("name", &t::name, "the template"), need("to", &t::to, "unique in the cluster")};
  }
  static constexpr about is{"template.rename",
                            cluster,
                            {action::change, thing::config_template},
                            repeat::again,
                            "Gives a template another name."};
};
struct template_remove {
  std::string name;
  static constexpr auto fields() { return std::tuple{need("name", &template_remove::name, "the template")}; }
  static constexpr about is{"template.remove",
                            cluster,
                            {action::change, thing::config_template},
                            repeat::safe,
                            "Deletes a template."};
};

struct model_wish {
  std::optional<std::string> name, description, notes;
  std::optional<std::vector<std::string>> labels;
  std::optional<value> metadata;
  std::optional<workspace_id> workspace;
  std::optional<bool> archived;
};
template <class T>
constexpr auto model_fields() {
  return std::tuple{maybe("name", &T::name, "unique; no slashes, not only digits"),
                    maybe("description", &T::description, "what it is"),
                    maybe("notes", &T::notes, "text of any length"),
                    maybe("labels", &T::labels, "all of them"),
                    maybe("metadata", &T::metadata, "an object"),
                    maybe("workspace", &T::workspace, "where it belongs; a new one's default is 1"),
                    maybe("archived", &T::archived, "neither it nor its versions can be changed")};
}
struct model_create : model_wish {
  static constexpr auto fields() { return model_fields<model_create>(); }
  static constexpr about is{"model.create",
                            cluster,
                            {action::create, thing::model},
                            repeat::again,
                            "Adds a model to the registry; `conflict` where the name is taken.",
                            "{id}"};
};
struct model_change : model_wish {
  model_id id;
  template <class t = model_change>
  static constexpr auto fields() {
    return std::tuple_cat(std::tuple{need("id", &t::id, "number of the model")}, model_fields<t>());
  }
  static constexpr about is{"model.change",
                            cluster,
                            {action::change, thing::model},
                            repeat::safe,
                            "Changes, moves or archives a model."};
};
struct model_remove {
  model_id id;
  static constexpr auto fields() { return std::tuple{need("id", &model_remove::id, "number of the model")}; }
  static constexpr about is{"model.remove",
                            cluster,
                            {action::remove, thing::model},
                            repeat::safe,
                            "Deletes a model with its versions; the checkpoints stay."};
};
struct version_wish {
  model_id model;
  std::optional<std::string> name, comment, notes;
  std::optional<std::vector<std::string>> labels;
  std::optional<value> metadata;
};
template <class T>
constexpr auto version_fields() {
  return std::tuple{field<T, model_id>({"model", "number of the model", true}, &T::model),
                    maybe("name", &T::name, "its name"),
                    maybe("comment", &T::comment, "what it is"),
                    maybe("notes", &T::notes, "text of any length"),
                    maybe("labels", &T::labels, "all of them"),
                    maybe("metadata", &T::metadata, "an object")};
}
struct version_create : version_wish {
  std::string checkpoint;
  template <class t = version_create>
  static constexpr auto fields() {
    return std::tuple_cat(version_fields<t>(),
                          std::tuple{need("checkpoint", &t::checkpoint, "uuid of one that is whole")});
  }
  static constexpr about is{"model.version.create",
                            cluster,
                            {action::change, thing::model},
                            repeat::again,
                            "Registers a checkpoint as the next version of a model.",
                            "{version}"};
};
struct version_change : version_wish {
  std::uint64_t version = 0;
  template <class t = version_change>
  static constexpr auto fields() {
    return std::tuple_cat(version_fields<t>(), std::tuple{need("version", &t::version, "its number")});
  }
  static constexpr about is{"model.version.change",
                            cluster,
                            {action::change, thing::model},
                            repeat::safe,
                            "Changes a version of a model."};
};
struct version_remove {
  model_id model;
  std::uint64_t version = 0;
  template <class t = version_remove>
  static constexpr auto fields() {
    return std::tuple{need("model", &t::model, "number of the model"),
                      need("version", &t::version, "its number")};
  }
  static constexpr about is{"model.version.remove",
                            cluster,
                            {action::remove, thing::model},
                            repeat::safe,
                            "Deletes a version of a model."};
};

} // namespace troupe::commands
