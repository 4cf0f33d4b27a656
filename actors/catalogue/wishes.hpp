#pragma once
// Helps the machines of the catalogue to carry out a wish: members that the wish names change, all others
// stay.

#include "model/commands/check_account.hpp"
#include "model/pack.hpp"
#include "model/time.hpp"

#include <optional>

namespace troupe {

template <class T>
void take(const std::optional<T>& wish, T& to) {
  if (wish)
    to = *wish;
}

/// Whether two facts say the same, apart from who did it and when.
template <class Fact>
bool same(Fact a, const Fact& b) {
  a.at = b.at;
  a.by = b.by;
  return pack(a) == pack(b);
}

/// Whether `x` says something else than `old`; then `by` and `now` are put into it.
template <class Fact>
bool differs(Fact& x, const Fact& old, const std::string& by, time_point now) {
  if (same(x, old))
    return false;
  x.at = now;
  x.by = by;
  return true;
}

} // namespace troupe
