#pragma once
// The life of a node that a person or a service manager started: it starts, says where it is, and runs until
// it is asked to end.

#include "runtime/launch/cluster_service.hpp"
#include "runtime/node/node.hpp"

#include <string>

namespace troupe::launch {

struct serve_options {
  bool daemon = false; ///< whether it runs in the background: the command ends when the node can be used
  std::string role;    ///< "up", "master" or "agent": the name of a daemon's log
  cluster_service* cluster = nullptr; ///< for the master role; must outlive the call
};

/// Returns the exit code after the end: by SIGTERM, SIGINT, `troupe down`, or a fault.
int serve(node::node_options options, const serve_options& how);

} // namespace troupe::launch
