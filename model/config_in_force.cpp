#include "model/config_in_force.hpp"

namespace troupe {
namespace {

value& resources_of(value& config) {
  auto& resources = config["resources"];
  if (!resources.is_object())
    resources = value::object();
  return resources;
}

} // namespace

value config_in_force(const experiment_row& row) {
  auto config = row.config.get();
  if (row.resources.empty() || !config.is_object())
    return config;
  const auto& set = row.resources.front();
  auto& resources = resources_of(config);
  resources["priority"] = set.priority > 0 ? value(set.priority) : value();
  resources["weight"] = set.weight;
  resources["max_slots"] = set.max_slots >= 0 ? value(set.max_slots) : value();
  if (!set.pool.empty())
    resources["resource_pool"] = set.pool;
  return config;
}

value config_in_force(const task_detail& row) {
  value config = row.made.config;
  if (row.priority > 0 && config.is_object())
    resources_of(config)["priority"] = row.priority;
  return config;
}

} // namespace troupe
