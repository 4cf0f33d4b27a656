#include "model/value.hpp"

#include <cmath>
#include <limits>

namespace troupe {
namespace {

constexpr int max_depth = 512;

/// Whether a copy is needed, in which NaN and infinities are strings.
bool has_odd_number(const value& x) {
  if (x.is_number_float())
    return !std::isfinite(x.get_ref<const double&>());
  if (x.is_structured())
    for (const auto& part : x)
      if (has_odd_number(part))
        return true;
  return false;
}

void name_odd_numbers(value& x) {
  if (x.is_number_float()) {
    double d = x.get<double>();
    if (std::isnan(d))
      x = "NaN";
    else if (std::isinf(d))
      x = d > 0 ? "Infinity" : "-Infinity";
  } else if (x.is_structured()) {
    for (auto& part : x)
      name_odd_numbers(part);
  }
}

auto depth_guard(bool& too_deep) {
  return [&too_deep](int depth, value::parse_event_t, value&) {
    too_deep = too_deep || depth > max_depth;
    return !too_deep;
  };
}

int depth_of(const value& x, int level = 0) {
  if (level > max_depth)
    return level;
  int deepest = level;
  if (x.is_structured())
    for (const auto& part : x)
      deepest = std::max(deepest, depth_of(part, level + 1));
  return deepest;
}

} // namespace

std::string to_json(const value& x, int indent) {
  constexpr auto lenient = value::error_handler_t::replace;
  if (!has_odd_number(x))
    return x.dump(indent, ' ', false, lenient);
  value copy = x;
  name_odd_numbers(copy);
  return copy.dump(indent, ' ', false, lenient);
}

result<value> parse_json(std::string_view text) {
  try {
    bool too_deep = false;
    auto x = value::parse(text.begin(), text.end(), depth_guard(too_deep));
    if (too_deep)
      return error{errc::invalid, "JSON nested deeper than 512 levels"};
    return x;
  } catch (const value::exception& fault) {
    const std::string_view what = fault.what(); // after the fault's name, in brackets
    return error{errc::invalid,
                 std::string(what.substr(what.find(']') == what.npos ? 0 : what.find(']') + 2))};
  }
}

std::string to_msgpack(const value& x) {
  std::string bytes;
  value::to_msgpack(x, bytes);
  return bytes;
}

result<value> parse_msgpack(std::string_view bytes) {
  try {
    auto x = value::from_msgpack(bytes.begin(), bytes.end());
    if (depth_of(x) > max_depth)
      return error{errc::invalid, "msgpack nested deeper than 512 levels"};
    return x;
  } catch (const value::exception& fault) {
    return error{errc::corrupt, fault.what()};
  }
}

std::optional<double> number_in(const value& x) {
  if (x.is_number())
    return x.get<double>();
  if (const auto* text = x.get_ptr<const std::string*>()) {
    if (*text == "NaN" || *text == "Nan")
      return std::numeric_limits<double>::quiet_NaN();
    if (*text == "Infinity")
      return std::numeric_limits<double>::infinity();
    if (*text == "-Infinity")
      return -std::numeric_limits<double>::infinity();
  }
  return std::nullopt;
}

} // namespace troupe
