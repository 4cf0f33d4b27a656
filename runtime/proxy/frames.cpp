#include "runtime/proxy/frames.hpp"

#include "model/chosen_name.hpp"

#include <algorithm>
#include <openssl/evp.h>
#include <openssl/sha.h>

namespace troupe::proxy {
namespace {

constexpr std::uint16_t protocol_error = 1002, unacceptable = 1003, no_text = 1007, too_big = 1009;

bool is_control(frame_kind kind) { return static_cast<int>(kind) >= 8; }

std::string base64(const unsigned char* bytes, std::size_t n) {
  std::string out(4 * ((n + 2) / 3), '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), bytes, static_cast<int>(n));
  return out;
}

/// The fault in the payload of a close frame (RFC 6455, 5.5.1 and 7.4.1); none if there is no fault.
std::optional<frame_reader::fault> wrong_goodbye(std::string_view payload) {
  if (payload.empty())
    return std::nullopt;
  if (payload.size() == 1)
    return frame_reader::fault{protocol_error, "a close frame with half a code"};
  const int code = static_cast<unsigned char>(payload[0]) << 8 | static_cast<unsigned char>(payload[1]);
  const bool known =
    (code >= 1000 && code <= 1014 && (code < 1004 || code > 1006)) || (code >= 3000 && code < 5000);
  if (!known)
    return frame_reader::fault{protocol_error, "a close frame with a code that must not be sent"};
  if (!code_points(payload.substr(2)))
    return frame_reader::fault{no_text, "a close frame whose reason is no UTF-8"};
  return std::nullopt;
}

bool is_key(std::string_view key) {
  const auto sound = [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '/';
  };
  return key.size() == 24 && key.ends_with("==") && std::all_of(key.begin(), key.begin() + 22, sound);
}

} // namespace

std::string accept_of(std::string_view key) {
  if (!is_key(key))
    return {};
  const auto text = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  unsigned char digest[SHA_DIGEST_LENGTH];
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return base64(digest, sizeof digest);
}

std::string frame_of(frame_kind kind, std::string_view payload) {
  std::string out;
  out.reserve(payload.size() + 10);
  out += static_cast<char>(0x80 | static_cast<int>(kind));
  const std::uint64_t n = payload.size();
  if (n < 126) {
    out += static_cast<char>(n);
  } else {
    const int bytes = n < 65536 ? 2 : 8;
    out += static_cast<char>(bytes == 2 ? 126 : 127);
    for (int i = bytes - 1; i >= 0; --i)
      out += static_cast<char>(n >> (8 * i) & 0xff);
  }
  return out += payload;
}

std::string close_frame(std::uint16_t code, std::string_view reason) {
  std::string payload{static_cast<char>(code >> 8), static_cast<char>(code & 0xff)};
  return frame_of(frame_kind::close, payload += reason.substr(0, 100));
}

/// The size of the frame's head as far as it is known: 2, and the exact size once the second byte has
/// arrived.
std::size_t frame_reader::head_size() const {
  if (head_.size() < 2)
    return 2;
  const auto second = static_cast<unsigned char>(head_[1]);
  const int length = second & 0x7f;
  return 2 + (length == 126 ? 2 : length == 127 ? 8 : 0) + (second & 0x80 ? 4 : 0);
}

std::optional<frame_reader::fault> frame_reader::read_head() {
  const auto byte = [this](std::size_t i) { return static_cast<unsigned char>(head_[i]); };
  const int opcode = byte(0) & 0x0f;
  if (byte(0) & 0x70)
    return fault{protocol_error, "a reserved bit is set"};
  if (!(byte(1) & 0x80))
    return fault{protocol_error, "a frame of a client has to be masked"};
  if ((opcode > 2 && opcode < 8) || opcode > 10)
    return fault{protocol_error, "an unknown kind of frame"};
  kind_ = static_cast<frame_kind>(opcode);
  if (kind_ == frame_kind::text)
    return fault{unacceptable, "bytes of a tunnel travel in binary frames"};
  const bool whole = byte(0) & 0x80;
  if (kind_ == frame_kind::continuation || (!whole && !is_control(kind_)))
    return fault{unacceptable, "a message in several frames"};
  if (!whole)
    return fault{protocol_error, "a control frame in pieces"};
  left_ = byte(1) & 0x7f;
  std::size_t next = 2;
  if (left_ >= 126) {
    const std::size_t bytes = left_ == 126 ? 2 : 8;
    left_ = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      left_ = left_ << 8 | byte(next++);
    if (left_ < (bytes == 2 ? 126u : 65536u))
      return fault{protocol_error, "a length that is longer than it has to be"};
  }
  if (is_control(kind_) && left_ > 125)
    return fault{protocol_error, "a control frame over 125 bytes"};
  if (left_ > most_payload)
    return fault{too_big, "a frame over " + std::to_string(most_payload) + " bytes"};
  for (auto& one : mask_)
    one = byte(next++);
  masked_ = 0;
  control_.clear();
  return std::nullopt;
}

frame_reader::found frame_reader::feed(std::string_view came) {
  found out;
  while (at_ != at::over) {
    if (at_ == at::head) {
      while (head_.size() < head_size() && !came.empty()) {
        head_ += came.front();
        came.remove_prefix(1);
      }
      if (head_.size() < head_size())
        return out;
      out.wrong = read_head();
      head_.clear();
      at_ = out.wrong ? at::over : at::payload;
      continue;
    }
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left_, came.size()));
    auto& to = is_control(kind_) ? control_ : out.bytes;
    const auto begin = to.size();
    to.append(came.substr(0, n));
    for (std::size_t i = 0; i < n; ++i)
      to[begin + i] = static_cast<char>(static_cast<unsigned char>(to[begin + i]) ^ mask_[(masked_ + i) & 3]);
    masked_ = (masked_ + n) & 3;
    left_ -= n;
    came.remove_prefix(n);
    if (left_ > 0)
      return out;
    at_ = at::head;
    if (kind_ == frame_kind::ping)
      out.pong = std::move(control_);
    if (kind_ == frame_kind::close) {
      out.wrong = wrong_goodbye(control_);
      out.closed = !out.wrong;
      at_ = at::over;
    }
    if (came.empty())
      return out;
  }
  return out;
}

} // namespace troupe::proxy
