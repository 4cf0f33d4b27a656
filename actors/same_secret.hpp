#pragma once
// Compares tokens in a time that does not tell how much of a token was right; it may tell the length.

#include <string_view>

#include <sodium.h>

namespace troupe {

inline bool same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

} // namespace troupe
