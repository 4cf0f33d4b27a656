#pragma once
// The server's side of RFC 6455: the answer to a handshake, frames in, frames out. Pure.

#include "model/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe::api {

/// The value of `Sec-WebSocket-Accept` for a client's `Sec-WebSocket-Key`; empty where the key is not 16
/// bytes in base64.
std::string websocket_accept(std::string_view key);

/// Makes messages of a client's frames. Not thread-safe.
class websocket_reader {
public:
  enum class kind { text, binary, ping, close };
  struct message {
    kind what = kind::text;
    std::string bytes;
  };
  explicit websocket_reader(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  /// Appends the messages that these bytes complete. Fails with errc::invalid where the bytes are not frames
  /// of a client, and with errc::no_space where a message is longer than the limit. After a failure the
  /// connection has to end.
  result<void> take(std::string_view bytes, std::vector<message>& into);

private:
  std::size_t most_bytes_;
  std::string waiting_, whole_; ///< bytes of an incomplete frame; bytes of a message in several frames
  int opcode_ = 0;              ///< opcode of `whole_`; 0: no message has begun
};

std::string websocket_text(std::string_view text);
std::string websocket_pong(std::string_view bytes);
/// `code`: 1000 done, 1002 error of the protocol, 1008 not allowed, 1009 too large, 1013 try again.
std::string websocket_close(int code, std::string_view why);

} // namespace troupe::api
