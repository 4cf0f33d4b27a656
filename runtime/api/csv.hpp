#pragma once
// Tables as comma-separated text for spreadsheets.

#include "runtime/api/http.hpp"

#include <cstdio>

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

inline response csv_file(const char* name, std::string text) {
  response out;
  out.content_type = "text/csv";
  out.body = std::move(text);
  out.headers.emplace_back("Content-Disposition", std::string("attachment; filename=") + name);
  return out;
}

} // namespace troupe::api
