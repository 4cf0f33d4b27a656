#pragma once
// The root actor of the master role recovers everything from the journal, admits experiments and agents, and
// routes commands. It is the only actor that a node publishes.

#include "actors/catalogue/deliveries.hpp"
#include "actors/journal/log_watch.hpp"
#include "actors/messages.hpp"
#include "actors/provider/instance_provider.hpp"
#include "actors/task_tokens.hpp"
#include "system/random.hpp"

#include <functional>

namespace troupe {

struct cluster_setup {
  std::string checkpoint_dir; ///< folder for checkpoints of experiments whose configuration names none
  lease_times lease;
  std::string join_token; ///< token that agents must show; empty: any agent may register (loopback only)
  std::function<void()> shut_down;          ///< ends the node
  std::function<std::uint16_t()> http_port; ///< port of the HTTP server; 0 until it listens; thread-safe
  /// The token with which the sandboxes of this agent identify themselves to the master. It is the same after
  /// a restart, and hard to guess. Thread-safe.
  std::function<std::string(const std::string& agent)> fence_token;
  task_tokens tokens;
  std::function<void(node_joined)> on_node; ///< called when a node has connected or reconnected; thread-safe
  value configuration; ///< in force at the start (model/config/cluster_config.hpp); null: none
  /// Agents that an operator drained under an older version, which recorded no facts of that, each with the
  /// user who drained it.
  std::vector<std::pair<std::string, std::string>> drained_before;
  std::function<void(const catalogue_fact&)> recorded; ///< called with each fact once durable; thread-safe
  /// Makes the provider of an elastic pool from its settings; null where that is not possible. Thread-safe,
  /// and so is `say`.
  std::function<std::unique_ptr<instance_provider>(const std::string& pool, const value& settings)>
    make_provider;
  std::function<void(const std::string&)> say; ///< prints a line for people; may be empty
  /// Sends events to webhooks, and reports the outcome of each event once, from any thread; empty: nothing
  /// can be sent.
  std::function<void(std::vector<webhook_delivery>, webhook_ear)> deliver;
  std::string base_url;             ///< address of this cluster's web page, for links; empty: none
  std::shared_ptr<log_watch> lines; ///< patterns that the journal looks for in logs; null: none
  bool roles = false;               ///< rights follow roles (`cluster.authz: rbac`)
  /// Gives the random bytes for the ids of tasks that are not trials. Thread-safe. A simulation puts a seeded
  /// source here.
  std::function<std::string(std::size_t)> id_bytes = random_bytes;
};

struct cluster_peers {
  journal_actor journal;
  std::shared_ptr<storage::reader> reads;
};

/// The actor has a thread of its own, as it reads the whole journal at the start. Recovery is done when this
/// function returns.
cluster_actor spawn_cluster(caf::actor_system& sys, cluster_setup setup, cluster_peers peers);

} // namespace troupe
