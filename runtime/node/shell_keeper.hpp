#pragma once
// Owns the shell's actors of a node, its inspector and on the master the desk: one that dies is made again,
// and who asks it is told.

#include "actors/inspector/shell_desk_actor.hpp"

#include <mutex>

namespace troupe::node {

/// Thread-safe. Its handles are those of the newest life; one that has died refuses what is asked until it is
/// made again.
class shell_keeper {
public:
  static constexpr auto pause = std::chrono::milliseconds(200); ///< between a death and the next life

  shell_keeper(caf::actor_system& sys, inspector_setup setup);
  ~shell_keeper(); ///< only after stop()
  shell_keeper(const shell_keeper&) = delete;
  shell_keeper& operator=(const shell_keeper&) = delete;

  /// `setup.inspector` is filled in here.
  void open_desk(desk_setup setup);
  void stop_desk();
  /// An agent that tells its master of every new inspector.
  void tell(agent_actor who);
  void told_no_more();
  void joined(node_joined x); ///< every life of the desk hears of it
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
