#pragma once
// Wall time. Pure code never reads the clock: its callers pass the time in.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

using namespace std::chrono_literals;
using time_point = std::chrono::sys_time<std::chrono::microseconds>;
using duration = std::chrono::microseconds;

/// RFC 3339 in UTC with six fractional digits: "2026-11-21T15:04:05.000000Z".
std::string to_rfc3339(time_point at);
/// Reads RFC 3339, also with an offset from UTC; none where `text` is anything else.
std::optional<time_point> from_rfc3339(std::string_view text);

} // namespace troupe
