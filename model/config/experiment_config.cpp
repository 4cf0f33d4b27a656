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

layer read_layer(std::string_view text, std::string_view file, const shape& s,
                 const std::vector<std::string>& overrides = {}) {
  layer out;
  auto read = read_document(text, file);
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

void merge_below(value& config, const surroundings& cluster) {
  const auto& experiment = *schemas().at("experiment");
  if (cluster.task_container_defaults.is_object()) {
    auto slots = config.value(value::json_pointer("/resources/slots_per_trial"), value(1));
    auto defaults = normal_layer(cluster.task_container_defaults, "task-container-defaults");
    config = merged(std::move(config),
                    as_experiment_layer(defaults, slots.is_number_integer() ? slots.get<std::int64_t>() : 1),
                    experiment);
  }
  const auto& storage = *schemas().at("checkpoint-storage");
  auto& chosen = config["checkpoint_storage"];
  if (cluster.storage_to_come) {
    chosen = nullptr;
  } else {
    if (const auto& above = cluster.policy_checkpoint_storage; above.is_object())
      chosen = merged(normal_layer(above, "checkpoint-storage"), std::move(chosen), storage);
    for (const auto* below : {&cluster.workspace_checkpoint_storage, &cluster.checkpoint_storage})
      if (below->is_object())
        chosen = merged(std::move(chosen), normal_layer(*below, "checkpoint-storage"), storage);
  }
  if (chosen.is_null() || !chosen.contains("type"))
    chosen = merged(std::move(chosen), {{"type", "directory"}, {"container_path", "checkpoints"}}, storage);
}

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
  layer below;
  below.usable = true;
  if (cluster.template_text) {
    below = read_layer(*cluster.template_text, "template", experiment);
    append(out.faults, std::move(below.faults));
  }
  if (!own.usable || !below.usable)
    return out;
  auto config = std::move(own.normal);
  if (config.is_null())
    config = value::object();
  if (want == level::complete && config.contains("resources") && config["resources"].contains("slots")) {
    auto at = place_of(own.root, "resources.slots");
    out.faults.push_back({std::string(file), at.line, at.column, "resources.slots",
                          "resources.slots is for tasks that are not experiments", "use slots_per_trial"});
  }
  if (below.normal.is_object()) {
    if (auto at = below.normal.find("resources");
        want == level::complete && at != below.normal.end() && at->is_object())
      at->erase("slots"); // a template is for tasks, too
    config = merged(std::move(config), std::move(below.normal), experiment);
  }
  if (want == level::complete) {
    merge_below(config, cluster);
    fill_defaults(config, experiment);
    fill_from_text(config, experiment, text, cluster);
    report missing{std::string(file)};
    for (auto* part : {&own, &below})
      for (auto& path : part->faulty)
        missing.know(std::move(path));
    if (cluster.template_text || !cluster.overrides.empty() || cluster.task_container_defaults.is_object())
      check(to_node(config), experiment, missing); // two good layers can make a bad whole
    check_completeness(config, experiment, own.root, missing);
    check_runnable(config, own.root, missing);
    append_in_order(out.faults, missing.take());
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
