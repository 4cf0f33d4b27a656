#include "model/time.hpp"

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

} // namespace troupe
