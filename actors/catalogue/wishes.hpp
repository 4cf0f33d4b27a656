#pragma once
// What machines of the catalogue do with a wish: what it names becomes different, the rest stays.

#include "model/pack.hpp"

#include <optional>

namespace troupe {

template <class T>
void take(const std::optional<T>& wish, T& to) {
  if (wish)
    to = *wish;
}

/// Whether two facts say the same, but for who did it and when.
template <class Fact>
bool same(Fact a, const Fact& b) {
  a.at = b.at;
  a.by = b.by;
  return pack(a) == pack(b);
}

} // namespace troupe
