#pragma once
// The life of a node that somebody started by hand or by a service manager: it starts, says where it is, and
// stays until it is asked to end.

#include "runtime/launch/cluster_service.hpp"
#include "runtime/node/node.hpp"

#include <string>

namespace troupe::launch {

struct serve_options {
  bool daemon = false;                ///< in the background; the command ends when the node can be used
  std::string role;                   ///< "up", "master" or "agent": the name of a daemon's log
  cluster_service* cluster = nullptr; ///< of the master role; outlives the call
};

/// Returns the exit code after the end: on SIGTERM, SIGINT, `troupe down`, or a fault.
int serve(node::node_options options, const serve_options& how);

} // namespace troupe::launch
