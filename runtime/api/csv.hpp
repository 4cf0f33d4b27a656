#pragma once
// Tables as comma-separated text for spreadsheets.

#include "runtime/api/http.hpp"

#include <algorithm>
#include <boost/algorithm/string/predicate.hpp>
#include <charconv>
#include <cstdio>
#include <string_view>

namespace troupe::api {

inline std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos)
    return text;
  std::string out = "\"";
  for (char c : text)
    out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

inline std::string csv_number(double x, int digits = 3) {
  char text[400];
  std::snprintf(text, sizeof text, "%.*f", digits, x);
  return text;
}
/// Hours with 6 digits, because sheets add up runs that take less than a second.
inline std::string csv_hours(double hours) { return csv_number(hours, 6); }

/// Whether the value of Accept names text/csv, and gives JSON no higher quality.
inline bool prefers_csv(std::string_view accept) {
  double csv = 0, json = 0;
  int exact = 0; // how exactly `json` was named
  while (!accept.empty()) {
    const auto end = accept.find(',');
    auto one = accept.substr(0, end);
    accept = end == accept.npos ? std::string_view{} : accept.substr(end + 1);
    one.remove_prefix(std::min(one.find_first_not_of(" \t"), one.size()));
    const auto type = one.substr(0, one.find_first_of("; \t"));
    double q = 1;
    if (const auto at = one.find("q="); at != one.npos)
      std::from_chars(one.data() + at + 2, one.data() + one.size(), q);
    if (boost::algorithm::iequals(type, "text/csv"))
      csv = q;
    else if (const int named = boost::algorithm::iequals(type, "application/json") ? 3
                               : boost::algorithm::iequals(type, "application/*")  ? 2
                               : type == "*/*"                                     ? 1
                                                                                   : 0;
             named > exact) {
      exact = named;
      json = q;
    }
  }
  return csv > 0 && csv >= json;
}

inline response csv_file(const char* name, std::string text) {
  response out;
  out.content_type = "text/csv";
  out.body = std::move(text);
  out.headers.emplace_back("Content-Disposition", std::string("attachment; filename=") + name);
  return out;
}

} // namespace troupe::api
