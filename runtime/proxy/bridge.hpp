#pragma once
// Joins a viewer's connection and one to a service: bytes both ways, ends passed on. At most one piece of 64
// KiB waits in each direction: what is slow slows its own connection only. Knows no socket.

#include "runtime/proxy/junctions.hpp"

#include <functional>

namespace troupe::proxy {

struct bridge_ends {
  link_ptr viewer, service;
  std::string from_service;           ///< bytes that were read already
  junctions::place held;              ///< goes with the connection
  std::shared_ptr<junctions> table;   ///< ends it when it is idle
  std::chrono::seconds first_byte{0}; ///< so long the viewer may say nothing at first; 0: as later
  std::function<bool()> stays{}; ///< whether the viewer may still be here; empty: for as long as they like
};

/// Bytes as they come, until both sides have ended, or one is gone.
void join_bytes(bridge_ends ends);

/// The viewer speaks WebSocket, after the handshake: bytes travel in binary frames. The end of the service
/// closes the WebSocket at once; a close of the viewer is an end to the service, whose rest still goes out.
void join_frames(bridge_ends ends);

} // namespace troupe::proxy
