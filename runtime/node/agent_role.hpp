#pragma once
// The agent role of a node: its actor, the way to the master, and the listener that its tasks know as the
// master.

#include "actors/agent/agent_actor.hpp"
#include "runtime/forward/forwarder.hpp"
#include "runtime/node/link.hpp"
#include "runtime/node/places.hpp"
#include "runtime/node/role_ground.hpp"
#include "runtime/proxy/service_opener.hpp"

#include <atomic>
#include <mutex>

namespace troupe::node {

class master_role;

class agent_role {
public:
  /// `master`: of the same node, or null; outlives this.
  agent_role(role_ground on, places where, const master_role* master);

  /// Joins the cluster; `registered` is called from the agent's thread, each time. Tasks of earlier lives are
  /// adopted.
  result<void> start(std::function<void()> registered);

  /// The agent's tasks end with it, also where they would wait for the next one.
  void end_tasks_with_agent() { end_tasks_ = true; }
  void stop_dialling();
  /// Ends the agent, and with it its tasks where the node is the master too; from any thread, more than once.
  void end();
  void close_listener() ///< to be called after `end`
  {
    listener_.reset();
    opener_.reset();
  }

private:
  result<void> open_link();
  result<void> open_listener(const std::filesystem::path& folder);
  void make_opener(const std::filesystem::path& tasks);
  std::function<std::optional<http::master_address>()> master_address() const;
  agent_setup setup_of_host() const;
  std::function<void(const agent_actor&)> dialler() const;

  role_ground on_;
  places places_;
  const master_role* master_;
  std::mutex mutex_; ///< guards agent_
  agent_actor agent_;
  std::shared_ptr<master_link> link_; ///< null where the master is of this node
  std::unique_ptr<forward::forwarder> listener_;
  std::shared_ptr<proxy::service_opener> opener_; ///< of connections to services of this host's tasks
  std::atomic<bool> end_tasks_{false};
};

} // namespace troupe::node
