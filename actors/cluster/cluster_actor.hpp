#pragma once
// The root of the master role: it recovers everything from the journal, admits experiments and agents, and
// routes commands. The only actor that a node publishes.

#include "actors/catalogue/deliveries.hpp"
#include "actors/journal/log_watch.hpp"
#include "actors/messages.hpp"
#include "actors/provider/instance_provider.hpp"
#include "actors/task_tokens.hpp"
#include "system/random.hpp"

#include <functional>

namespace troupe {

struct cluster_setup {
  std::string checkpoint_dir; ///< where experiments keep checkpoints unless their config says
  lease_times lease;
  std::string join_token;                   ///< agents must say it; empty: any agent may join (loopback only)
  std::function<void()> shut_down;          ///< ends the node
  std::function<std::uint16_t()> http_port; ///< 0 until it listens; thread-safe
  /// With which the sandboxes of an agent speak for themselves: the same over restarts, and hard to guess.
  /// Thread-safe.
  std::function<std::string(const std::string& agent)> fence_token;
  task_tokens tokens;
  std::function<void(node_joined)> on_node; ///< a node has come, again or for the first time; thread-safe
  value configuration; ///< in force at the start (model/config/cluster_config.hpp); null: none
  /// Agents that an operator drained under a version that kept no facts of it, each with who did it.
  std::vector<std::pair<std::string, std::string>> drained_before;
  std::function<void(const catalogue_fact&)> recorded; ///< each that is durable now; thread-safe
  /// Of an elastic pool, by the settings of its provider; null where it cannot be made. Thread-safe, as
  /// `say`.
  std::function<std::unique_ptr<instance_provider>(const std::string& pool, const value& settings)>
    make_provider;
  std::function<void(const std::string&)> say; ///< a line for people; may be empty
  /// Sends events and tells of each once, from any thread; empty: nothing can be sent.
  std::function<void(std::vector<webhook_delivery>, webhook_ear)> deliver;
  std::string base_url;             ///< address of this cluster's web page, for links; empty: none
  std::shared_ptr<log_watch> lines; ///< what the journal looks for in logs; null: nothing
  bool roles = false;               ///< rights follow roles (`cluster.authz: rbac`)
  /// Bytes of the ids of tasks that are no trials. Thread-safe; a test that plays histories draws them.
  std::function<std::string(std::size_t)> id_bytes = random_bytes;
};

struct cluster_peers {
  journal_actor journal;
  std::shared_ptr<storage::reader> reads;
};

/// Detached: at start it reads the whole journal. Recovery is done when this returns.
cluster_actor spawn_cluster(caf::actor_system& sys, cluster_setup setup, cluster_peers peers);

} // namespace troupe
