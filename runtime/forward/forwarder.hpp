#pragma once
// The HTTP listener of an agent, which its tasks know as DET_MASTER. It passes every request to the master
// and the answer back, so that a task needs no address of the master and continues while the master restarts.
//
// While the master is not reachable, a request waits. If the connection broke before an answer, the request
// is sent again, provided that a repeat is harmless: because of its method, or because a task's own token
// came with it (what tasks report may be repeated). After `hold`, the answer is 503, after which the stock
// client tries again; 502 says that nobody knows whether the request was carried out. Streams and long polls
// are passed on as they arrive. One thread serves all connections.

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
  /// Returns the master's present address; nothing while it is not known. Called on the forwarder's thread;
  /// must not block.
  std::function<std::optional<master_address>()> master;
  /// Limit of open connections; further ones wait to be accepted. Above half the limit, no connection is kept
  /// open.
  std::size_t max_connections = 512;
  std::size_t body_bytes = 130u << 20;         ///< limit of one request's body
  std::size_t body_memory = 256u << 20;        ///< limit of all bodies together; beyond it the answer is 503
  std::chrono::milliseconds hold{60'000};      ///< limit of a request's wait for the master
  std::chrono::milliseconds head_time{10'000}; ///< limit for the head of a request, from its first byte
  std::chrono::milliseconds idle_time{75'000}; ///< limit of the silence between two requests
  /// Limit of the time without a byte of the request's body, or without the client's taking a byte of the
  /// answer.
  std::chrono::milliseconds body_time{20'000};
};

class forwarder {
public:
  /// errc::conflict if the port is taken.
  static result<std::unique_ptr<forwarder>> start(forward_options how);
  ~forwarder(); ///< stops the forwarder

  std::uint16_t port() const;
  void stop(); ///< closes every connection

private:
  struct inside;
  explicit forwarder(std::unique_ptr<inside> x);
  std::unique_ptr<inside> inside_;
};

} // namespace troupe::forward
