#include "runtime/api/websocket.hpp"

#include "runtime/api/context.hpp"

#include <openssl/sha.h>

namespace troupe::api {
namespace {

enum opcode { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

std::string frame(int opcode, std::string_view bytes) {
  std::string out(1, static_cast<char>(0x80 | opcode));
  const auto put = [&](std::size_t count) {
    for (auto shift = 8 * count; shift > 0; shift -= 8)
      out += static_cast<char>(bytes.size() >> (shift - 8) & 0xff);
  };
  if (bytes.size() < 126) {
    out += static_cast<char>(bytes.size());
  } else if (bytes.size() <= 0xffff) {
    out += static_cast<char>(126);
    put(2);
  } else {
    out += static_cast<char>(127);
    put(8);
  }
  return out.append(bytes);
}

} // namespace

std::string websocket_accept(std::string_view key) {
  if (key.size() != 24 || !key.ends_with("==") ||
      key.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") != key.npos)
    return {};
  const auto both = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; // the constant of RFC 6455
  unsigned char digest[SHA_DIGEST_LENGTH];
  SHA1(reinterpret_cast<const unsigned char*>(both.data()), both.size(), digest);
  return to_base64({reinterpret_cast<const char*>(digest), sizeof digest});
}

result<void> websocket_reader::take(std::string_view bytes, std::vector<message>& into) {
  waiting_ += bytes;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(waiting_[at]); };
  for (;;) {
    if (waiting_.size() < 2)
      return {};
    const bool last = byte(0) & 0x80;
    const int what = byte(0) & 0x0f;
    if (byte(0) & 0x70)
      return error{errc::invalid, "no extension was agreed on"};
    if (!(byte(1) & 0x80))
      return error{errc::invalid, "a client's frames are masked"};
    std::uint64_t size = byte(1) & 0x7f;
    std::size_t head = 2;
    if (size >= 126) {
      const std::size_t count = size == 126 ? 2 : 8;
      if (waiting_.size() < head + count)
        return {};
      size = 0;
      for (std::size_t i = 0; i < count; ++i)
        size = size << 8 | byte(head + i);
      head += count;
    }
    const bool control = what >= close;
    if (control && (size > 125 || !last))
      return error{errc::invalid, "a frame of control is whole and short"};
    if (size > most_bytes_ || whole_.size() + size > most_bytes_)
      return error{errc::no_space, "a message has at most " + std::to_string(most_bytes_) + " bytes"};
    if (waiting_.size() < head + 4 + size)
      return {};
    std::string body(waiting_, head + 4, size);
    for (std::size_t i = 0; i < body.size(); ++i)
      body[i] = static_cast<char>(body[i] ^ waiting_[head + i % 4]);
    waiting_.erase(0, head + 4 + size);
    if (what == close) {
      into.push_back({kind::close, std::move(body)});
    } else if (what == ping) {
      into.push_back({kind::ping, std::move(body)});
    } else if (what == text || what == binary || what == continuation) {
      if ((what == continuation) != (opcode_ != 0))
        return error{errc::invalid, "a message's frames follow each other"};
      if (what != continuation)
        opcode_ = what;
      whole_ += body;
      if (last) {
        into.push_back({opcode_ == text ? kind::text : kind::binary, std::move(whole_)});
        whole_.clear();
        opcode_ = 0;
      }
    } else if (what != pong) {
      return error{errc::invalid, "no frame of this kind is known"};
    }
  }
}

std::string websocket_text(std::string_view text_of) { return frame(text, text_of); }
std::string websocket_pong(std::string_view bytes) { return frame(pong, bytes); }
std::string websocket_close(int code, std::string_view why) {
  std::string body{static_cast<char>(code >> 8), static_cast<char>(code & 0xff)};
  return frame(close, body.append(why.substr(0, 120)));
}

} // namespace troupe::api
