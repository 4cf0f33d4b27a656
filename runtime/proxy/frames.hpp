#pragma once
// WebSocket frames of a tunnel, on the side that answers: bytes travel in binary frames. Pure, except for the
// digest of the handshake.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::proxy {

/// The `Sec-WebSocket-Accept` for a `Sec-WebSocket-Key`; empty if the key is not 16 bytes in base64.
std::string accept_of(std::string_view key);

enum class frame_kind : std::uint8_t {
  continuation = 0,
  text = 1,
  binary = 2,
  close = 8,
  ping = 9,
  pong = 10
};

/// A whole, unmasked frame.
std::string frame_of(frame_kind kind, std::string_view payload);
/// A close frame with a code (RFC 6455, 7.4.1) and a reason of at most 100 bytes.
std::string close_frame(std::uint16_t code, std::string_view reason);

/// Reads what a client sends, in pieces of any size. A payload is passed on as it arrives: of a frame, only
/// its head and the payload of a control frame (at most 125 bytes) are kept.
class frame_reader {
public:
  static constexpr std::uint64_t most_payload = 16u << 20; ///< limit of one frame's payload

  struct fault {
    std::uint16_t code = 0; ///< code for the close frame
    std::string reason;
  };
  struct found {
    std::string bytes;               ///< payload of binary frames, unmasked
    std::optional<std::string> pong; ///< answer to the newest ping
    bool closed = false;             ///< the client sent a close frame; what follows is not read
    std::optional<fault> wrong;      ///< why the connection has to end; `bytes` arrived before that
  };
  /// Takes the next bytes. After `closed` or `wrong` it takes no more.
  found feed(std::string_view came);

private:
  enum class at { head, payload, over };
  std::size_t head_size() const;
  std::optional<fault> read_head();

  at at_ = at::head;
  std::string head_;
  frame_kind kind_ = frame_kind::binary;
  std::uint64_t left_ = 0;
  std::array<unsigned char, 4> mask_{};
  std::size_t masked_ = 0; ///< number of bytes of this payload so far, modulo 4
  std::string control_;
};

} // namespace troupe::proxy
