#pragma once
// The shell's helper on one node: it answers questions about the actors of its own process, and disturbs them
// when told to.

#include "actors/inspector/inspector_messages.hpp"

namespace troupe {

struct inspector_setup {
  std::string node; ///< name of the node in the cluster: "master", or the agent's
  std::string role; ///< "master", "agent", "master,agent"
  std::string version;
};

inspector_actor spawn_inspector(caf::actor_system& sys, inspector_setup setup);

} // namespace troupe
