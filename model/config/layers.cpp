#include "model/config/layers.hpp"

#include "model/config/merge.hpp"
#include "model/config/secrets.hpp"

#include <algorithm>

namespace troupe::config {
namespace {

void forget_places(node& x) {
  x.at = {};
  for (auto& item : x.items)
    forget_places(item);
  for (auto& e : x.entries) {
    e.at = {};
    forget_places(e.what);
  }
}

node* child(node& x, std::string_view key) {
  for (auto& e : x.entries)
    if (e.key == key)
      return &e.what;
  return nullptr;
}

} // namespace

std::string apply_override(node& root, std::string_view assignment) {
  auto equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return "'" + std::string(assignment) + "' is not KEY=VALUE";
  auto path = assignment.substr(0, equals);
  const auto name = "'" + std::string(path) + "'"; // the value may be a secret
  auto read = read_document(assignment.substr(equals + 1), "");
  if (!read.faults.empty())
    return name + ": " +
           (looks_secret(path.substr(path.rfind('.') + 1)) ? "the value cannot be read as YAML"
                                                           : read.faults.front().message);
  forget_places(read.root);
  node* at = &root;
  while (true) {
    auto dot = path.find('.');
    auto key = path.substr(0, dot);
    if (key.empty())
      return name + " has an empty key";
    if (at->is(kind::null))
      at->type = kind::map;
    if (!at->is(kind::map))
      return name + ": there is " + name_with_article(at->type) + " where '" + std::string(key) +
             "' should be a key";
    auto* next = child(*at, key);
    if (!next) {
      at->entries.push_back({std::string(key), {}, {}});
      next = &at->entries.back().what;
    }
    if (dot == std::string_view::npos) {
      *next = std::move(read.root);
      return {};
    }
    at = next;
    path.remove_prefix(dot + 1);
  }
}

value as_experiment_layer(const value& defaults, std::int64_t slots_per_trial) {
  value layer = value::object();
  auto take = [&](const char* name, value& into, const char* as) {
    auto found = defaults.find(name);
    if (found != defaults.end() && !found->is_null())
      into[as] = *found;
  };
  value environment = value::object(), resources = value::object();
  for (auto name : {"image", "registry_auth", "force_pull_image", "environment_variables", "add_capabilities",
                    "drop_capabilities"})
    take(name, environment, name);
  take(slots_per_trial == 0 ? "cpu_pod_spec" : "gpu_pod_spec", environment, "pod_spec");
  take("devices", resources, "devices");
  take("shm_size_bytes", resources, "shm_size");
  for (auto name : {"bind_mounts", "slurm", "pbs", "log_policies", "preemption_timeout"})
    take(name, layer, name);
  if (!environment.empty())
    layer["environment"] = std::move(environment);
  if (!resources.empty())
    layer["resources"] = std::move(resources);
  return layer;
}

value merged_storage(std::vector<value> layers, std::size_t own) {
  const auto& storage = *schemas().at("checkpoint-storage");
  const member* kind_of_all = nullptr;
  for (const auto& layer : layers)
    if (const auto type = layer.is_object() ? layer.value("type", value()) : value();
        !kind_of_all && type.is_string())
      kind_of_all = storage.member_named(type.get_ref<const std::string&>());
  value out;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    auto& layer = layers[i];
    if (i > own && kind_of_all && layer.is_object() && !layer.contains("type"))
      for (auto it = layer.begin(); it != layer.end();)
        it = kind_of_all->what->find(it.key()) ? std::next(it) : layer.erase(it);
    out = merged(std::move(out), std::move(layer), storage);
  }
  return out;
}

namespace {

constexpr std::string_view storage_key = "checkpoint_storage";

/// The part that `path` names, unless the layer says nothing there.
const node* said_at(const node& root, std::string_view path) {
  const auto* found = part_at(root, path);
  return found && !found->is(kind::null) ? found : nullptr;
}

std::string storage_type(const node& root) {
  const auto* type = said_at(root, "checkpoint_storage.type");
  return type && type->is(kind::string) ? type->text : std::string();
}

/// The type that the highest layer with a type names; empty: none has one.
std::string storage_type(const std::vector<named_layer>& layers) {
  for (const auto& layer : layers)
    if (auto type = storage_type(layer.root); !type.empty())
      return type;
  return "";
}

/// The way to what a fault is about: the key that a rule of a storage names, or the path of the fault.
std::string way_of(const diagnostic& fault, const std::vector<named_layer>& layers) {
  if (fault.path == storage_key)
    if (const auto* kind = schemas().at("checkpoint-storage")->member_named(storage_type(layers)))
      for (const auto& rule : kind->what->rules)
        if (rule.message == fault.message && !rule.at.empty())
          return fault.path + "." + rule.at;
  return fault.path;
}

/// The number of the layer that a fault at `path` lies in.
std::size_t layer_of(std::string_view path, const std::vector<named_layer>& layers, std::size_t own) {
  if (path.empty())
    return own;
  const bool in_storage =
    path.starts_with(storage_key) && (path.size() == storage_key.size() || path[storage_key.size()] == '.');
  const auto kind_of_all = in_storage ? storage_type(layers) : std::string();
  // What a whole storage lacks is a fault of the layer that names its type.
  const bool whole_storage = in_storage && path.size() == storage_key.size();
  const auto looked_for = whole_storage && !kind_of_all.empty() ? "checkpoint_storage.type" : path;
  std::vector<std::size_t> have;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto type = in_storage ? storage_type(layers[i].root) : std::string();
    if (said_at(layers[i].root, looked_for) && (type.empty() || type == kind_of_all))
      have.push_back(i);
  }
  if (have.empty())
    return own;
  const auto* first = said_at(layers[have.front()].root, path);
  const bool one_value = first && !first->is(kind::map) && !first->is(kind::list);
  const bool is_own = std::find(have.begin(), have.end(), own) != have.end();
  return is_own && !one_value ? own : have.front();
}

/// The way to the list whose element `path` leads to, or `path`. Elements of a merged list have other numbers
/// in their layers.
std::string_view up_to_list(std::string_view path) { return path.substr(0, path.find('[')); }

} // namespace

void hide_value(diagnostic& fault) {
  for (const char* got : {", got ", "; got "})
    if (const auto from = fault.message.find(got); from != std::string::npos) {
      fault.message.erase(from);
      fault.hint.clear();
    }
}

void place_faults(std::vector<diagnostic>& faults, const std::vector<named_layer>& layers, std::size_t own) {
  for (auto& fault : faults) {
    const auto whole_way = way_of(fault, layers);
    const auto way = up_to_list(whole_way);
    const auto number = layer_of(way, layers, own);
    const auto& [name, root] = layers[number];
    // Where the list has one layer, its elements have the same numbers there.
    const bool one_list = way.size() == whole_way.size() ||
                          std::count_if(layers.begin(), layers.end(),
                                        [&](const auto& one) { return said_at(one.root, way); }) == 1;
    const auto at = place_of(root, one_list ? std::string_view(whole_way) : way);
    fault.file = name;
    fault.line = at.line;
    fault.column = at.column;
    if (number != own)
      hide_value(fault);
  }
}

} // namespace troupe::config
