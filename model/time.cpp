#include "model/time.hpp"

#include <cmath>
#include <cstdio>

namespace troupe {

std::string to_rfc3339(time_point at) {
  using namespace std::chrono;
  auto day = floor<days>(at);
  year_month_day date{day};
  hh_mm_ss clock{at - day};
  char text[48];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%06dZ", int(date.year()),
                unsigned(date.month()), unsigned(date.day()), int(clock.hours().count()),
                int(clock.minutes().count()), int(clock.seconds().count()), int(clock.subseconds().count()));
  return text;
}

std::optional<time_point> from_rfc3339(std::string_view text) {
  int y = 0, mo = 0, d = 0, h = 0, mi = 0, used = 0;
  double s = 0;
  const std::string whole(text.substr(0, 64));
  if (std::sscanf(whole.c_str(), "%4d-%2d-%2d%*[Tt ]%2d:%2d:%lf%n", &y, &mo, &d, &h, &mi, &s, &used) != 6)
    return std::nullopt;
  using namespace std::chrono;
  const year_month_day day{year(y), month(static_cast<unsigned>(mo)),
                           std::chrono::day(static_cast<unsigned>(d))};
  if (!day.ok() || h < 0 || h > 23 || mi < 0 || mi > 59 || !(s >= 0 && s < 61))
    return std::nullopt;
  const auto at = time_point(sys_days(day)) + hours(h) + minutes(mi) + microseconds(std::llround(s * 1e6));
  const auto zone = whole.substr(static_cast<std::size_t>(used));
  if (zone == "Z" || zone == "z")
    return at;
  int zh = 0, zm = 0, end = 0;
  char sign = 0;
  if (std::sscanf(zone.c_str(), "%c%2d:%2d%n", &sign, &zh, &zm, &end) != 3 ||
      static_cast<std::size_t>(end) != zone.size() || (sign != '+' && sign != '-') || zh < 0 || zh > 23 ||
      zm < 0 || zm > 59)
    return std::nullopt;
  const auto off = hours(zh) + minutes(zm);
  return sign == '+' ? at - off : at + off;
}

} // namespace troupe
