#pragma once
// The levels of what actors log, each at its number; `commands::log_levels` is their list for people.

#include <algorithm>
#include <iterator>
#include <string_view>

namespace troupe {

inline constexpr const char* log_level_names[] = {"error", "warning", "info", "debug"};

/// `name` is one of them.
inline int log_level_of(std::string_view name) {
  return static_cast<int>(std::find(std::begin(log_level_names), std::end(log_level_names), name) -
                          std::begin(log_level_names));
}

} // namespace troupe
