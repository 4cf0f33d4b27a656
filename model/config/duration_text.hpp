#pragma once
// Durations as people write them: 0s, 200ms, 30s, 5m, 2h, 90d. A number without a unit is none.

#include "model/time.hpp"

#include <optional>
#include <string_view>

namespace troupe::config {

/// Nothing where `text` is not a duration, or above 100 years.
std::optional<duration> parse_duration(std::string_view text);

/// As Go writes them, which Determined's configurations and clients do: "1h30m", "90s", "5m0s", "0". Nothing
/// where `text` is not a duration, or above 300 years.
std::optional<duration> go_duration(std::string_view text);

} // namespace troupe::config
