#pragma once
// The lines of a stream that comes in parts.

#include <algorithm>
#include <string>
#include <string_view>

namespace troupe::client {

/// Calls `each` with every whole line at the start of `bytes`, without its end, and takes them out: once, as
/// a part may have thousands of lines. Stops where `each` returns false. `over`: nothing follows, so the rest
/// is a line, too.
template <class Each>
void take_whole_lines(std::string& bytes, bool over, const Each& each) {
  std::size_t from = 0;
  bool goes_on = true;
  while (goes_on && from < bytes.size()) {
    auto end = bytes.find('\n', from);
    if (end == std::string::npos && !over)
      break;
    end = std::min(end, bytes.size());
    goes_on = each(std::string_view(bytes).substr(from, end - from));
    from = std::min(end + 1, bytes.size());
  }
  bytes.erase(0, from);
}

} // namespace troupe::client
