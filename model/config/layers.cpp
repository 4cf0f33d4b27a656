#include "model/config/layers.hpp"

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
  auto read = read_document(assignment.substr(equals + 1), "");
  if (!read.faults.empty())
    return "'" + std::string(assignment) + "': " + read.faults.front().message;
  forget_places(read.root);
  auto path = assignment.substr(0, equals);
  node* at = &root;
  while (true) {
    auto dot = path.find('.');
    auto key = path.substr(0, dot);
    if (key.empty())
      return "'" + std::string(assignment) + "' has an empty key";
    if (at->is(kind::null))
      at->type = kind::map;
    if (!at->is(kind::map))
      return "'" + std::string(assignment) + "': there is " + name_with_article(at->type) + " where '" +
             std::string(key) + "' should be a key";
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

} // namespace troupe::config
