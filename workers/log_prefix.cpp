#include "workers/log_prefix.hpp"

#include <charconv>

namespace troupe::workers {

log_prefix read_log_prefix(std::string_view line) {
  log_prefix found;
  constexpr std::string_view open = "[rank=", close = "] ";
  if (line.starts_with(open)) {
    int rank = -1;
    const auto digits = line.substr(open.size());
    auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    const auto after = digits.substr(static_cast<std::size_t>(end - digits.data()));
    if (fault == std::errc{} && rank >= 0 && rank < 1 << 16 && after.starts_with(close)) {
      found.rank = rank;
      line = after.substr(close.size());
    }
  }
  for (std::string_view level : {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"})
    if (line.starts_with(level) && line.substr(level.size()).starts_with(": ")) {
      found.level = line.substr(0, level.size());
      line = line.substr(level.size() + 2);
      break;
    }
  found.rest = line;
  return found;
}

} // namespace troupe::workers
