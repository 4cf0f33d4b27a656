#pragma once
// A connection that was HTTP and has been taken over: bytes both ways. Knows no socket and no Boost.

#include "model/result.hpp"
#include "workers/owned_fd.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace troupe::http {

/// From any thread; answers come on the connection's own, and none after `close`, the end of this object,
/// which closes it, or the end of the server. A call after the end of the connection is answered
/// errc::unreachable, by the caller's thread.
class byte_link {
public:
  virtual ~byte_link() = default;
  /// The bytes that come next, a few thousand at a time; "" when the other side sends no more. One at a time.
  virtual void read(std::function<void(result<std::string>)> done) = 0;
  /// All of them; the other side has the time of an answer to take them. One at a time.
  virtual void write(std::string bytes, std::function<void(result<void>)> done) = 0;
  /// The time that the other side has to take what is written, from now on.
  virtual void be_patient(std::chrono::milliseconds) {}
  /// The other side reads an end, and may go on sending.
  virtual void end_writing() = 0;
  virtual void close() = 0;
  /// Closes it so that the other side sees a break, not an end.
  virtual void abort() { close(); }
};

/// Gets the connection after "101 Switching Protocols" has gone out.
using taker = std::function<void(std::shared_ptr<byte_link>)>;
using socket_taker = std::function<void(workers::owned_fd)>;

} // namespace troupe::http
