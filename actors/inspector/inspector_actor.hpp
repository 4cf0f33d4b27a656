#pragma once
// The shell's eyes and hands on one node: it answers about the actors of its own process and disturbs them
// when told.

#include "actors/inspector/inspector_messages.hpp"

namespace troupe {

struct inspector_setup {
  std::string node; ///< its name in the cluster: "master", or the agent's
  std::string role; ///< "master", "agent", "master,agent"
  std::string version;
};

inspector_actor spawn_inspector(caf::actor_system& sys, inspector_setup setup);

} // namespace troupe
