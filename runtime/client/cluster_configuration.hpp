#pragma once
// A cluster file on this host, and the configuration of a running cluster: read, plan, put in force.

#include "model/config/cluster_file.hpp"
#include "runtime/client/server.hpp"

#include <filesystem>

namespace troupe::client {

/// Files and variables of this process; files of at most 4 MB.
config::file_world host_files(const environment& env);

/// `GET /troupe/v1/configuration`.
struct live_configuration {
  value configuration; ///< configuration in force; null: no file was ever applied
  value by_hand;       ///< {"users": [NAME]} that no file made
  std::uint64_t revision = 0;
};
result<live_configuration> live(server& cluster);

/// What is to be done; a plan file holds the same.
struct wanted_configuration {
  value configuration, secrets;
  std::vector<std::string> prune; ///< users that no file made and that go
};
/// The experiments that it names, read and checked; each with its name. All or the first fault.
result<std::vector<std::pair<std::string, new_experiment>>> experiments_of(const value& configuration);

/// Puts it in force, unless the cluster's is another than `seen`: errc::conflict. Then submits the
/// experiments that it does not know yet by their names. `say` hears a line for each.
result<void> put_in_force(server& cluster, const wanted_configuration& what, std::uint64_t seen,
                          const std::function<void(const std::string&)>& say);

/// Users of `by_hand` that `wanted` does not name.
std::vector<std::string> prunable(const value& by_hand, const value& wanted);

} // namespace troupe::client
