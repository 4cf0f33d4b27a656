#include "model/config/cluster_config.hpp"

#include "model/config/check.hpp"
#include "model/config/complete.hpp"
#include "model/config/duration_text.hpp"
#include "model/config/merge.hpp"
#include "model/config/secrets.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace troupe::config {
namespace {

constexpr const char* tasks_key = "task_container_defaults";

const value& part(const value& x, const char* key) {
  static const value none;
  if (!x.is_object())
    return none;
  auto it = x.find(key);
  return it == x.end() ? none : *it;
}

std::string text(const value& x, const char* key) {
  const auto& at = part(x, key);
  return at.is_string() ? at.get<std::string>() : std::string();
}

/// The node of this name; null where the file does not name it.
const value& node_of(const value& cluster, std::string_view name) {
  static const value none;
  if (const auto& nodes = part(cluster, "nodes"); nodes.is_array())
    for (const auto& one : nodes)
      if (text(one, "name") == name)
        return one;
  return none;
}

/// A storage of the file, in the form of an experiment's `checkpoint_storage`.
value as_checkpoint_storage(const value& s) {
  value out = value::object();
  const auto type = text(s, "type");
  out["type"] = type;
  auto take = [&](const char* name, const char* as) {
    if (auto got = text(s, name); !got.empty())
      out[as] = got;
  };
  if (type == "directory")
    take("path", "container_path");
  if (type == "shared_fs")
    take("path", "host_path");
  if (type == "azure")
    take("bucket", "container");
  else
    take("bucket", "bucket");
  if (type == "s3")
    take("endpoint", "endpoint_url");
  if (type != "azure" && type != "directory" && type != "shared_fs")
    take("prefix", "prefix");
  return out;
}

std::vector<std::string> names_of_pool(const value& cluster, const std::string& pool, const char* key) {
  std::vector<std::string> out;
  if (const auto& list = part(part(part(cluster, "pools"), pool.c_str()), key); list.is_array())
    for (const auto& one : list)
      if (one.is_string())
        out.push_back(one.get<std::string>());
  return out;
}

std::vector<std::string> fallback_of(const value& cluster, const std::string& pool) {
  return names_of_pool(cluster, pool, "fallback");
}

/// Whether the chain of fallbacks from pool `from` comes to `to`.
bool falls_back_to(const value& cluster, const std::string& from, const std::string& to,
                   std::set<std::string>& seen) {
  if (from == to)
    return true;
  if (!seen.insert(from).second)
    return false;
  const auto next = fallback_of(cluster, from);
  return std::any_of(next.begin(), next.end(),
                     [&](const auto& one) { return falls_back_to(cluster, one, to, seen); });
}

void fallback_faults(const value& cluster, std::vector<std::string>& out) {
  const auto& pools = part(cluster, "pools");
  if (!pools.is_object())
    return;
  for (const auto& [name, pool] : pools.items())
    for (const auto& other : fallback_of(cluster, name)) {
      const auto place = "pools." + name + ".fallback: ";
      std::set<std::string> seen;
      if (other == name)
        out.push_back(place + "a pool does not fall back to itself");
      else if (!pools.contains(other))
        out.push_back(place + "there is no pool '" + other + "'");
      else if (falls_back_to(cluster, other, name, seen))
        out.push_back(place + "the pools '" + name + "' and '" + other + "' fall back in a circle");
    }
}

value layer(const value& cluster, const value& partial) {
  if (!partial.is_object())
    return nullptr;
  auto out = partial;
  if (auto name = text(out, "checkpoint_storage"); !name.empty())
    out["checkpoint_storage"] = as_checkpoint_storage(part(part(cluster, "storage"), name.c_str()));
  normalize(out, *schemas().at("experiment"));
  return out;
}

} // namespace

std::vector<std::string> pool_names(const value& cluster) {
  std::vector<std::string> names;
  if (const auto& pools = part(cluster, "pools"); pools.is_object())
    for (const auto& [name, pool] : pools.items())
      names.push_back(name);
  if (names.empty())
    names.emplace_back("default");
  return names;
}

std::string default_pool(const value& cluster) {
  if (const auto& pools = part(cluster, "pools"); pools.is_object())
    for (const auto& [name, pool] : pools.items())
      if (part(pool, "default") == true)
        return name;
  return pool_names(cluster).front();
}

value pool_settings(const value& cluster, std::string_view pool) {
  auto settings = part(part(cluster, "pools"), std::string(pool).c_str());
  if (!settings.is_object())
    return value::object();
  for (const char* other :
       {"default", "defaults", "provider", "startup_hook", "work_dir", "workspaces", tasks_key})
    settings.erase(other);
  for (auto it = settings.begin(); it != settings.end();)
    it = it->is_null() ? settings.erase(it) : std::next(it);
  return settings;
}

