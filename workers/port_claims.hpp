#pragma once
// TCP ports that are promised to one task each. A claim is an abstract Unix socket named after the port,
// which the kernel gives to one process of the network namespace only: so agents that share a host do not
// promise the same port, and a dead agent's claims are free at once.

#include "workers/owned_fd.hpp"

#include "model/result.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe::workers {

/// Not thread-safe.
class port_claims {
public:
  /// For each of `bases` the lowest port from there on that nobody has claimed and nobody listens on; all
  /// different. errc::busy where 1000 ports in a row are taken.
  result<std::vector<int>> claim(const std::string& owner, const std::vector<int>& bases);
  /// Claims the ports that a task which outlived its agent uses already. What another one has claimed
  /// meanwhile stays his.
  void restore(const std::string& owner, const std::vector<int>& ports);
  void release(const std::string& owner) { held_.erase(owner); }

private:
  std::map<std::string, std::vector<owned_fd>> held_;
};

} // namespace troupe::workers
