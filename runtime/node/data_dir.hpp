#pragma once
// The data directory of a node: which process holds it, and where things lie in it.
//
//   DIR/lock            flock of the live node, with its pid and address
//   DIR/master/db       the journal
//   DIR/master/cluster-id  the cluster's UUID
//   DIR/master/passwords   hashes of passwords, and the secret of tokens
//   DIR/master/tokens/USER.NAME  texts of the tokens that a cluster file names
//   DIR/nodes/NAME      data directory of an agent that `up FILE` keeps; its log lies beside it
//   DIR/agent/NAME      an agent's own folder
//   DIR/checkpoints     checkpoints of experiments whose configuration names no place

#include "runtime/client/find_server.hpp"
#include "workers/owned_fd.hpp"

namespace troupe::node {

/// Holds the directory for as long as this object lives. If the holder died, the kernel has dropped its lock,
/// and what it left is not an obstacle.
class data_dir {
public:
  /// Makes the directory if it is missing. errc::conflict if a live node holds it, with the node's pid, its
  /// address and the mend; errc::io if it cannot be made or written.
  static result<data_dir> hold(const std::filesystem::path& where);

  /// Writes the address that clients find from now on.
  result<void> publish(const std::string& url);
  const std::filesystem::path& path() const { return path_; }

private:
  data_dir(std::filesystem::path path, workers::owned_fd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  std::filesystem::path path_;
  workers::owned_fd lock_;
};

} // namespace troupe::node
