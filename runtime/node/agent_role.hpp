#pragma once
// The agent role of a node: its actor, its link to the master, and the listener that its tasks take for the
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
  /// `master`: the master role of the same node, or null; it has to live longer than this object.
  agent_role(role_ground on, places where, const master_role* master);

  /// Joins the cluster. `registered` is called on the agent's thread, after each registration. Tasks of
  /// earlier lives are adopted.
  result<void> start(std::function<void()> registered);

  /// Makes the agent's tasks end with the agent, even if they would wait for the next one.
  void end_tasks_with_agent() { end_tasks_ = true; }
  void stop_dialling();
  /// Ends the agent, and its tasks if the node is the master, too. Any thread may call this, more than once.
  void end();
  /// To be called after `end`.
  void close_listener() {
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
  std::shared_ptr<master_link> link_; ///< null if the node is the master, too
  std::unique_ptr<forward::forwarder> listener_;
  std::shared_ptr<proxy::service_opener> opener_; ///< opens connections to services of this host's tasks
  std::atomic<bool> end_tasks_{false};
};

} // namespace troupe::node
