#include "model/config/experiment_config.hpp"

#include "model/config/check.hpp"
#include "model/config/complete.hpp"
#include "model/config/layers.hpp"
#include "model/config/made_up_name.hpp"
#include "model/config/merge.hpp"
#include "model/rng.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::config {
namespace {

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = text.size();
  for (std::size_t i = 0; i < text.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, std::min<std::size_t>(8, text.size() - i));
    hash = mix64(hash ^ word);
  }
  return hash;
}

std::uint32_t seed_of(std::string_view text) { return static_cast<std::uint32_t>(hash_of(text) >> 32); }

constexpr const char* defaults_name = "defaults of the cluster";

/// A text that was read, checked at the sane level and brought into normal form.
struct layer {
  node root;
  value normal; ///< the configuration without the keys that have faults
  std::vector<diagnostic> faults;
  std::vector<std::string> faulty; ///< keys with faults, by path
  bool usable = false;             ///< false where only its faults can be reported
};

/// Drops the parts with faults, so that what the rest lacks can be reported in the same run. A fault of the
/// whole leaves nothing.
void drop_faulty(layer& out, const shape& s, std::string_view file) {
  for (int round = 0; round < 3; ++round) {
    report found{std::string(file)};
    check(out.root, s, found);
    auto faults = found.take();
    if (faults.empty()) {
      out.usable = true;
      return;
    }
    if (faults.size() >= most_faults)
      return;
    for (const auto& one : faults) {
      if (!one.path.empty() && std::find(out.faulty.begin(), out.faulty.end(), one.path) != out.faulty.end())
        continue;
      if (!remove_at(out.root, one.path))
        return;
      out.faulty.push_back(one.path);
    }
  }
}

layer checked_layer(document read, std::string_view file, const shape& s,
                    const std::vector<std::string>& overrides = {}) {
  layer out;
  out.faults = std::move(read.faults);
  if (!read.readable)
    return out;
  out.root = std::move(read.root);
  report found{std::string(file)};
  for (const auto& one : overrides)
    if (auto wrong = apply_override(out.root, one); !wrong.empty())
      found.fault({}, "", wrong, "write it as key.of.a.key=value");
  check(out.root, s, found);
  for (auto& one : out.faults)
    found.fault({one.line, one.column}, one.path, one.message, one.hint);
  out.faults = found.take();
  out.usable = out.faults.empty();
  layer rest;
  if (!out.usable) {
    rest.root = out.root;
    drop_faulty(rest, s, file);
    out.usable = rest.usable;
    out.faulty = std::move(rest.faulty);
    out.faulty.insert(out.faulty.end(), found.known().begin(), found.known().end());
  }
  if (out.usable) {
    out.normal = to_value(rest.usable ? rest.root : out.root);
    normalize(out.normal, s);
  }
  return out;
}

layer read_layer(std::string_view text, std::string_view file, const shape& s,
                 const std::vector<std::string>& overrides = {}) {
  return checked_layer(read_document(text, file), file, s, overrides);
}

void append(std::vector<diagnostic>& to, std::vector<diagnostic> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

/// Merges both in the order of the text, where they belong to the same text.
void append_in_order(std::vector<diagnostic>& to, std::vector<diagnostic> from) {
  if (from.empty())
    return;
  append(to, std::move(from));
  if (std::all_of(to.begin(), to.end(), [&](const diagnostic& one) { return one.file == to.front().file; }))
    std::stable_sort(to.begin(), to.end(), [](const diagnostic& a, const diagnostic& b) {
      return std::pair(a.line, a.column) < std::pair(b.line, b.column);
    });
  if (to.size() > most_faults)
    to.resize(most_faults);
}

/// Fills keys that only the run time can give. The same text gives the same values.
void fill_from_text(value& config, const shape& s, std::string_view text, const surroundings& cluster) {
  if (s.name == "reproducibility") {
    if (auto& seed = config["experiment_seed"]; seed.is_null())
      seed = cluster.seed ? *cluster.seed : seed_of(text);
  } else if (s.name == "experiment") {
    if (auto& name = config["name"]; name.is_null())
      name = cluster.name.empty() ? made_up_name(hash_of(text)) : cluster.name;
    if (config["reproducibility"].is_object())
      fill_from_text(config["reproducibility"], *schemas().at("reproducibility"), text, cluster);
  }
}

value normal_layer(value x, const char* schema) {
  normalize(x, *schemas().at(schema));
  return x;
}

/// The defaults of the pool for all tasks, as a layer below `config`; null where there are none.
value task_defaults_layer(const value& config, const surroundings& cluster) {
  if (!cluster.task_container_defaults.is_object())
    return {};
  const auto slots = config.value(value::json_pointer("/resources/slots_per_trial"), value(1));
  return as_experiment_layer(normal_layer(cluster.task_container_defaults, "task-container-defaults"),
                             slots.is_number_integer() ? slots.get<std::int64_t>() : 1);
}

/// Takes the section out of a normal layer.
value take_storage(value& layer) {
  value out;
  if (layer.is_object() && layer.contains("checkpoint_storage")) {
    out = std::move(layer["checkpoint_storage"]);
    layer.erase("checkpoint_storage");
  }
  return out;
}

value normal_storage(const value& x) {
  return x.is_object() ? normal_layer(x, "checkpoint-storage") : value();
}

value storage_of_policy(const surroundings& cluster) {
  return cluster.policy.is_object() ? cluster.policy.value("checkpoint_storage", value()) : value();
}

node as_section(const value& storage) { return to_node(value{{"checkpoint_storage", storage}}); }

} // namespace

