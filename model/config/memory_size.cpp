#include "model/config/memory_size.hpp"

#include <charconv>

namespace troupe::config {

std::optional<std::int64_t> parse_memory_size(std::string_view text) {
  auto end = text.find_first_not_of("0123456789.");
  auto digits = text.substr(0, end);
  auto unit = end == std::string_view::npos ? std::string_view() : text.substr(end);
  if (digits.empty() || digits.back() == '.' || digits.find('.') != digits.rfind('.'))
    return std::nullopt;
  std::string_view number = digits;
  if (unit.starts_with(' '))
    unit.remove_prefix(1);
  double factor = 1;
  if (!unit.empty()) {
    constexpr std::string_view prefixes = "kmgtp";
    char first = static_cast<char>(unit[0] | 0x20);
    auto power = prefixes.find(first);
    if (power != std::string_view::npos) {
      for (std::size_t i = 0; i <= power; ++i)
        factor *= 1024;
      unit.remove_prefix(1);
      if (unit.size() == 2 && (unit[0] | 0x20) == 'i')
        unit.remove_prefix(1);
    }
    if (unit.size() > 1 || (unit.size() == 1 && (unit[0] | 0x20) != 'b'))
      return std::nullopt;
  }
  double size = 0;
  auto [p, fault] = std::from_chars(number.data(), number.data() + number.size(), size);
  if (fault != std::errc{} || p != number.data() + number.size() || size * factor >= 0x1p63)
    return std::nullopt;
  return static_cast<std::int64_t>(size * factor);
}

} // namespace troupe::config
