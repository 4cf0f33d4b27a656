#include "model/commands/fields.hpp"

#include <charconv>
#include <cmath>

namespace troupe::commands {
namespace {

std::string number_text(double x) {
  return std::floor(x) == x && std::abs(x) < 1e15 ? std::to_string(static_cast<std::int64_t>(x))
                                                  : to_json(value(x));
}

bool limited(const field_rules& rules) {
  return rules.least > std::numeric_limits<double>::lowest() ||
         rules.most < std::numeric_limits<double>::max();
}

std::string expected_number(const field_rules& rules, const char* word) {
  if (!limited(rules))
    return word;
  if (rules.most >= 1e15)
    return std::string(word) + " of " + number_text(rules.least) + " or more";
  return std::string(word) + " of " + number_text(rules.least) + " to " + number_text(rules.most);
}

bool chosen(const field_rules& rules, const std::string& x) {
  if (!rules.one_of)
    return true;
  const std::string all = ", " + std::string(rules.one_of) + ", ";
  return x.find(',') == x.npos && all.find(", " + x + ", ") != all.npos;
}

/// A whole number, given as a number, or as text where that is allowed.
std::optional<double> real_in(const value& x, reading how) {
  if (auto n = number_in(x))
    return n;
  if (!how.numbers_as_text || !x.is_string())
    return std::nullopt;
  const auto& text = x.get_ref<const std::string&>();
  double n = 0;
  auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), n);
  return !text.empty() && bad == std::errc{} && end == text.data() + text.size() ? std::optional(n)
                                                                                 : std::nullopt;
}

value within(value schema, const field_rules& rules) {
  if (rules.least > std::numeric_limits<double>::lowest())
    schema["minimum"] = rules.least;
  if (rules.most < std::numeric_limits<double>::max())
    schema["maximum"] = rules.most;
  return schema;
}

} // namespace

