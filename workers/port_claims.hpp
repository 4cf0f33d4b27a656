#pragma once
// TCP ports that are promised to one task each. A claim is an abstract Unix socket named after the port,
// which the kernel gives to only one process of the network namespace. So agents that share a host do not
// promise the same port, and a dead agent's claims are free at once.

#include "workers/owned_fd.hpp"

#include "model/result.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace troupe::workers {

/// Not thread-safe.
class port_claims {
public:
  /// For each of `bases`, claims the lowest port from there on that nobody has claimed and nobody listens on;
  /// all are different. Fails with errc::busy where 4000 ports in a row are taken.
  result<std::vector<int>> claim(const std::string& owner, const std::vector<int>& bases);
  /// Claims the ports that a task which outlived its agent uses already. A port that another agent has
  /// claimed meanwhile stays with that agent.
  void restore(const std::string& owner, const std::vector<int>& ports);
  void release(const std::string& owner);

private:
  struct held_port {
    int port = 0;
    owned_fd claim;
  };
  owned_fd claim_of(int port);

  std::map<std::string, std::vector<held_port>> held_;
  std::set<int> mine_; ///< ports in `held_`, for which the kernel need not be asked
  /// Claims without an owner, at most 64, so that the next owner gets them without asking the kernel again.
  std::map<int, owned_fd> idle_;
};

} // namespace troupe::workers
