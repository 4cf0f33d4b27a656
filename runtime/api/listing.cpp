#include "runtime/api/listing.hpp"

#include <cctype>
#include <charconv>

namespace troupe::api {

std::string folded(std::string_view text) {
  std::string out;
  for (unsigned char c : text)
    out += static_cast<char>(std::tolower(c));
  return out;
}

bool contains_folded(std::string_view text, std::string_view part) {
  return folded(text).find(folded(part)) != std::string::npos;
}

result<duration> go_duration(const std::string& text) {
  const error wrong{errc::invalid, "'" + text.substr(0, 40) + "' has to be a duration, as 720h or 1h30m"};
  double seconds = 0;
  const char *at = text.data(), *end = at + text.size();
  if (at == end)
    return wrong;
  if (text == "0")
    return duration{0};
  while (at != end) {
    double number = 0;
    auto [rest, fault] = std::from_chars(at, end, number, std::chars_format::fixed);
    if (fault != std::errc{} || !(number >= 0))
      return wrong;
    const auto* unit_end = rest;
    while (unit_end != end && std::isalpha(static_cast<unsigned char>(*unit_end)))
      ++unit_end;
    const std::string unit(rest, unit_end);
    const double scale = unit == "h"    ? 3600
                         : unit == "m"  ? 60
                         : unit == "s"  ? 1
                         : unit == "ms" ? 0.001
                         : unit == "us" ? 1e-6
                                        : 0;
    if (scale == 0)
      return wrong;
    seconds += number * scale;
    at = unit_end;
  }
  if (!(seconds <= 1e10)) // some 300 years
    return wrong;
  return std::chrono::duration_cast<duration>(std::chrono::duration<double>(seconds));
}

bool is_descending(const query_list& query) {
  return query.first("orderBy") == "ORDER_BY_DESC" || query.first("orderBy") == "2";
}

} // namespace troupe::api