namespace detail {

fault wrong(const value& given, std::string expected, std::string path) {
  return {std::move(path), std::move(expected), to_json(given).substr(0, 100)};
}

error error_of(const char* command, const char* field, const fault& what) {
  return {errc::invalid, std::string(command) + ": the field '" + field + what.path + "' has to be " +
                           what.expected + (what.given.empty() ? "" : ", not " + what.given)};
}

error missing(const char* command, const field_rules& field) {
  return {errc::invalid,
          std::string(command) + ": the field '" + field.name + "' is missing (" + field.doc + ")"};
}

error unknown_field(const char* command, const std::string& given, const std::vector<const char*>& known) {
  std::string names;
  for (const char* one : known)
    names += (names.empty() ? "its fields are " : ", ") + std::string(one);
  return {errc::invalid, std::string(command) + ": no field '" + given.substr(0, 100) + "'; " +
                           (names.empty() ? "it has none" : names)};
}

outcome take(value& from, std::string& to, const field_rules& rules, reading how) {
  if (from.is_string())
    to = std::move(from.get_ref<std::string&>());
  else if (how.numbers_as_text && !from.is_structured() && !from.is_null())
    to = to_json(from); // a user typed 7 where text is wanted
  else
    return wrong(from, "a text");
  if (chosen(rules, to) || (to.empty() && !rules.required))
    return {};
  return fault{"", std::string("one of ") + rules.one_of, "'" + to.substr(0, 100) + "'"};
}

outcome take(value& from, bool& to, const field_rules&, reading how) {
  if (from.is_boolean())
    to = from.get<bool>();
  else if (how.numbers_as_text && (from == "true" || from == "on" || from == "yes"))
    to = true;
  else if (how.numbers_as_text && (from == "false" || from == "off" || from == "no"))
    to = false;
  else
    return wrong(from, how.numbers_as_text ? "a flag" : "true or false");
  return {};
}

outcome take(value& from, double& to, const field_rules& rules, reading how) {
  const auto n = real_in(from, how);
  if (!n || (limited(rules) && !(*n >= rules.least && *n <= rules.most)))
    return wrong(from, expected_number(rules, "a number"));
  to = *n;
  return {};
}

outcome take(value& from, std::int64_t& to, const field_rules& rules, reading how) {
  if (from.is_number_integer() && !(from.is_number_unsigned() && from.get<std::uint64_t>() > INT64_MAX)) {
    to = from.get<std::int64_t>();
  } else {
    const auto n = real_in(from, how);
    if (!n || !(std::abs(*n) < 9e15) || std::floor(*n) != *n)
      return wrong(from, expected_number(rules, "a whole number"));
    to = static_cast<std::int64_t>(*n);
  }
  const auto n = static_cast<double>(to);
  if (n < rules.least || n > rules.most)
    return wrong(from, expected_number(rules, "a whole number"));
  return {};
}

outcome take(value& from, std::uint64_t& to, const field_rules& rules, reading how) {
  if (from.is_number_unsigned()) {
    to = from.get<std::uint64_t>();
    return {};
  }
  auto positive = rules;
  positive.least = std::max(rules.least, 0.0);
  std::int64_t n = 0;
  if (auto no = take(from, n, positive, how))
    return no;
  to = static_cast<std::uint64_t>(n);
  return {};
}

outcome take(value& from, value& to, const field_rules& rules, reading how) {
  if (rules.as == shape::object && from.is_string() && how.numbers_as_text)
    if (auto read = parse_json(from.get_ref<const std::string&>()))
      from = std::move(*read);
  if (rules.as == shape::object && !from.is_object() && !from.is_null())
    return wrong(from, "an object");
  if (rules.as == shape::list && !from.is_array() && !from.is_null())
    return wrong(from, "a list");
  if (rules.as == shape::any || !from.is_null())
    to = std::move(from);
  return {};
}

outcome take(value& from, bytes& to, const field_rules&, reading) {
  if (!from.is_binary())
    return wrong(from.is_structured() ? value("...") : from, "binary");
  const auto& raw = from.get_binary();
  to.held.assign(raw.begin(), raw.end());
  return {};
}

value give(const bytes& x) { return value::binary(std::vector<std::uint8_t>(x.held.begin(), x.held.end())); }

described describe(const std::string*, const field_rules& rules) {
  value schema{{"type", "string"}};
  if (rules.one_of) {
    auto& choices = schema["enum"] = value::array();
    std::string_view left = rules.one_of;
    while (!left.empty()) {
      const auto end = std::min(left.find(", "), left.size());
      choices.push_back(left.substr(0, end));
      left.remove_prefix(std::min(end + 2, left.size()));
    }
  }
  return {std::move(schema), "text"};
}
described describe(const bool*, const field_rules&) { return {{{"type", "boolean"}}, "flag"}; }
described describe(const double*, const field_rules& rules) {
  return {within({{"type", "number"}}, rules), "number"};
}
described describe(const std::int64_t*, const field_rules& rules) {
  return {within({{"type", "integer"}, {"format", "int64"}}, rules), "number"};
}
described describe(const std::uint64_t*, const field_rules& rules) {
  auto positive = rules;
  positive.least = std::max(rules.least, 0.0);
  return {within({{"type", "integer"}, {"format", "int64"}}, positive), "number"};
}
described describe(const int*, const field_rules& rules) {
  return {within({{"type", "integer"}, {"format", "int32"}}, rules), "number"};
}
described describe(const value*, const field_rules& rules) {
  if (rules.as == shape::object)
    return {{{"type", "object"}}, "object"};
  if (rules.as == shape::list)
    return {{{"type", "array"}, {"items", value::object()}}, "list"};
  return {value::object(), "any"};
}
described describe(const bytes*, const field_rules&) {
  return {{{"type", "string"}, {"format", "binary"}}, "bytes"};
}

} // namespace detail

value schema_of(const std::vector<field_row>& rows) {
  value properties = value::object(), required = value::array();
  for (const auto& row : rows) {
    auto one = row.schema;
    one["description"] = row.rules.doc;
    properties[row.rules.name] = std::move(one);
    if (row.rules.required)
      required.push_back(row.rules.name);
  }
  value out{{"type", "object"}};
  if (!properties.empty())
    out["properties"] = std::move(properties);
  if (!required.empty())
    out["required"] = std::move(required);
  return out;
}

} // namespace troupe::commands
