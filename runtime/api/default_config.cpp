#include "runtime/api/default_config.hpp"

#include "model/config/cluster_config.hpp"
#include "model/config/experiment_config.hpp"
#include "model/config/layers.hpp"
#include "model/config/secrets.hpp"

#include <algorithm>

namespace troupe::api {
namespace {

/// Stands for the folder that the master uses for checkpoints, until that is known.
constexpr const char* folder_of_master = "/the/folder/of/the/master";

result<value> storage_of_workspace(const experiment_row& of, const storage::reader& storage) {
  auto projects = storage.projects();
  auto workspaces = storage.workspaces();
  if (!projects)
    return projects.error();
  if (!workspaces)
    return workspaces.error();
  for (const auto& project : *projects)
    for (const auto& workspace : *workspaces)
      if (project.id == of.project && workspace.id == project.workspace)
        return workspace.checkpoint_storage;
  return value();
}

} // namespace

result<value> default_config(const experiment_row& of, const storage::reader& storage) {
  const auto own = of.config->is_object() ? of.config.get() : value::object();
  auto known = storage.configuration();
  if (!known)
    return known.error();
  const auto cluster = *known ? (*known)->configuration : value();
  auto of_workspace = storage_of_workspace(of, storage);
  if (!of_workspace)
    return of_workspace.error();
  auto pool = config::pool_of_experiment(cluster, own);
  const auto layer = config::experiment_defaults(cluster, pool ? *pool : config::default_pool(cluster));
  const auto searcher = own.value(value::json_pointer("/searcher/name"), value());
  value least = value::object();
  if (!searcher.is_null())
    least["searcher"]["name"] = searcher;
  if (layer.is_object()) {
    auto both = config::merge_as("experiment", to_json(least), "<defaults>", to_json(layer), "<cluster>");
    if (!both.ok())
      return error{errc::internal, config::render(both.faults.front(), "")};
    least = std::move(both.config);
  }
  if (const auto tasks = config::task_defaults(cluster, pool ? *pool : config::default_pool(cluster));
      tasks.is_object()) {
    const auto slots = own.value(value::json_pointer("/resources/slots_per_trial"), value(1));
    const auto below =
      config::as_experiment_layer(tasks, slots.is_number_integer() ? slots.get<std::int64_t>() : 1);
    auto both =
      config::merge_as("experiment", to_json(least), "<defaults>", to_json(below), "<task defaults>");
    if (!both.ok())
      return error{errc::internal, config::render(both.faults.front(), "")};
    least = std::move(both.config);
  }
  const auto is_left = [](const value& config) {
    return config.value(value::json_pointer("/checkpoint_storage/type"), value()).is_null();
  };
  const auto of_cluster = config::default_storage(cluster);
  const bool left_to_master = is_left(least) && !of_workspace->is_object() && !of_cluster.is_object();
  if (left_to_master)
    least["checkpoint_storage"].update({{"type", "directory"}, {"container_path", folder_of_master}});
  else if (is_left(least))
    least["checkpoint_storage"] = of_workspace->is_object() ? *of_workspace : of_cluster;
  auto made = config::complete_as("experiment", to_json(least), "<defaults>", config::level::sane);
  if (!made.ok())
    return error{errc::internal, config::render(made.faults.front(), "")};
  auto& out = made.config;
  for (const char* given : {"/name", "/searcher/name", "/reproducibility/experiment_seed"})
    if (const value::json_pointer at(given); out.contains(at))
      out[at] = nullptr;
  out = config::without_secrets(std::move(out));
  if (!left_to_master)
    return std::move(out);
  // The master's own folder is known from an experiment whose configuration left the folder to the master.
  const auto text = config::load_experiment(of.source, "<text>", config::level::sane);
  out["checkpoint_storage"]["container_path"] =
    text.config.is_object() && is_left(text.config)
      ? own.value(value::json_pointer("/checkpoint_storage/container_path"), value())
      : value();
  return std::move(out);
}

} // namespace troupe::api
