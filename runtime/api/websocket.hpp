#pragma once
// The server's side of RFC 6455: the answer to a handshake, frames in, frames out. Pure.

#include "model/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe::api {

/// `Sec-WebSocket-Accept` for a client's `Sec-WebSocket-Key`; empty where the key is not 16 bytes in base64.
std::string websocket_accept(std::string_view key);

/// Frames of a client become messages. Not thread-safe.
class websocket_reader {
public:
  enum class kind { text, binary, ping, close };
  struct message {
    kind what = kind::text;
    std::string bytes;
  };
  explicit websocket_reader(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  /// Appends the messages that these bytes complete. errc::invalid where they are no frames of a client;
  /// errc::no_space where a message is longer than the limit: the connection has to end.
  result<void> take(std::string_view bytes, std::vector<message>& into);

private:
  std::size_t most_bytes_;
  std::string waiting_, whole_; ///< bytes of a frame; of a message in several frames
  int opcode_ = 0;              ///< of `whole_`; 0: there is none
};

std::string websocket_text(std::string_view text);
std::string websocket_pong(std::string_view bytes);
/// `code`: 1000 done, 1002 protocol, 1008 not allowed, 1009 too large, 1013 try again.
std::string websocket_close(int code, std::string_view why);

} // namespace troupe::api
