#include "runtime/client/sse.hpp"

#include <utility>

namespace troupe::client {

std::vector<sse_event> sse_parser::feed(std::string_view bytes) {
  std::vector<sse_event> out;
  for (char c : bytes) {
    bool second_of_pair = std::exchange(after_cr_, c == '\r') && c == '\n';
    if (second_of_pair)
      continue;
    if (c == '\r' || c == '\n') {
      take_line(line_, out);
      line_.clear();
    } else if (line_.size() < most_bytes_) {
      line_ += c;
    } else {
      overflown_ = true;
    }
  }
  return out;
}

void sse_parser::take_line(std::string_view line, std::vector<sse_event>& out) {
  if (line.empty()) {
    if (has_data_ && !overflown_) {
      if (next_.type.empty())
        next_.type = "message";
      out.push_back(next_);
    }
    next_.type.clear();
    next_.data.clear();
    has_data_ = overflown_ = false;
    return;
  }
  if (line[0] == ':') // keeps the connection alive
    return;
  auto colon = line.find(':');
  auto field = line.substr(0, colon);
  auto text = colon == line.npos ? std::string_view{} : line.substr(colon + 1);
  if (text.starts_with(' '))
    text.remove_prefix(1);
  if (field == "id") {
    next_.id = text;
  } else if (field == "event") {
    next_.type = text;
  } else if (field == "data") {
    if (next_.data.size() + text.size() > most_bytes_) {
      overflown_ = true;
      return;
    }
    if (has_data_)
      next_.data += '\n';
    next_.data += text;
    has_data_ = true;
  }
}

} // namespace troupe::client
