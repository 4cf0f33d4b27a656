#pragma once
// The HTTP listener of an agent: what its tasks know as DET_MASTER. It hands every request to the master and
// the answer back, so that a task holds no address of the master and outlives its restarts.
//
// While the master is away a request waits, and is sent again where the connection broke before an answer, if
// a repeat is harmless: by its method, or because a task's own token came with it (what tasks report is safe
// to repeat). After `hold` the answer is 503, of which the stock client makes a retry; 502 says that nobody
// knows whether the request was carried out. Streams and long polls pass as they come. One thread serves all
// connections.

#include "model/result.hpp"
#include "runtime/http/master_address.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace troupe::forward {

using http::master_address;

struct forward_options {
  std::uint16_t port = 0; ///< port on 127.0.0.1; 0: any free one
  /// Where the master is now; nothing while that is not known. From the forwarder's thread; must not block.
  std::function<std::optional<master_address>()> master;
  std::size_t max_connections = 512;      ///< more wait to be accepted; above half of it none is kept open
  std::size_t body_bytes = 130u << 20;    ///< limit of one request's body
  std::size_t body_memory = 256u << 20;   ///< limit of all bodies together; beyond it the answer is 503
  std::chrono::milliseconds hold{60'000}; ///< a request waits so long for the master
  std::chrono::milliseconds head_time{10'000}; ///< limit for the head of a request, from its first byte
  std::chrono::milliseconds idle_time{75'000}; ///< between requests
  std::chrono::milliseconds body_time{
    20'000}; ///< limit without a byte of the request's body, or of the answer taken
};

class forwarder {
public:
  /// errc::conflict where the port is taken.
  static result<std::unique_ptr<forwarder>> start(forward_options how);
  ~forwarder(); ///< stops

  std::uint16_t port() const;
  void stop(); ///< closes every connection

private:
  struct inside;
  explicit forwarder(std::unique_ptr<inside> x);
  std::unique_ptr<inside> inside_;
};

} // namespace troupe::forward
