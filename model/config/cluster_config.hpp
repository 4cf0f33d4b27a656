#pragma once
// What the running cluster reads in the completed form of a cluster file (cluster_file.hpp). Null stands for
// a cluster to which no file was ever applied: it has one pool, `default`.

#include "model/result.hpp"
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
/// The pool of experiments and agents that name none: the one with `default: true`.
std::string default_pool(const value& cluster);
bool has_pool(const value& cluster, std::string_view pool);

/// Pools among which somebody may choose.
struct pool_choice {
  std::vector<std::string> names; ///< in their order
  std::string workspace;          ///< name of the workspace that may use them; empty: all pools there are

  /// Fails with errc::invalid for another pool. The error is the same whether that pool exists or not, as who
  /// asks may not know of it, and names these pools.
  result<void> check(std::string_view pool) const;
};
pool_choice all_pools(const value& cluster);

/// How the pool assigns its slots; an empty map where the file says nothing.
value pool_settings(const value& cluster, std::string_view pool);

/// `pools.NAME.provider`, complete, with `aux_per_agent`; null where the pool has none.
value provider_settings(const value& cluster, std::string_view pool);

/// `cluster.leases`, or the defaults.
struct lease_settings {
  duration heartbeat = std::chrono::seconds(1), freeze = std::chrono::seconds(30),
           give_away = std::chrono::seconds(45), adopt = std::chrono::milliseconds(200);
};
lease_settings leases(const value& cluster);

/// `cluster.log_retention`: how long logs of ended tasks are kept whose experiment does not say. None: for
/// ever.
std::optional<duration> log_retention(const value& cluster);

/// The switches that clients see as on: streaming_updates, then `cluster.feature_switches`, each once.
std::vector<std::string> feature_switches(const value& cluster);

/// The pool of the agent `name`: the pool that the file gives to that node, otherwise the one that the agent
/// asks for, otherwise the default pool.
std::string pool_of_agent(const value& cluster, std::string_view name, std::string_view wish = {});
/// The labels that the file gives to that node; none where it gives none, and then the agent's own labels
/// count.
std::optional<std::map<std::string, std::string>> labels_of_agent(const value& cluster,
                                                                  std::string_view name);

/// Where an experiment runs: the first `resources.resource_pool` among its configuration (a text or complete)
/// and the file's defaults, otherwise the default pool. Fails as `among` does where that pool is not among
/// them; none: all pools of the cluster.
result<std::string> pool_of_experiment(const value& cluster, const value& settings,
                                       const std::optional<pool_choice>& among = std::nullopt);

/// Names of the workspaces that the file binds the pool to; none: the file does not say.
std::vector<std::string> workspaces_of_pool(const value& cluster, std::string_view pool);

/// `task_container_defaults` of the pool over those of the cluster, normal; null where there are none.
value task_defaults(const value& cluster, std::string_view pool);

/// What the file says about the sandbox of every task of a pool.
struct pool_tasks {
  std::string startup_hook, work_dir;
};
pool_tasks tasks_of_pool(const value& cluster, std::string_view pool);

/// The layer below the experiments of `pool`: the pool's defaults over those of the file, as a partial
/// configuration. A storage that is named there stands in full. Null where there are none.
value experiment_defaults(const value& cluster, std::string_view pool);
/// The storage `default` of the file as `checkpoint_storage`; null where there is none.
value default_storage(const value& cluster);

/// Why `cluster` cannot be put in force, one sentence for each reason; empty where it can. For values from
/// outside; places have no lines.
std::vector<std::string> configuration_faults(const value& cluster);

/// `cluster` as it may be shown: without secrets.
value printable_cluster(value cluster);
/// Takes the value of `from` in each place of `cluster` where a mask stands.
void restore_cluster_secrets(value& cluster, value from);

} // namespace troupe::config
