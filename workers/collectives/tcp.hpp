#pragma once
// The group of ranks on several hosts, through TCP.

#include "workers/collective.hpp"

namespace troupe {

struct tcp_group {
  std::string name;   ///< the same on all ranks and used once
  std::string secret; ///< the same on all ranks; a process that does not know it cannot join
  std::string host;   ///< name or address at which every rank reaches rank 0
  int port = 0; ///< port at which ranks meet rank 0; the other connections use ports that the system chooses
  int rank = 0;
  int size = 1; ///< number of ranks, at most 1,024; each rank has two connections to every other
  std::chrono::milliseconds join_within{60'000}; ///< time until the last rank must have joined
  std::chrono::milliseconds silence{5'000};      ///< a rank that sends no beat for this long counts as gone
};

/// Waits until all ranks are connected with each other. The death of a rank's process is noticed when the
/// kernel closes its connections; a rank that is stopped or cut off is noticed by its missing beats. The
/// ranks prove to each other that they know the secret. What they send afterwards is neither encrypted nor
/// signed.
///
/// Fails with `invalid` for bad settings, `conflict` where the rank has joined already, `io`, `timeout` where
/// ranks are missing, `unreachable` where one died meanwhile.
result<std::unique_ptr<collective>> join_tcp(const tcp_group& group);

} // namespace troupe