outcome load_experiment(std::string_view text, std::string_view file, level want) {
  return load_experiment(text, file, want, {});
}

outcome load_experiment(std::string_view text, std::string_view file, level want,
                        const surroundings& cluster) {
  const auto& experiment = *schemas().at("experiment");
  outcome out;
  auto own = read_layer(text, file, experiment, cluster.overrides);
  out.faults = std::move(own.faults);
  layer below, lowest;
  below.usable = lowest.usable = true;
  if (cluster.template_text) {
    below = read_layer(*cluster.template_text, cluster.template_name, experiment);
    std::for_each(below.faults.begin(), below.faults.end(),
                  hide_value); // it may be a secret of another person
    append(out.faults, std::move(below.faults));
  }
  if (cluster.defaults.is_object()) {
    lowest = checked_layer({to_node(cluster.defaults), {}}, defaults_name, experiment);
    std::for_each(lowest.faults.begin(), lowest.faults.end(),
                  hide_value); // it may be a secret of another person
    append(out.faults, std::move(lowest.faults));
  }
  if (!own.usable || !below.usable || !lowest.usable)
    return out;
  auto config = std::move(own.normal);
  if (config.is_null())
    config = value::object();
  const bool whole = want == level::complete;
  const auto refuse_slots = [&](const value& in, std::string_view name, place at) {
    if (whole && in.contains("resources") && in["resources"].contains("slots"))
      out.faults.push_back({std::string(name), at.line, at.column, "resources.slots",
                            "resources.slots is for tasks that are not experiments", "use slots_per_trial"});
  };
  refuse_slots(config, file, place_of(own.root, "resources.slots"));
  std::vector<value> storages{normal_storage(storage_of_policy(cluster))};
  if (whole)
    storages.push_back(take_storage(config));
  for (auto* part : {&below, &lowest}) {
    if (!part->normal.is_object())
      continue;
    if (auto at = part->normal.find("resources"); whole && at != part->normal.end() && at->is_object())
      at->erase("slots"); // a template is for tasks, too
    if (whole)
      storages.push_back(take_storage(part->normal));
    config = merged(std::move(config), std::move(part->normal), experiment);
  }
  if (whole) {
    const auto tasks = task_defaults_layer(config, cluster);
    config = merged(std::move(config), tasks, experiment);
    for (const auto* storage : {&cluster.workspace_checkpoint_storage, &cluster.checkpoint_storage})
      storages.push_back(normal_storage(*storage));
    auto& chosen = config["checkpoint_storage"];
    if (!cluster.storage_to_come)
      chosen = merged_storage(std::move(storages), 1);
    const bool known = chosen.is_object() && chosen.contains("type");
    if (!known)
      chosen = merged(std::move(chosen), {{"type", "directory"}, {"container_path", "checkpoints"}},
                      *schemas().at("checkpoint-storage"));
    // Faults that show only where layers are together. Two good ones can make a bad whole.
    const auto found_in = [&](const value& merged_layers, const node& checked) {
      report missing{std::string(file)};
      for (auto* part : {&own, &below})
        for (const auto& path : part->faulty)
          missing.know(path);
      check(checked, experiment, missing);
      check_completeness(merged_layers, experiment, own.root, missing);
      check_runnable(merged_layers, own.root, missing, cluster.unmanaged);
      return missing.take();
    };
    const auto place = [&](std::vector<diagnostic>& faults, node policy) {
      if (faults.empty())
        return;
      std::vector<named_layer> layers;
      layers.push_back({policy_layer, std::move(policy)});
      layers.push_back({std::string(file), own.root});
      layers.push_back({cluster.template_name, below.root});
      layers.push_back({defaults_name, lowest.root});
      layers.push_back({"task_container_defaults", to_node(tasks)});
      layers.push_back({"storage of the workspace", as_section(cluster.workspace_checkpoint_storage)});
      layers.push_back({"storage of the cluster", as_section(cluster.checkpoint_storage)});
      place_faults(faults, layers, 1);
    };
    fill_defaults(config, experiment);
    fill_from_text(config, experiment, text, cluster);
    bool sound = true; // a key with a fault is not there, so that the rest may look wrong
    for (const auto* part : {&own, &below})
      for (const auto& path : part->faulty)
        sound = sound && !path.starts_with("checkpoint_storage");
    const bool several = cluster.template_text || !cluster.overrides.empty() ||
                         cluster.defaults.is_object() || tasks.is_object();
    auto checked = several ? config : value::object();
    checked.erase("checkpoint_storage");
    if (known && sound)
      checked["checkpoint_storage"] = chosen;
    auto faults = found_in(config, to_node(checked));
    place(faults, as_section(storage_of_policy(cluster)));
    append_in_order(out.faults, std::move(faults));
    if (out.ok() && cluster.policy.is_object() && !cluster.storage_to_come) {
      // The values of the policy win, and the result is checked again.
      refuse_slots(cluster.policy, policy_layer, {});
      config = merged(normal_layer(cluster.policy, "experiment"), std::move(config), experiment);
      normalize(config, experiment);
      fill_defaults(config, experiment);
      fill_from_text(config, experiment, text, cluster);
      faults = found_in(config, to_node(config));
      place(faults, to_node(cluster.policy));
      append_in_order(out.faults, std::move(faults));
    }
  }
  if (out.ok())
    out.config = std::move(config);
  return out;
}

