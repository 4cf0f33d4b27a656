#pragma once
// Server-sent events, from bytes. Pure.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::client {

struct sse_event {
  std::string id;   ///< the last id that the stream gave; empty before the first
  std::string type; ///< "message" where the stream names none
  std::string data; ///< lines joined by a newline
};

/// Takes the bytes of a text/event-stream in parts of any size. A line or an event beyond `most_bytes` is
/// dropped.
class sse_parser {
public:
  explicit sse_parser(std::size_t most_bytes = 16 << 20) : most_bytes_(most_bytes) {}
  std::vector<sse_event> feed(std::string_view bytes);

private:
  void take_line(std::string_view line, std::vector<sse_event>& out);

  std::size_t most_bytes_;
  std::string line_;
  bool after_cr_ = false, has_data_ = false, overflown_ = false;
  sse_event next_;
};

} // namespace troupe::client
