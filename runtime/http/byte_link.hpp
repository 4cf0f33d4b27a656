#pragma once
// A connection that was HTTP and has been taken over: bytes in both directions. Knows neither sockets nor
// Boost.

#include "model/result.hpp"
#include "workers/owned_fd.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace troupe::http {

/// Any thread may call any function; answers arrive on the connection's own thread. No answer arrives after
/// `close`, after the end of this object (which closes the connection), or after the end of the server. A
/// call after the end of the connection is answered with errc::unreachable, on the caller's thread.
class byte_link {
public:
  virtual ~byte_link() = default;
  /// Reads the bytes that come next, a few thousand at a time; "" when the other side sends no more. One call
  /// at a time.
  virtual void read(std::function<void(result<std::string>)> done) = 0;
  /// Writes all bytes; the other side must take them within the time of an answer. One call at a time.
  virtual void write(std::string bytes, std::function<void(result<void>)> done) = 0;
  /// Sets the time in which the other side must take what is written from now on.
  virtual void be_patient(std::chrono::milliseconds) {}
  /// Makes the other side read an end; it may continue to send.
  virtual void end_writing() = 0;
  virtual void close() = 0;
  /// Closes the connection so that the other side sees a failure, not an end.
  virtual void abort() { close(); }
};

/// Takes the connection over after "101 Switching Protocols" was sent.
using taker = std::function<void(std::shared_ptr<byte_link>)>;
using socket_taker = std::function<void(workers::owned_fd)>;

} // namespace troupe::http
