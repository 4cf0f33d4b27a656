#include "workers/port_claims.hpp"

#include <arpa/inet.h>
#include <cstdio>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace troupe::workers {
namespace {

constexpr int most_tries = 4000; ///< a task that speaks to other tasks claims three
constexpr std::size_t most_idle = 64;

owned_fd new_claim_of(int port) {
  owned_fd fd{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  // The first byte is zero: such a name is not in the file system.
  int size = std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "troupe-port-%d", port);
  auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path)) + 1 + static_cast<socklen_t>(size);
  if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), bytes) != 0)
    return {};
  return fd;
}

bool somebody_listens(int port) {
  owned_fd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  int on = 1; // a port that only waits for its last packets counts as free
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(static_cast<std::uint16_t>(port));
  return !fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0;
}

} // namespace

owned_fd port_claims::claim_of(int port) {
  if (auto idle = idle_.extract(port))
    return std::move(idle.mapped());
  return new_claim_of(port);
}

result<std::vector<int>> port_claims::claim(const std::string& owner, const std::vector<int>& bases) {
  std::vector<int> ports;
  std::vector<held_port> claims;
  for (int base : bases) {
    owned_fd claimed;
    int port = base;
    for (; port < base + most_tries && port <= 65535; ++port) {
      if (mine_.contains(port))
        continue;
      claimed = claim_of(port);
      if (claimed && !somebody_listens(port))
        break;
      claimed.reset();
    }
    if (!claimed)
      return error{errc::busy,
                   "no port from " + std::to_string(base) + " to " + std::to_string(port - 1) + " is free"};
    ports.push_back(port);
    claims.push_back({port, std::move(claimed)});
  }
  release(owner);
  for (const auto& one : claims)
    mine_.insert(one.port);
  held_[owner] = std::move(claims);
  return ports;
}

void port_claims::restore(const std::string& owner, const std::vector<int>& ports) {
  release(owner);
  auto& claims = held_[owner];
  for (int port : ports)
    if (auto claimed = claim_of(port)) {
      claims.push_back({port, std::move(claimed)});
      mine_.insert(port);
    }
}

void port_claims::release(const std::string& owner) {
  if (auto it = held_.find(owner); it != held_.end()) {
    for (auto& one : it->second) {
      mine_.erase(one.port);
      if (idle_.size() < most_idle)
        idle_.emplace(one.port, std::move(one.claim));
    }
    held_.erase(it);
  }
}

} // namespace troupe::workers
