#pragma once
// value: any JSON, with exact doubles that may be NaN or infinite. In text these three are the strings "NaN",
// "Infinity" and "-Infinity"; in msgpack they are plain float64.

#include "model/result.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace troupe {

using value = nlohmann::json;

/// One line of JSON. Doubles have up to 17 digits, so that they read back exactly; `indent` >= 0 spreads the
/// JSON over lines. Strings that are not UTF-8 get replacement characters.
std::string to_json(const value& x, int indent = -1);

/// Reads one JSON value. The error gives the byte offset; nesting deeper than 512 is refused.
result<value> parse_json(std::string_view text);

/// msgpack bytes and back; exact for every double. Fails on truncated or trailing bytes and on nesting deeper
/// than 512.
std::string to_msgpack(const value& x);
result<value> parse_msgpack(std::string_view bytes);

/// The number in `x`: a JSON number, or one of the strings "NaN", "Infinity", "-Infinity" (also "Nan", as the
/// Determined client writes it).
std::optional<double> number_in(const value& x);

} // namespace troupe
