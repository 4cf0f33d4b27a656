#include "model/time.hpp"

#include <cstdint>
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

namespace {

/// Reads a text from its left. After one wrong character `ok` stays false.
class field_reader {
public:
  explicit field_reader(std::string_view text) : rest_(text) {}

  bool ok = true;

  bool at_end() const { return rest_.empty(); }
  bool next_is_digit() const { return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; }
  char one_of(std::string_view wanted) {
    ok = ok && !rest_.empty() && wanted.find(rest_.front()) != wanted.npos;
    return ok ? take() : '\0';
  }
  /// Reads exactly this many digits.
  int number(int digits) {
    int out = 0;
    for (int i = 0; i < digits; ++i) {
      ok = ok && next_is_digit();
      out = ok ? out * 10 + (take() - '0') : 0;
    }
    return out;
  }

private:
  char take() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  std::string_view rest_;
};

/// Reads the digits behind the point, at least one, and rounds them.
std::chrono::microseconds fraction(field_reader& in) {
  std::int64_t out = in.number(1), unit = 100'000;
  out *= unit;
  bool up = false;
  while (in.ok && in.next_is_digit()) {
    const int digit = in.number(1);
    if (unit == 1)
      up = digit >= 5;
    unit /= 10;
    out += digit * unit;
  }
  return std::chrono::microseconds(out + up);
}

} // namespace

std::optional<time_point> from_rfc3339(std::string_view text) {
  using namespace std::chrono;
  field_reader in(text);
  const int y = in.number(4);
  in.one_of("-");
  const int mo = in.number(2);
  in.one_of("-");
  const year_month_day day{year(y), month(static_cast<unsigned>(mo)),
                           std::chrono::day(static_cast<unsigned>(in.number(2)))};
  in.one_of("Tt ");
  const int h = in.number(2);
  in.one_of(":");
  const int mi = in.number(2);
  in.one_of(":");
  const int s = in.number(2);
  auto sign = in.one_of(".Zz+-");
  microseconds part{};
  if (sign == '.') {
    part = fraction(in);
    sign = in.one_of("Zz+-");
  }
  const bool utc = sign == 'Z' || sign == 'z';
  const int zh = utc ? 0 : in.number(2);
  if (!utc)
    in.one_of(":");
  const int zm = utc ? 0 : in.number(2);
  if (!in.ok || !in.at_end() || !day.ok() || h > 23 || mi > 59 || s > 60 || zh > 23 || zm > 59)
    return std::nullopt;
  const auto off = hours(zh) + minutes(zm);
  const auto at = time_point(sys_days(day)) + hours(h) + minutes(mi) + seconds(s) + part;
  return sign == '-' ? at + off : at - off;
}

} // namespace troupe
