#pragma once
// Words of command lines of sh.

#include <string>

namespace troupe {

/// Quotes the text as one word of sh.
inline std::string sh_word(const std::string& text) {
  std::string out = "'";
  for (const char c : text)
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

} // namespace troupe
