#pragma once
// Words of sh's command lines.

#include <string>

namespace troupe {

/// The text as one word of sh.
inline std::string sh_word(const std::string& text) {
  std::string out = "'";
  for (const char c : text)
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

} // namespace troupe
