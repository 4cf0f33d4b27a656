#include "model/config/duration_text.hpp"

#include <charconv>

namespace troupe::config {

std::optional<duration> parse_duration(std::string_view text) {
  static constexpr std::pair<std::string_view, std::int64_t> units[] = {
    {"ms", 1'000}, {"s", 1'000'000}, {"m", 60'000'000}, {"h", 3'600'000'000}, {"d", 86'400'000'000}};
  constexpr std::int64_t longest = 100 * 365 * units[4].second;
  std::int64_t count = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (fault != std::errc{} || count < 0)
    return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& [name, us] : units)
    if (unit == name && count <= longest / us)
      return duration(count * us);
  return std::nullopt;
}

std::optional<duration> go_duration(std::string_view text) {
  if (text == "0")
    return duration{0};
  double seconds = 0;
  const char *at = text.data(), *end = at + text.size();
  if (at == end)
    return std::nullopt;
  while (at != end) {
    double number = 0;
    const auto [rest, fault] = std::from_chars(at, end, number, std::chars_format::fixed);
    if (fault != std::errc{} || !(number >= 0))
      return std::nullopt;
    const auto* unit_end = rest;
    while (unit_end != end && *unit_end >= 'a' && *unit_end <= 'z')
      ++unit_end;
    const std::string_view unit(rest, static_cast<std::size_t>(unit_end - rest));
    const double scale = unit == "h"    ? 3600
                         : unit == "m"  ? 60
                         : unit == "s"  ? 1
                         : unit == "ms" ? 0.001
                         : unit == "us" ? 1e-6
                                        : 0;
    if (scale == 0)
      return std::nullopt;
    seconds += number * scale;
    at = unit_end;
  }
  if (!(seconds <= 1e10)) // about 300 years
    return std::nullopt;
  return std::chrono::duration_cast<duration>(std::chrono::duration<double>(seconds));
}

} // namespace troupe::config
