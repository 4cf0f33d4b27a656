#pragma once
// The helper of the operators' shell on one node: it answers questions about the actors of its own process,
// and plants faults when ordered to.

#include "actors/inspector/inspector_messages.hpp"

namespace troupe {

struct inspector_setup {
  std::string node; ///< name of the node in the cluster: "master", or the agent's
  std::string role; ///< "master", "agent", "master,agent"
  std::string version;
};

inspector_actor spawn_inspector(caf::actor_system& sys, inspector_setup setup);

} // namespace troupe
