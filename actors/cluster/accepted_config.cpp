#include "actors/cluster/accepted_config.hpp"

#include "actors/experiment/experiment_settings.hpp"
#include "actors/journal/log_patterns.hpp"
#include "model/chosen_name.hpp"
#include "model/config/cluster_config.hpp"
#include "model/config/document.hpp"
#include "model/config/experiment_config.hpp"
#include "model/config/layers.hpp"
#include "model/config/secrets.hpp"
#include "searchers/searcher.hpp"

#include <algorithm>
#include <set>

namespace troupe {
namespace {

/// Makes a relative checkpoint folder absolute, as scripts and clients look into the folder themselves. It
/// lies beside the default folder, in the data directory.
value with_absolute_folder(value storage, const std::string& checkpoint_dir) {
  if (storage.is_object() && storage.value("type", value()) == "directory")
    if (auto path = storage.find("container_path"); path != storage.end() && path->is_string())
      if (const auto text = path->get<std::string>(); !text.starts_with('/'))
        *path = checkpoint_dir.substr(0, checkpoint_dir.rfind('/') + 1) + text;
  return storage;
}

value in_resources(const value& config, const char* key) {
  const auto resources = config.is_object() ? config.value("resources", value()) : value();
  return resources.is_object() ? resources.value(key, value()) : value();
}

/// The diagnostic without its line. The text of other people, and that of all layers together, may have
/// secrets, and nobody wrote the lines of the latter.
std::string without_text(config::diagnostic fault) {
  fault.line = fault.column = 0;
  return config::render(fault, "");
}

/// The diagnostic for the user who submitted `source` under the name `file`: with a line where it lies there.
std::string shown(const config::diagnostic& fault, const std::string& file, const std::string& source) {
  return fault.file == file ? config::render(fault, source) : without_text(fault);
}

/// The fault "PATH: MESSAGE\nhint: HINT" of a text, with its line and a caret; as it is where it names no
/// path.
std::string placed(const std::string& fault, const config::node& root, const std::string& file,
                   const std::string& text) {
  const auto colon = fault.find(": "), hint = std::min(fault.find("\nhint: "), fault.size());
  if (colon >= hint)
    return file + ": " + fault;
  const auto path = fault.substr(0, colon);
  const auto at = config::place_of(root, path);
  return config::render({file, at.line, at.column, path, fault.substr(colon + 2, hint - colon - 2),
                         hint == fault.size() ? std::string() : fault.substr(hint + 7), false},
                        text);
}

/// Entrypoint of an unmanaged experiment whose text has none. No task runs it.
constexpr const char* unmanaged_entrypoint = "unmanaged";

/// The pool that the text names, or else the template; empty where neither names one.
std::string named_pool(const value& text, const config_layers& below) {
  for (const auto* layer : {&text, &below.template_config})
    if (const auto named = in_resources(*layer, "resource_pool"); named.is_string() && named != "")
      return named.get<std::string>();
  return {};
}

/// The workspace's pool for an experiment that names no pool; empty where the experiment names one, or the
/// workspace has none.
std::string pool_of_workspace(const value& text, const config_layers& below, const value& cluster) {
  if (!named_pool(text, below).empty())
    return {};
  auto slots = in_resources(text, "slots_per_trial");
  if (slots.is_null())
    slots = in_resources(below.template_config, "slots_per_trial");
  const auto& pool = slots == 0 ? below.aux_pool : below.compute_pool;
  // A new cluster file may have dropped the pool of the workspace.
  return config::has_pool(cluster, pool) ? pool : std::string();
}

/// Labels as lists show them: each in one line and once, and none that is blank.
value in_lines(const value& labels) {
  value out = value::array();
  std::set<std::string> known;
  for (const auto& given : labels)
    if (auto label = in_one_line(given.is_string() ? given.get_ref<const std::string&>() : std::string());
        !is_blank(label) && known.insert(label).second)
      out.push_back(std::move(label));
  return out;
}

/// Finds the faults that show only when the searcher, the settings of tasks and the expressions for logs are
/// built, and completes the name, the labels and the folder of checkpoints.
result<void> finish(value& settings, const std::string& checkpoint_dir) {
  if (const auto given = settings.value("name", value()); given.is_string()) {
    auto name = in_one_line(given.get_ref<const std::string&>()); // docs/decisions/122
    if (is_blank(name))
      return error{errc::invalid, "name: must not be empty or blank\nhint: leave it out, and one is made"};
    settings["name"] = std::move(name);
  }
  if (const auto given = settings.find("labels"); given != settings.end() && given->is_array())
    *given = in_lines(*given);
  if (auto fine = check_log_policies(settings.value("log_policies", value())); !fine)
    return fine;
  if (auto works = searchers::make_searcher(settings.value("searcher", value::object()),
                                            settings.value("hyperparameters", value::object()), 0);
      !works)
    return error{errc::invalid, works.error().what};
  settings["checkpoint_storage"] =
    with_absolute_folder(settings.value("checkpoint_storage", value()), checkpoint_dir);
  if (auto works = experiment_settings_of({{}, settings, "", "", checkpoint_dir}); !works)
    return error{errc::invalid, works.error().what};
  return {};
}

} // namespace

result<void> check_no_mask(const value& settings, const value& text, const std::string& file) {
  const auto fine = config::check_no_mask(settings);
  if (fine)
    return fine;
  const auto& fault = fine.error().what;
  const auto source = text.is_string() ? text.get<std::string>() : to_json(text);
  const auto document = config::read_document(source, file);
  const bool is_own = config::part_at(document.root, fault.substr(0, fault.find(": "))) != nullptr;
  return is_own ? error{errc::invalid, placed(fault, document.root, file, source)} : fine;
}

result<value> continued_config(const value& before, const value& text, const std::string& checkpoint_dir,
                               const value& invariant) {
  constexpr auto file = "override config";
  const std::string source = text.is_string() ? text.get<std::string>() : to_json(text);
  const auto document = config::read_document(source, file);
  const auto given = config::to_value(document.root);
  if (given.is_object())
    for (const auto* fixed : {"workspace", "project"})
      if (given.contains(fixed) && given[fixed] != before.value(fixed, value()))
        return error{errc::invalid, std::string("'") + fixed +
                                      "' in override config cannot be specified\nhint: move the experiment"};
  auto kept = before;
  if (auto at = kept.find("resources"); at != kept.end() && at->is_object()) {
    at->erase("slots"); // an older build stored the slots of a template here
    // A user may have set `max_slots` below the slots of one trial, which a submission may not ask for.
    const auto slots = at->value("slots_per_trial", value(1)), most = at->value("max_slots", value());
    if (most.is_number_integer() && slots.is_number_integer() &&
        most.get<std::int64_t>() < slots.get<std::int64_t>())
      at->erase("max_slots");
  }
  constexpr auto kept_name = "configuration of the experiment";
  auto both = config::merge_as("experiment", source, file, to_json(kept), kept_name);
  if (!both.ok())
    return error{errc::invalid, shown(both.faults.front(), file, source)};
  // A mask stands for the secret that the experiment has already.
  config::restore_secrets(both.config, before);
  if (auto fine = config::check_no_mask(both.config); !fine)
    return fine.error();
  if (!invariant.is_null()) {
    both =
      config::merge_as("experiment", to_json(invariant), config::policy_layer, to_json(both.config), file);
    if (!both.ok())
      return error{errc::invalid, without_text(both.faults.front())};
  }
  const auto name_in = [](const value& config) {
    return config.value(value::json_pointer("/searcher/name"), value());
  };
  if (const auto name = name_in(both.config); name != name_in(before))
    return error{errc::invalid, "override config must have single searcher type got '" +
                                  (name.is_string() ? name.get<std::string>() : to_json(name)) + "' instead"};
  const auto text_of_both = to_json(both.config);
  auto checked = config::load_experiment(text_of_both, file, config::level::complete, {});
  if (!checked.ok()) {
    config::place_faults(checked.faults,
                         {{config::policy_layer, config::to_node(invariant)},
                          {file, document.root},
                          {kept_name, config::to_node(kept)}},
                         1);
    return error{errc::invalid, shown(checked.faults.front(), file, source)};
  }
  if (auto fine = finish(checked.config, checkpoint_dir); !fine)
    return fine.error();
  return std::move(checked.config);
}

value hparams_of_one(const value& config, std::uint64_t seed) {
  const auto searcher = config.value("searcher", value::object());
  if (searcher.value("name", value()) != "single")
    return {};
  auto search = searchers::make_searcher(searcher, config.value("hyperparameters", value::object()), seed);
  if (!search)
    return {};
  if (auto begun = (*search)->apply(searchers::search_started{}))
    for (const auto& action : *begun)
      if (const auto* made = std::get_if<searchers::create_trial>(&action))
        return made->hparams;
  return {};
}

result<accepted_config> accept_config(const value& text, const std::string& file,
                                      const std::string& checkpoint_dir, const value& cluster,
                                      const config_layers& layers) {
  auto below = layers;
  if (below.unmanaged) {
    if (!below.template_config.is_object())
      below.template_config = value::object();
    below.template_config.emplace("entrypoint", unmanaged_entrypoint);
  }
  std::string source = text.is_string() ? text.get<std::string>() : to_json(text);
  config::surroundings around;
  around.storage_to_come = below.only_place;
  around.unmanaged = below.unmanaged;
  around.checkpoint_storage = config::default_storage(cluster);
  if (around.checkpoint_storage.is_null())
    around.checkpoint_storage = {{"type", "directory"}, {"container_path", checkpoint_dir}};
  if (!below.invariant.is_null()) {
    const auto policy =
      config::check_as("experiment", to_json(below.invariant), config::policy_layer, config::level::sane);
    if (!policy.ok())
      return error{errc::invalid, without_text(policy.faults.front())};
    around.policy = below.invariant;
  }
  const auto document = config::read_document(source, file);
  const auto submitted = config::to_value(document.root);
  const auto named = named_pool(submitted, below);
  auto pool = config::pool_of_experiment(cluster, {{"resources", {{"resource_pool", named}}}}, below.pools);
  if (const auto usual = pool_of_workspace(submitted, below, cluster); !usual.empty()) {
    pool = usual;
    if (!below.template_config.is_object())
      below.template_config = value::object();
    below.template_config["resources"]["resource_pool"] = usual;
  }
  if (!pool && !named.empty() && !below.only_place) {
    const bool own = in_resources(submitted, "resource_pool") == named;
    return error{errc::invalid, own ? placed(pool.error().what, document.root, file, source)
                                    : file + ": " + pool.error().what};
  }
  if (!pool) // looked at again below, as a policy may give another pool
    pool = named.empty() ? config::default_pool(cluster) : named;
  around.workspace_checkpoint_storage = below.workspace_checkpoint_storage;
  around.task_container_defaults = config::task_defaults(cluster, *pool);
  around.defaults = config::experiment_defaults(cluster, *pool);
  if (!below.template_config.is_null())
    around.template_text = to_json(below.template_config);
  if (!below.template_name.empty())
    around.template_name = "template '" + below.template_name + "'";
  auto checked = config::load_experiment(source, file, config::level::complete, around);
  if (!checked.ok()) {
    std::string all;
    for (const auto& fault : checked.faults)
      all += shown(fault, file, source) + "\n";
    return error{errc::invalid, all};
  }
  if (below.only_place)
    return accepted_config{std::move(checked.config), std::move(source)};
  // A policy wins over the pool that was looked for above.
  if (auto of_all = config::pool_of_experiment(cluster, checked.config, below.pools); !of_all) {
    const bool of_policy = !in_resources(below.invariant, "resource_pool").is_null();
    return error{errc::invalid, (of_policy ? config::policy_layer : file) + ": " + of_all.error().what};
  }
  if (auto fine = finish(checked.config, checkpoint_dir); !fine)
    return fine.error();
  return accepted_config{std::move(checked.config), std::move(source)};
}

} // namespace troupe
