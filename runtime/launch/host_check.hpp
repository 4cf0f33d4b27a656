#pragma once
// What the cluster's file would find on this host and on the hosts that it names, before anything is started:
// ports, folders, room, GPUs, ssh, clocks. Changes nothing, except for a file that it makes and removes in
// each folder.

#include "runtime/cli/hooks.hpp"

namespace troupe::launch {

/// `config` is from a cluster's file without faults. Checks 32 hosts at once, each for at most 20 s.
std::vector<cli::host_finding> check_hosts(const value& config);

} // namespace troupe::launch
