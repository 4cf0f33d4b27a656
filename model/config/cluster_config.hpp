#pragma once
// What the running cluster reads of a cluster file in its completed form (cluster_file.hpp). Null stands for
// a cluster to which no file was ever applied: one pool, `default`.

#include "model/time.hpp"
#include "model/value.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::config {

/// In the order of their names; never empty.
std::vector<std::string> pool_names(const value& cluster);
/// Where experiments and agents go that name no pool: the one that says `default: true`.
std::string default_pool(const value& cluster);
bool has_pool(const value& cluster, std::string_view pool);

/// What the file says of how a pool gives out its slots; an empty map where it says nothing.
value pool_settings(const value& cluster, std::string_view pool);

/// `pools.NAME.provider`, complete, with `aux_per_agent`; null where the pool has none.
value provider_settings(const value& cluster, std::string_view pool);

/// `cluster.leases`; the defaults where the file says nothing.
struct lease_settings {
  duration heartbeat = std::chrono::seconds(1), freeze = std::chrono::seconds(30),
           give_away = std::chrono::seconds(45), adopt = std::chrono::milliseconds(200);
};
lease_settings leases(const value& cluster);

/// `cluster.log_retention`: time for which logs of ended tasks are kept whose experiment says nothing; none:
/// for ever.
std::optional<duration> log_retention(const value& cluster);

/// What clients are told to be switched on: streaming_updates, then `cluster.feature_switches`, each once.
std::vector<std::string> feature_switches(const value& cluster);

/// The pool of the agent `name`: what the file says of that node, else the one that the agent asks for, else
/// the default one.
std::string pool_of_agent(const value& cluster, std::string_view name, std::string_view wish = {});
/// What the file says of that node; none where it says nothing, and then the agent's own labels count.
std::optional<std::map<std::string, std::string>> labels_of_agent(const value& cluster,
                                                                  std::string_view name);

/// Where an experiment runs: `resources.resource_pool` of its configuration, a text or complete, else of the
/// file's defaults, else the default pool. errc::invalid, with the pools there are, where there is none of
/// that name.
result<std::string> pool_of_experiment(const value& cluster, const value& settings);

/// Names of the workspaces that the file binds the pool to; none: it says nothing.
std::vector<std::string> workspaces_of_pool(const value& cluster, std::string_view pool);

/// `task_container_defaults` of the pool over those of the cluster, normal; null where there are none.
value task_defaults(const value& cluster, std::string_view pool);

/// What the file says of the sandbox of every task of a pool; empty where it says nothing.
struct pool_tasks {
  std::string startup_hook, work_dir;
};
pool_tasks tasks_of_pool(const value& cluster, std::string_view pool);

/// The layer below the experiments of `pool`: the pool's defaults over those of the file, as a partial
/// configuration; a storage that is named there stands in full. Null where there are none.
value experiment_defaults(const value& cluster, std::string_view pool);
/// The storage `default` of the file, as `checkpoint_storage`; null where there is none.
value default_storage(const value& cluster);

/// Why `cluster` cannot be put in force: one sentence each, none where it can. For what comes from outside;
/// the places are those of values, without lines.
std::vector<std::string> configuration_faults(const value& cluster);

/// `cluster` as it may be shown: without secrets.
value printable_cluster(value cluster);
/// Puts what `from` has into each place of `cluster` where a shown one has a mask.
void restore_cluster_secrets(value& cluster, value from);

} // namespace troupe::config
