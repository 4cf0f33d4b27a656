#pragma once
// Durations as people write them: 0s, 200ms, 30s, 5m, 2h, 90d. A number without a unit is not a duration.

#include "model/time.hpp"

#include <optional>
#include <string_view>

namespace troupe::config {

/// Returns nothing where `text` is not a duration, or above 100 years.
std::optional<duration> parse_duration(std::string_view text);

/// Durations as Go writes them, and so Determined's configurations and clients: "1h30m", "90s", "5m0s", "0".
/// Returns nothing where `text` is not a duration, or above 300 years.
std::optional<duration> go_duration(std::string_view text);

} // namespace troupe::config
