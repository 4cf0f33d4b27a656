#pragma once
// What the roles of a node share and use.

#include "runtime/node/node.hpp"
#include "runtime/node/shell_keeper.hpp"

#include <caf/scoped_actor.hpp>

namespace troupe::node {

std::string host_name();

/// Lives longer than the roles.
struct role_ground {
  caf::actor_system& system;
  const node_options& options;
  data_dir& dir;
  shell_keeper& shell;
  std::function<void(const error&)> ask_to_stop; ///< may be called from any thread
  std::string agent_name;                        ///< name of the agent role, whether or not the node has it

  void say(const std::string& line) const; ///< writes a line for people
};

/// Ends an actor of `system` and waits for its end; the handle is empty afterwards.
template <class Handle>
void end_actor(caf::actor_system& system, Handle& actor) {
  if (!actor)
    return;
  caf::scoped_actor self{system};
  self->send_exit(actor, caf::exit_reason::user_shutdown);
  self->wait_for(actor);
  actor = nullptr;
}

} // namespace troupe::node
