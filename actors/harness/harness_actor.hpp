#pragma once
// The shell of actors/harness/harness.hpp, and the owner of the task link's socket.

#include "actors/messages.hpp"

#include <filesystem>

namespace troupe {

struct harness_setup {
  /// Endpoint to open; after a restart, with the port of the last life.
  std::string endpoint = "tcp://127.0.0.1:*";
  std::filesystem::path tasks; ///< folder of all tasks of this host; empty: no event files are written
};

struct harness_gateway {
  harness_actor actor;
  std::string endpoint; ///< endpoint with the port that was taken
};

/// Opens the socket at once; `errc::conflict` if the port is taken.
result<harness_gateway> spawn_harness(caf::actor_system& sys, const harness_setup& setup, agent_actor agent);

} // namespace troupe
