#pragma once
// What the roles of a node share and use.

#include "runtime/node/node.hpp"
#include "runtime/node/shell_keeper.hpp"

#include <caf/scoped_actor.hpp>

#include <chrono>
#include <thread>

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

/// Waits while `condition()` is true, for 10 s at most.
template <class Condition>
void wait_while(Condition condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (condition() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Waits until no more than `before` actors of `system` have threads of their own, for 10 s at most. A system
/// whose network part has stopped keeps what its broker has not read (CAF 0.17: `abstract_broker::cleanup`
/// does not close the mailbox), and with it the sender: the destructor of the system would wait for the
/// thread of such a sender for ever.
void await_own_threads(caf::actor_system& system, std::size_t before);

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
