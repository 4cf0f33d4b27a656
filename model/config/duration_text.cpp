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

} // namespace troupe::config
