#pragma once
// The data directory of a node: who may hold it, and where things lie in it.
//
//   DIR/lock            flock of the live node, with its pid and address
//   DIR/master/db       the journal
//   DIR/master/cluster-id  the cluster's UUID
//   DIR/master/passwords   hashes of passwords, and the secret of tokens
//   DIR/master/tokens/USER.NAME  texts of the tokens that a cluster file names
//   DIR/nodes/NAME      of an agent that `up FILE` keeps; its log beside it
//   DIR/agent/NAME      an agent's own folder
//   DIR/checkpoints     of experiments whose configuration names no place

#include "runtime/client/find_server.hpp"
#include "workers/owned_fd.hpp"

namespace troupe::node {

/// Held while it lives. A dead holder's leftovers are not an obstacle: the kernel drops its lock with it.
class data_dir {
public:
  /// Makes the directory where it is missing. errc::conflict where a live node holds it, with its pid, its
  /// address and the cure; errc::io where it cannot be made or written.
  static result<data_dir> hold(const std::filesystem::path& where);

  /// What clients find from now on.
  result<void> publish(const std::string& url);
  const std::filesystem::path& path() const { return path_; }

private:
  data_dir(std::filesystem::path path, workers::owned_fd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  std::filesystem::path path_;
  workers::owned_fd lock_;
};

} // namespace troupe::node