std::vector<std::string> continue_faults(const value& original, const value& changes) {
  std::vector<std::string> faults;
  if (changes.is_null() || (changes.is_object() && changes.empty()))
    return faults;
  for (auto fixed : {"project", "workspace"})
    if (changes.contains(fixed) && !changes[fixed].is_null())
      faults.push_back("'" + std::string(fixed) + "' in override config cannot be specified");
  auto searcher_of = [](const value& config) {
    return config.value(value::json_pointer("/searcher/name"), value("single"));
  };
  auto own = searcher_of(original), other = searcher_of(changes);
  if (own != "single")
    faults.push_back("override config is provided and experiment is not single searcher, got '" +
                     own.get<std::string>() + "' instead");
  else if (other != "single")
    faults.push_back("override config must have single searcher type got '" + other.get<std::string>() +
                     "' instead");
  return faults;
}

value default_of(std::string_view key) {
  const shape* at = schemas().at("experiment");
  for (std::string_view rest = key; at;) {
    const auto dot = rest.find('.');
    const auto* found = at->find(rest.substr(0, dot));
    if (!found)
      return {};
    if (dot == rest.npos)
      return found->fallback.value_or(value());
    at = found->what;
    rest = rest.substr(dot + 1);
  }
  return {};
}

bool is_schema(std::string_view name) { return schemas().find(name) != nullptr; }

std::vector<std::string> schema_names() {
  std::vector<std::string> names;
  for (const auto& [name, s] : schemas().named())
    names.push_back(name);
  return names;
}

namespace {

/// Appends what `config`, made of `own`, lacks at the complete level.
void append_missing(outcome& out, layer& own, const value& config, const shape& s, std::string_view file) {
  report missing{std::string(file)};
  for (auto& path : own.faulty)
    missing.know(std::move(path));
  check_completeness(config, s, own.root, missing);
  append_in_order(out.faults, missing.take());
}

} // namespace

outcome check_as(std::string_view schema, std::string_view text, std::string_view file, level want) {
  const auto& s = *schemas().at(schema);
  auto own = read_layer(text, file, s);
  outcome out{to_value(own.root), std::move(own.faults)};
  if (own.usable && want == level::complete)
    append_missing(out, own, own.normal, s, file);
  return out;
}

outcome complete_as(std::string_view schema, std::string_view text, std::string_view file, level want) {
  const auto& s = *schemas().at(schema);
  auto own = read_layer(text, file, s);
  outcome out{nullptr, std::move(own.faults)};
  if (!own.usable)
    return out;
  auto config = std::move(own.normal);
  bool sound = out.ok();
  fill_defaults(config, s);
  fill_from_text(config, s, text, {});
  if (want == level::complete)
    append_missing(out, own, config, s, file);
  if (sound)
    out.config = std::move(config);
  return out;
}

outcome merge_layers(std::string_view schema, std::string_view high, std::string_view high_file,
                     std::string_view low, std::string_view low_file) {
  const auto& s = *schemas().at(schema);
  auto upper = read_layer(high, high_file, s), lower = read_layer(low, low_file, s);
  outcome out{nullptr, std::move(upper.faults)};
  append(out.faults, std::move(lower.faults));
  if (!out.ok())
    return out;
  out.config = merged(std::move(upper.normal), std::move(lower.normal), s);
  return out;
}

outcome merge_as(std::string_view schema, std::string_view high, std::string_view high_file,
                 std::string_view low, std::string_view low_file) {
  auto out = merge_layers(schema, high, high_file, low, low_file);
  if (out.ok())
    fill_nulls(out.config, *schemas().at(schema));
  return out;
}

} // namespace troupe::config