value provider_settings(const value& cluster, std::string_view pool) {
  const auto& all = part(part(cluster, "pools"), std::string(pool).c_str());
  auto settings = part(all, "provider");
  if (!settings.is_object())
    return nullptr;
  for (auto it = settings.begin(); it != settings.end();)
    it = it->is_null() ? settings.erase(it) : std::next(it);
  const auto& aux = part(all, "aux_per_agent");
  settings["aux_per_agent"] = aux.is_number_integer() ? aux : value(100);
  return settings;
}

lease_settings leases(const value& cluster) {
  lease_settings out;
  const auto& said = part(part(cluster, "cluster"), "leases");
  const auto take = [&](const char* key, duration& to) {
    if (const auto time = parse_duration(text(said, key)))
      to = *time;
  };
  take("heartbeat", out.heartbeat);
  take("freeze", out.freeze);
  take("give_away", out.give_away);
  take("adopt", out.adopt);
  return out;
}

std::optional<duration> log_retention(const value& cluster) {
  return parse_duration(text(part(cluster, "cluster"), "log_retention")); // "never" means no limit
}

std::vector<std::string> feature_switches(const value& cluster) {
  std::vector<std::string> out{"streaming_updates"};
  if (const auto& list = part(part(cluster, "cluster"), "feature_switches"); list.is_array())
    for (const auto& one : list)
      if (one.is_string() && std::find(out.begin(), out.end(), one.get<std::string>()) == out.end())
        out.push_back(one.get<std::string>());
  return out;
}

bool has_pool(const value& cluster, std::string_view pool) {
  auto names = pool_names(cluster);
  return std::find(names.begin(), names.end(), pool) != names.end();
}

result<void> pool_choice::check(std::string_view pool) const {
  if (std::find(names.begin(), names.end(), pool) != names.end())
    return {};
  std::string all;
  for (const auto& name : names)
    all += (all.empty() ? "" : ", ") + name;
  return error{errc::invalid,
               "there is no pool '" + std::string(pool) + "' " +
                 (workspace.empty() ? "in this cluster" : "that workspace '" + workspace + "' may use") +
                 "\nhint: " + (all.empty() ? "an admin may bind a pool to the workspace" : "one of " + all)};
}

pool_choice all_pools(const value& cluster) { return {pool_names(cluster), {}}; }

std::string pool_of_agent(const value& cluster, std::string_view name, std::string_view wish) {
  if (auto pool = text(node_of(cluster, name), "pool"); !pool.empty() && has_pool(cluster, pool))
    return pool;
  return !wish.empty() && has_pool(cluster, wish) ? std::string(wish) : default_pool(cluster);
}

std::optional<std::map<std::string, std::string>> labels_of_agent(const value& cluster,
                                                                  std::string_view name) {
  const auto& labels = part(node_of(cluster, name), "labels");
  if (!labels.is_object() || labels.empty())
    return std::nullopt;
  std::map<std::string, std::string> out;
  for (const auto& [key, one] : labels.items())
    out[key] = one.is_string() ? one.get<std::string>() : to_json(one);
  return out;
}

result<std::string> pool_of_experiment(const value& cluster, const value& settings,
                                       const std::optional<pool_choice>& among) {
  auto wish = text(part(settings, "resources"), "resource_pool");
  if (wish.empty())
    wish = text(part(part(cluster, "defaults"), "resources"), "resource_pool");
  // Where no file was ever applied, Determined's names stand for the only pool.
  if (wish.empty() || cluster.is_null())
    wish = default_pool(cluster);
  if (auto fine = among.value_or(all_pools(cluster)).check(wish); !fine)
    return error{fine.error().code, "resources.resource_pool: " + fine.error().what};
  return wish;
}

std::vector<std::string> workspaces_of_pool(const value& cluster, std::string_view pool) {
  return names_of_pool(cluster, std::string(pool), "workspaces");
}

value task_defaults(const value& cluster, std::string_view pool) {
  const auto& s = *schemas().at("task-container-defaults");
  const auto normal = [&](const value& said) {
    auto out = said.is_object() ? said : value();
    if (out.is_object())
      normalize(out, s);
    return out;
  };
  return merged(normal(part(part(part(cluster, "pools"), std::string(pool).c_str()), tasks_key)),
                normal(part(part(cluster, "cluster"), tasks_key)), s);
}

pool_tasks tasks_of_pool(const value& cluster, std::string_view pool) {
  const auto& settings = part(part(cluster, "pools"), std::string(pool).c_str());
  const auto below = task_defaults(cluster, pool);
  const auto first = [&](const char* key) {
    auto said = text(settings, key);
    return said.empty() ? text(below, key) : said;
  };
  return {first("startup_hook"), first("work_dir")};
}

