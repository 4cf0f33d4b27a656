// Rows of the verb table: workspaces, projects, models, templates.

#include "runtime/cli/house_verbs.hpp"
#include "runtime/cli/rows.hpp"

namespace troupe::cli::rows {
namespace {

using enum option_kind;

constexpr option_spec project_flags[] = {{"--description", "TEXT", "What it is for", text}};
constexpr argument_spec one_workspace[] = {{"WORKSPACE", "Name or number of the workspace"}};
constexpr argument_spec workspace_and_name[] = {{"WORKSPACE", "Name or number of the workspace"},
                                                {"NAME", "Its name"}};
constexpr argument_spec one_project[] = {{"PROJECT", "Number of the project, or WORKSPACE/NAME"}};

constexpr verb_spec table[] = {
  {"workspace list",
   "List the workspaces",
   {},
   {},
   true,
   true,
   "troupe workspace list",
   "troupe project list",
   verbs::workspace_list},
  {"workspace create",
   "Create a workspace",
   new_name,
   {},
   false,
   true,
   "troupe workspace create vision",
   "troupe project create",
   verbs::workspace_create},
  {"workspace delete", "Delete a workspace with all its projects and experiments", one_workspace, yes_flags,
   false, true, "troupe workspace delete vision --yes", "troupe experiment move", verbs::workspace_delete},
  {"project list",
   "List the projects of a workspace, or of all",
   {},
   workspace_flags,
   true,
   true,
   "troupe project list --workspace vision",
   "troupe workspace list",
   verbs::project_list},
  {"project create", "Create a project", workspace_and_name, project_flags, false, true,
   "troupe project create vision cats", "troupe experiment move", verbs::project_create},
  {"project delete", "Delete a project with all its experiments", one_project, yes_flags, false, true,
   "troupe project delete vision/cats --yes", "troupe experiment move", verbs::project_delete},
  {"model list",
   "List the models of the registry",
   {},
   {},
   true,
   true,
   "troupe model list",
   "troupe checkpoint list",
   verbs::model_list},
  {"template list",
   "List the templates of configurations",
   {},
   {},
   true,
   true,
   "troupe template list",
   "",
   verbs::template_list},
};

} // namespace

std::span<const verb_spec> of_places() { return table; }

} // namespace troupe::cli::rows
