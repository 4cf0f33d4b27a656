// Rows of the verb table: workspaces, projects, models, templates.

#include "runtime/cli/house_verbs.hpp"
#include "runtime/cli/rows.hpp"

namespace troupe::cli::rows {
namespace {

using enum option_kind;

constexpr option_spec archive{"--archive", "", "Hide from lists, and forbid changes", toggle};
constexpr option_spec unarchive{"--unarchive", "", "Show in lists again, and allow changes", toggle};
constexpr option_spec new_name_flag{"--name", "NAME", "New name", text};
constexpr option_spec description{"--description", "TEXT", "Purpose, text for people", text};
constexpr option_spec notes{"--notes", "TEXT", "Text of any length", text};
constexpr option_spec comment{"--comment", "TEXT", "Comment on the version", text};
constexpr option_spec label{"--label", "LABEL", "Label; may be given several times", list};
constexpr option_spec add_label{"--add-label", "LABEL", "Label to add; may be given several times", list};
constexpr option_spec remove_label{"--remove-label", "LABEL",
                                   "Label to take away; may be given several times", list};
constexpr option_spec metadata{"--metadata", "KEY=VALUE",
                               "One value of the metadata, as YAML; may be given several times", list};
constexpr option_spec remove_metadata{"--remove-metadata", "KEY",
                                      "Key of the metadata to take away; may be given several times", list};

// ---- workspaces and projects

constexpr option_spec default_pool{"--default-pool", "POOL",
                                   "Pool of work that names no pool; `none`: the cluster's default", text};
constexpr option_spec aux_pool{
  "--aux-pool", "POOL", "Pool of tasks without slots that name no pool; `none`: the cluster's default", text};
constexpr option_spec checkpoint_storage{
  "--checkpoint-storage", "FILE",
  "Section checkpoint_storage of the workspace's experiments, YAML or JSON; `none`: the cluster's", text};
constexpr option_spec workspace_create_flags[] = {default_pool, aux_pool, account, checkpoint_storage};
constexpr option_spec workspace_set_flags[] = {
  new_name_flag,
  default_pool,
  aux_pool,
  account,
  checkpoint_storage,
  archive,
  unarchive,
  {"--pin", "", "Put the workspace among your favourites", toggle},
  {"--unpin", "", "Take the workspace from your favourites", toggle},
};
constexpr option_spec project_key{"--key", "KEY", "Letters and digits before the numbers of runs, at most 5",
                                  text};
constexpr option_spec project_create_flags[] = {description, project_key};
constexpr option_spec project_set_flags[] = {
  new_name_flag,
  description,
  project_key,
  {"--note", "NAME=TEXT", "Note to add; may be given several times", list},
  {"--clear-notes", "", "Take all earlier notes away", toggle},
  {"--workspace", "WORKSPACE", "Name or number of the new workspace", text},
  archive,
  unarchive,
};
constexpr argument_spec one_workspace[] = {{"WORKSPACE", "Name or number of the workspace"}};
constexpr argument_spec workspace_and_name[] = {{"WORKSPACE", "Name or number of the workspace"},
                                                {"NAME", "Name of the project"}};
constexpr argument_spec one_project[] = {{"PROJECT", "Number of the project, or WORKSPACE/NAME"}};

// ---- models and templates

constexpr option_spec belongs_to{"--workspace", "WORKSPACE",
                                 "Name or number of the workspace (default: Uncategorized)", text};
constexpr option_spec moves_to{"--workspace", "WORKSPACE", "Name or number of the new workspace", text};
constexpr option_spec model_create_flags[] = {description, notes, label, metadata, belongs_to};
constexpr option_spec model_set_flags[] = {new_name_flag, description,     notes,    add_label, remove_label,
                                           metadata,      remove_metadata, moves_to, archive,   unarchive};
constexpr option_spec register_flags[] = {
  {"--name", "NAME", "Name of the version", text}, comment, notes, label, metadata};
constexpr option_spec version_set_flags[] = {new_name_flag, comment,  notes,          add_label,
                                             remove_label,  metadata, remove_metadata};
constexpr argument_spec one_model[] = {{"MODEL", "Name or number of the model"}};
constexpr argument_spec model_and_checkpoint[] = {{"MODEL", "Name or number of the model"},
                                                  {"UUID", "UUID of a checkpoint that is complete"}};
constexpr argument_spec model_and_version[] = {{"MODEL", "Name or number of the model"},
                                               {"VERSION", "Number of the version"}};
constexpr option_spec template_create_flags[] = {belongs_to};
constexpr option_spec template_set_flags[] = {
  {"--config-file", "FILE", "New configuration, YAML or JSON; - means standard input", text},
  new_name_flag,
  moves_to,
};
constexpr argument_spec one_template[] = {{"TEMPLATE", "Name of the template"}};
constexpr argument_spec name_and_config[] = {
  {"NAME", "Name of the template"},
  {"FILE", "Part of a configuration, YAML or JSON; - means standard input"}};

constexpr verb_spec table[] = {
  {"workspace list", "List the workspaces", no_words, no_options, true, true, "troupe workspace list",
   "troupe project list", verbs::workspace_list},
  {"workspace describe", "Show one workspace with its projects", one_workspace, no_options, true, true,
   "troupe workspace describe vision", "troupe project list", verbs::workspace_describe},
  {"workspace create", "Create a workspace", new_name, workspace_create_flags, true, true,
   "troupe workspace create vision\ntroupe workspace create vision --default-pool gpu -o json",
   "troupe project create", verbs::workspace_create},
  {"workspace set", "Change, archive or pin a workspace", one_workspace, workspace_set_flags, true, true,
   "troupe workspace set vision --name sight --default-pool gpu\n"
   "troupe workspace set vision --checkpoint-storage storage.yaml\ntroupe workspace set vision --archive",
   "troupe workspace describe", verbs::workspace_set},
  {"workspace delete", "Delete a workspace with all its projects and experiments", one_workspace, yes_flags,
   true, true, "troupe workspace delete vision --yes", "troupe experiment move", verbs::workspace_delete},
  {"project list", "List the projects of a workspace, or of all", no_words, workspace_flags, true, true,
   "troupe project list --workspace vision", "troupe workspace list", verbs::project_list},
  {"project describe", "Show one project with its notes", one_project, no_options, true, true,
   "troupe project describe vision/cats", "troupe project list", verbs::project_describe},
  {"project create", "Create a project", workspace_and_name, project_create_flags, true, true,
   "troupe project create vision cats --description 'all of them'", "troupe experiment move",
   verbs::project_create},
  {"project set", "Change, move or archive a project", one_project, project_set_flags, true, true,
   "troupe project set vision/cats --name tigers --key TIG\n"
   "troupe project set vision/cats --note 'plan=more layers' --workspace sight",
   "troupe project describe", verbs::project_set},
  {"project delete", "Delete a project with all its experiments", one_project, yes_flags, true, true,
   "troupe project delete vision/cats --yes", "troupe experiment move", verbs::project_delete},
  {"model list", "List the models of the registry", no_words, no_options, true, true, "troupe model list",
   "troupe model versions", verbs::model_list},
  {"model describe", "Show one model with its versions", one_model, no_options, true, true,
   "troupe model describe digits", "troupe model versions", verbs::model_describe},
  {"model create", "Add a model to the registry", new_name, model_create_flags, true, true,
   "troupe model create digits --description 'reads digits' --label vision --metadata accuracy=0.98",
   "troupe model register", verbs::model_create},
  {"model set", "Change, move or archive a model", one_model, model_set_flags, true, true,
   "troupe model set digits --add-label good --metadata accuracy=0.99\ntroupe model set digits --archive",
   "troupe model set-version", verbs::model_set},
  {"model delete", "Delete a model with its versions; the checkpoints stay", one_model, yes_flags, true, true,
   "troupe model delete digits --yes", "troupe model unregister", verbs::model_delete},
  {"model versions", "List the versions of a model", one_model, no_options, true, true,
   "troupe model versions digits", "troupe model register", verbs::model_versions},
  {"model register", "Register a checkpoint as the next version of a model", model_and_checkpoint,
   register_flags, true, true, "troupe model register digits 1f3a... --comment 'with more layers'",
   "troupe checkpoint list", verbs::model_register},
  {"model set-version", "Change what is said of a version", model_and_version, version_set_flags, true, true,
   "troupe model set-version digits 2 --comment 'in production' --add-label live", "troupe model versions",
   verbs::model_set_version},
  {"model unregister", "Delete a version of a model; the checkpoint stays", model_and_version, no_options,
   true, true, "troupe model unregister digits 2", "troupe model versions", verbs::model_unregister},
  {"template list", "List the templates of configurations", no_words, no_options, true, true,
   "troupe template list", "troupe template describe", verbs::template_list},
  {"template describe", "Show one template with its configuration", one_template, no_options, true, true,
   "troupe template describe small", "troupe template list", verbs::template_describe},
  {"template create", "Create a template of configurations", name_and_config, template_create_flags, true,
   true, "troupe template create small small.yaml", "troupe template set", verbs::template_create},
  {"template set", "Change, rename or move a template", one_template, template_set_flags, true, true,
   "troupe template set small --config-file small.yaml\ntroupe template set small --name tiny",
   "troupe template describe", verbs::template_set},
  {"template delete", "Delete a template", one_template, no_options, true, true,
   "troupe template delete small", "troupe template list", verbs::template_delete},
};

} // namespace

std::span<const verb_spec> of_places() { return table; }

} // namespace troupe::cli::rows
