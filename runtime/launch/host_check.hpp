#pragma once
// What the cluster's file meets on this host and on those that it names, before anything is started: ports,
// folders, room, GPUs, ssh, clocks. Changes nothing but for a file that it makes and removes in each folder.

#include "runtime/cli/hooks.hpp"

namespace troupe::launch {

/// `config`: of a cluster's file without faults. 32 hosts at once, each for at most 20 s.
std::vector<cli::host_finding> check_hosts(const value& config);

} // namespace troupe::launch
