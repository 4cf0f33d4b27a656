#pragma once
// The levels of what actors log, each at its number; `commands::log_levels` lists them for people.

#include <algorithm>
#include <iterator>
#include <string_view>

namespace troupe {

inline constexpr const char* log_level_names[] = {"error", "warning", "info", "debug"};

/// The number of a level. `name` has to be a level.
inline int log_level_of(std::string_view name) {
  return static_cast<int>(std::find(std::begin(log_level_names), std::end(log_level_names), name) -
                          std::begin(log_level_names));
}

} // namespace troupe