value experiment_defaults(const value& cluster, std::string_view pool) {
  auto of_pool = layer(cluster, part(part(part(cluster, "pools"), std::string(pool).c_str()), "defaults"));
  auto of_file = layer(cluster, part(cluster, "defaults"));
  if (of_pool.is_null() || of_file.is_null())
    return of_pool.is_null() ? of_file : of_pool;
  return merged(std::move(of_pool), std::move(of_file), *schemas().at("experiment"));
}

value default_storage(const value& cluster) {
  const auto& s = part(part(cluster, "storage"), "default");
  return s.is_object() ? as_checkpoint_storage(s) : value();
}

std::vector<std::string> configuration_faults(const value& cluster) {
  if (!cluster.is_object())
    return {"a configuration is a map"};
  report found{std::string()};
  check(to_node(cluster), *schemas().at("cluster-file"), found);
  std::vector<std::string> out;
  for (const auto& one : found.take())
    out.push_back((one.path.empty() ? "" : one.path + ": ") + one.message);
  std::set<std::string> names;
  std::ptrdiff_t defaults = 0;
  if (const auto& pools = part(cluster, "pools"); pools.is_object())
    defaults =
      std::count_if(pools.begin(), pools.end(), [](const value& p) { return part(p, "default") == true; });
  if (defaults > 1)
    out.emplace_back("pools: more than one is the default");
  fallback_faults(cluster, out);
  if (const auto usual = default_pool(cluster); !workspaces_of_pool(cluster, usual).empty())
    out.push_back("pools." + usual + ".workspaces: the default pool is everyone's");
  if (!part(part(part(cluster, "cluster"), "webhooks"), "signing_key").is_null())
    out.emplace_back("cluster.webhooks.signing_key: a key does not belong into a configuration");
  const auto no_registry = [&](const value& of, const std::string& place) {
    if (!part(part(of, tasks_key), "registry_auth").is_null())
      out.push_back(place + "." + tasks_key +
                    ".registry_auth: a registry's credentials do not belong into a configuration");
  };
  no_registry(part(cluster, "cluster"), "cluster");
  if (const auto& pools = part(cluster, "pools"); pools.is_object())
    for (const auto& [name, pool] : pools.items())
      no_registry(pool, "pools." + name);
  if (const auto& nodes = part(cluster, "nodes"); nodes.is_array())
    for (const auto& one : nodes) {
      if (auto name = text(one, "name"); !names.insert(name).second)
        out.push_back("nodes: '" + name + "' is named twice");
      if (auto pool = text(one, "pool"); !pool.empty() && !has_pool(cluster, pool))
        out.push_back("nodes: there is no pool '" + pool + "'");
    }
  if (const auto& users = part(cluster, "users"); users.is_array())
    for (const auto& one : users)
      if (!part(one, "password").is_null())
        out.push_back("users: the password of '" + text(one, "name") +
                      "' does not belong into a configuration");
  return out;
}

namespace {

value* section_in(value& x, const char* key) {
  auto at = x.is_object() ? x.find(key) : x.end();
  return x.is_object() && at != x.end() ? &*at : nullptr;
}

/// Calls `found` with each part of `cluster` that configures experiments, and its place. The defaults of
/// tasks are given in the same form.
void each_layer(value& cluster, const std::function<void(const std::string& place, value& layer)>& found) {
  const auto of = [&](value& x, const std::string& place) {
    if (auto* partial = section_in(x, "defaults"))
      found(place + "defaults", *partial);
    auto* tasks = section_in(x, "task_container_defaults");
    if (auto* registry = tasks ? section_in(*tasks, "registry_auth") : nullptr) {
      value layer{{"environment", {{"registry_auth", *registry}}}};
      found(place + "task_container_defaults", layer);
      *registry = layer["environment"]["registry_auth"];
    }
  };
  of(cluster, "");
  if (auto* all = section_in(cluster, "cluster"))
    of(*all, "cluster.");
  if (auto* pools = section_in(cluster, "pools"); pools && pools->is_object())
    for (auto& [name, pool] : pools->items())
      of(pool, "pools." + name + ".");
}

} // namespace

value printable_cluster(value cluster) {
  if (auto* users = section_in(cluster, "users"); users && users->is_array())
    for (auto& one : *users)
      if (one.is_object() && one.contains("password"))
        one["password"] = secret_mask;
  each_layer(cluster, [](const std::string&, value& layer) { layer = without_secrets(std::move(layer)); });
  return cluster;
}

void restore_cluster_secrets(value& cluster, value from) {
  std::map<std::string, value> known;
  each_layer(from, [&](const std::string& place, value& layer) { known[place] = layer; });
  each_layer(cluster, [&](const std::string& place, value& layer) { restore_secrets(layer, known[place]); });
}

} // namespace troupe::config
