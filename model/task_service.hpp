#pragma once
// A service of a task: it listens inside the task, and the master's /proxy/ID leads to it.

#include "model/pack.hpp"

#include <string>

namespace troupe {

struct task_service {
  std::string id;   ///< its ID in /proxy/ID: the task's own name, or the name and the port as TASK:8080
  int port = 0;     ///< on the loopback address of the task's host; 0: none
  bool tcp = false; ///< true: plain bytes; false: HTTP
  bool unauthenticated = false; ///< open to whoever reaches the master: the service itself asks who comes
  bool socket = false;        ///< listens on the Unix socket that TROUPE_SERVICE_SOCKET names, not on a port
  bool requests_only = false; ///< serves no WebSocket; said where the services are made, and told to no agent
  TROUPE_PACKED(id, port, tcp, unauthenticated, socket)
  friend bool operator==(const task_service&, const task_service&) = default;
};

} // namespace troupe
