#pragma once
// Joins a viewer's connection and a connection to a service: passes bytes and ends on in both directions. At
// most one piece of 64 KiB waits in each direction, so that a slow side slows only its own connection. Knows
// no sockets.

#include "runtime/proxy/junctions.hpp"

#include <functional>

namespace troupe::proxy {

struct bridge_ends {
  link_ptr viewer, service;
  std::string from_service;         ///< bytes that were already read from the service
  junctions::place held;            ///< released when the connection ends
  std::shared_ptr<junctions> table; ///< its sweep ends the connection when it is idle
  /// Limit of the viewer's silence before the first byte; 0: the same limit as later.
  std::chrono::seconds first_byte{0};
  /// Whether the viewer may still stay; empty: there is no such limit.
  std::function<bool()> stays{};
};

/// Passes bytes on as they arrive, until both sides have ended or one has failed.
void join_bytes(bridge_ends ends);

/// The viewer speaks WebSocket, and the handshake is done: bytes travel in binary frames. When the service
/// ends, the WebSocket is closed at once; when the viewer closes it, the service reads an end, and the rest
/// of what the service sends still goes out.
void join_frames(bridge_ends ends);

} // namespace troupe::proxy
