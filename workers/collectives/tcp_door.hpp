#pragma once
// How ranks find and know each other: a listener that lets in a rank which proves the secret, and the side
// that dials.

#include "model/result.hpp"
#include "workers/owned_fd.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace troupe {

enum class tcp_channel : std::uint32_t { control = 0, data = 1 };

/// A rank that has come through a door.
struct tcp_guest {
  std::uint64_t group = 0; ///< hash of the group's name
  std::uint32_t rank = 0;
  tcp_channel channel{};
  std::uint32_t port = 0; ///< port of the guest's own door
  workers::owned_fd fd;   ///< does not block
  std::string address;    ///< numeric address of the guest
};

std::uint64_t hash_of(const std::string& group);

/// A listener with a thread. Messages of the handshake have a fixed length. At most 256 guests are heard at a
/// time, each for 10 s; later ones wait in the system's queue.
class tcp_door {
public:
  /// Listens on `port` (0: any) of the numeric address `address`; empty: of all addresses.
  static result<std::unique_ptr<tcp_door>> open(const std::string& address, int port, std::string secret);
  ~tcp_door();
  tcp_door(const tcp_door&) = delete;

  int port() const { return port_; }
  /// The next guest of the group, or none within the time.
  std::optional<tcp_guest> take(std::uint64_t group, std::chrono::milliseconds at_most);

private:
  struct newcomer;
  tcp_door() = default;
  void serve();
  bool advance(newcomer& x); ///< false: remove it from the newcomers, as a guest or closed

  std::string secret_;
  workers::owned_fd listener_, stop_;
  int port_ = 0;
  std::mutex lock_;
  std::condition_variable come_;
  std::list<tcp_guest> waiting_; ///< proven guests; those of a group that nobody joins are dropped above 256
  std::thread thread_;
};

using tcp_deadline = std::chrono::steady_clock::time_point;

/// Opens a connection that is not proven yet.
result<workers::owned_fd> dial_tcp(const std::string& host, int port, tcp_deadline until);
/// The numeric address of this end, or of the other end.
std::string local_address(int fd);
/// Proves itself as `me` to the door at the other end, and asks the same of the door. Fails with `denied`
/// where the door does not know the secret.
result<void> greet(int fd, const std::string& secret, const tcp_guest& me, tcp_deadline until);

} // namespace troupe
