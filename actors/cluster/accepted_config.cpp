#include "actors/cluster/accepted_config.hpp"

#include "actors/experiment/experiment_settings.hpp"
#include "model/config/cluster_config.hpp"
#include "model/config/document.hpp"
#include "model/config/experiment_config.hpp"
#include "searchers/searcher.hpp"

namespace troupe {
namespace {

/// Scripts and clients look into the folder themselves: a relative one lies in the data directory, beside the
/// default one.
value with_absolute_folder(value storage, const std::string& checkpoint_dir) {
  if (storage.is_object() && storage.value("type", value()) == "directory")
    if (auto path = storage.find("container_path"); path != storage.end() && path->is_string())
      if (const auto text = path->get<std::string>(); !text.starts_with('/'))
        *path = checkpoint_dir.substr(0, checkpoint_dir.rfind('/') + 1) + text;
  return storage;
}

} // namespace

result<accepted_config> accept_config(const value& text, const std::string& file,
                                      const std::string& checkpoint_dir, const value& cluster,
                                      const config_layers& below) {
  std::string source = text.is_string() ? text.get<std::string>() : to_json(text);
  config::surroundings around;
  around.checkpoint_storage = config::default_storage(cluster);
  if (around.checkpoint_storage.is_null())
    around.checkpoint_storage = {{"type", "directory"}, {"container_path", checkpoint_dir}};
  auto pool = config::pool_of_experiment(cluster, config::to_value(config::read_document(source, file).root));
  if (!pool)
    return error{errc::invalid, file + ": " + pool.error().what};
  around.workspace_checkpoint_storage = below.workspace_checkpoint_storage;
  auto defaults = config::experiment_defaults(cluster, *pool);
  if (!below.template_config.is_null() && !defaults.is_null()) {
    auto both = config::merge_as("experiment", to_json(below.template_config), "template", to_json(defaults),
                                 "defaults of the cluster");
    if (!both.ok())
      return error{errc::invalid, config::render(both.faults.front(), to_json(below.template_config))};
    around.template_text = to_json(both.config);
  } else if (!below.template_config.is_null())
    around.template_text = to_json(below.template_config);
  else if (!defaults.is_null())
    around.template_text = to_json(defaults);
  auto checked = config::load_experiment(source, file, config::level::complete, around);
  if (!checked.ok()) {
    std::string all;
    for (const auto& fault : checked.faults)
      all += config::render(fault, source) + "\n";
    return error{errc::invalid, all};
  }
  auto& settings = checked.config;
  if (auto works = searchers::make_searcher(settings.value("searcher", value::object()),
                                            settings.value("hyperparameters", value::object()), 0);
      !works)
    return error{errc::invalid, works.error().what};
  settings["checkpoint_storage"] =
    with_absolute_folder(settings.value("checkpoint_storage", value()), checkpoint_dir);
  if (auto works = experiment_settings_of({{}, settings, "", "", checkpoint_dir}); !works)
    return error{errc::invalid, works.error().what};
  return accepted_config{std::move(settings), std::move(source)};
}

} // namespace troupe
