#pragma once
// Owns the actors that serve the operators' shell on a node: its inspector and, on the master, the desk. An
// actor that dies is made again, and whoever waited for its answer gets an error.

#include "actors/inspector/shell_desk_actor.hpp"

#include <mutex>

namespace troupe::node {

/// Thread-safe. Its handles are those of the newest life; an actor that has died refuses every request until
/// it is made again.
class shell_keeper {
public:
  static constexpr auto pause = std::chrono::milliseconds(200); ///< time between a death and the next life

  shell_keeper(caf::actor_system& sys, inspector_setup setup);
  ~shell_keeper(); ///< to be called only after stop()
  shell_keeper(const shell_keeper&) = delete;
  shell_keeper& operator=(const shell_keeper&) = delete;

  /// Starts the desk; sets `setup.inspector`.
  void open_desk(desk_setup setup);
  void stop_desk();
  /// Sets the agent, which tells its master of every new inspector.
  void tell(agent_actor who);
  void told_no_more();
  void joined(node_joined x); ///< every life of the desk hears of this node
  void stop();

  inspector_actor inspector() const;
  desk_actor desk() const;

private:
  class kept;
  caf::actor_system& system_;
  std::shared_ptr<kept> kept_;
  caf::actor keeper_;
};

} // namespace troupe::node
