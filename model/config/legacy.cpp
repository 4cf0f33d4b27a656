#include "model/config/legacy.hpp"

#include "model/config/check.hpp"
#include "model/config/complete.hpp"

namespace troupe::config {
namespace {

result<value> read_part(const value& stored, const char* key, const char* schema, value otherwise) {
  value part = stored.contains(key) && !stored[key].is_null() ? stored[key] : std::move(otherwise);
  const auto& s = *schemas().at(schema);
  report found("");
  auto text = to_node(part);
  check(text, s, found);
  auto faults = found.take();
  if (faults.empty()) {
    normalize(part, s);
    fill_defaults(part, s);
    report missing("");
    check_completeness(part, s, text, missing);
    faults = missing.take();
  }
  if (faults.empty())
    return part;
  auto where = std::string(key) + (faults[0].path.empty() ? "" : "." + faults[0].path);
  return error{errc::invalid, "stored configuration: " + where + ": " + faults[0].message};
}

/// Storage on HDFS keeps only its settings of collection.
value without_hdfs(const value& stored) {
  auto found = stored.find("checkpoint_storage");
  if (found == stored.end() || !found->is_object() || found->value("type", value()) != "hdfs")
    return stored;
  value storage{{"type", "shared_fs"}, {"host_path", "/legacy-hdfs-checkpoint-path"}};
  for (auto kept : {"save_experiment_best", "save_trial_best", "save_trial_latest"})
    if (found->contains(kept))
      storage[kept] = (*found)[kept];
  value copy = stored;
  copy["checkpoint_storage"] = std::move(storage);
  return copy;
}

result<value> read_searcher(const value& stored) {
  auto searcher = stored.find("searcher");
  if (searcher == stored.end() || !searcher->is_object())
    return error{errc::invalid, "stored configuration: searcher is not a map"};
  value out;
  for (auto needed : {"name", "metric"}) {
    auto found = searcher->find(needed);
    if (found == searcher->end() || !found->is_string())
      return error{errc::invalid,
                   "stored configuration: searcher." + std::string(needed) + " is not a string"};
    out[needed] = *found;
  }
  auto smaller = searcher->value("smaller_is_better", value());
  out["smaller_is_better"] = smaller.is_null() ? value(true) : smaller;
  if (!out["smaller_is_better"].is_boolean())
    return error{errc::invalid, "stored configuration: searcher.smaller_is_better is not a boolean"};
  return out;
}

} // namespace

result<value> read_legacy(const value& original) {
  if (!original.is_object())
    return error{errc::invalid, "stored configuration: not a map"};
  auto stored = without_hdfs(original);
  value out;
  struct {
    const char *key, *schema;
    value otherwise;
  } parts[] = {{"checkpoint_storage", "checkpoint-storage", value::object()},
               {"bind_mounts", "bind-mounts", value::array()},
               {"environment", "environment", value::object()},
               {"hyperparameters", "hyperparameters", value::object()}};
  for (auto& p : parts) {
    auto part = read_part(stored, p.key, p.schema, std::move(p.otherwise));
    if (!part)
      return part.error();
    out[p.key] = std::move(*part);
  }
  auto searcher = read_searcher(stored);
  if (!searcher)
    return searcher.error();
  out["searcher"] = std::move(*searcher);
  return out;
}

} // namespace troupe::config
