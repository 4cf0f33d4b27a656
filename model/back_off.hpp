#pragma once
// How long to wait before the next try.

#include <algorithm>
#include <chrono>

namespace troupe {

/// The wait after `failures` failures in a row: nothing after none, `first` after one, then twice as long
/// each time, at most `longest`.
template <class Duration>
constexpr Duration back_off(int failures, Duration first, Duration longest) {
  if (failures <= 0)
    return Duration::zero();
  auto wait = first;
  for (int n = 1; n < failures && wait < longest; ++n)
    wait = wait + wait;
  return std::min(wait, longest);
}

} // namespace troupe
