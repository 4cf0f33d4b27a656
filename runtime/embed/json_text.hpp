#pragma once
// JSON text of single values, for sources that may not include the types of model/.

#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>

namespace troupe::embedding {

inline std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text)
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += escape;
    } else {
      out += c;
    }
  return out + "\"";
}

/// The text reads back exactly. Where JSON has no number, it is the string that model/value.hpp reads as one.
inline std::string number_text(double x) {
  if (std::isnan(x))
    return "\"NaN\"";
  if (std::isinf(x))
    return x > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", x);
  std::string out = text;
  if (out.find_first_of(".eEn") == std::string::npos)
    out += ".0";
  return out;
}

} // namespace troupe::embedding
