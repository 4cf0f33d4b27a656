#include "runtime/cli/output.hpp"
#include "runtime/cli/words.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

namespace troupe::cli {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::string raw(const value& x) {
  if (x.is_null())
    return "";
  return x.is_string() ? x.get<std::string>() : to_json(x);
}

std::string bytes_text(const value& x) {
  double bytes =
    x.is_string() ? std::strtod(x.get<std::string>().c_str(), nullptr) : number_in(x).value_or(0);
  const char* units[] = {"B", "KB", "MB", "GB", "TB"};
  int unit = 0;
  for (; bytes >= 1024 && unit < 4; ++unit)
    bytes /= 1024;
  return number_text(bytes, 3) + " " + units[unit];
}

std::string listed(const value& x) {
  std::string text;
  for (const auto& one : x)
    text += (text.empty() ? "" : ", ") + raw(one);
  return text;
}

constexpr int usual_digits = 4, most_digits = 17;

/// With as few digits as tell it from every other number.
std::string exact_text(double x) {
  return std::isfinite(x) && x != std::floor(x) ? to_json(value(x)) : number_text(x);
}

/// The significant digits with which different numbers of these maps, each below its key, look different.
int digits_for(const value& rows, std::string_view path) {
  std::map<std::string, std::set<double>> numbers;
  for (const auto& row : rows)
    if (const auto& x = part(row, path); x.is_object())
      for (const auto& [key, inner] : x.items())
        if (auto number = number_in(inner); number && std::isfinite(*number))
          numbers[key].insert(*number);
  int digits = usual_digits;
  for (const auto& [key, all] : numbers)
    for (auto before = all.begin(), at = before; at != all.end(); before = at++)
      while (at != before && digits < most_digits && number_text(*before, digits) == number_text(*at, digits))
        ++digits;
  return digits;
}

/// `digits` 0: exact.
std::string compact(const value& x, int digits = usual_digits) {
  if (!x.is_object())
    return raw(x);
  std::string text;
  for (const auto& [key, inner] : x.items()) {
    auto number = number_in(inner);
    text += (text.empty() ? "" : " ") + key + "=" +
            (!number       ? raw(inner)
             : digits == 0 ? exact_text(*number)
                           : number_text(*number, digits));
  }
  return text;
}

/// As `shown`, with all digits: who looks at one thing wants to copy its numbers.
std::string shown_exactly(const value& x, show_as how, time_point now) {
  if (how == show_as::compact && x.is_object())
    return compact(x, 0);
  auto number = how == show_as::number ? number_in(x) : std::nullopt;
  return number ? exact_text(*number) : shown(x, how, now);
}

result<std::vector<column>> chosen(const std::vector<column>& columns, const output_options& options) {
  if (options.quiet)
    return std::vector<column>{columns.front()};
  if (options.columns.empty())
    return columns;
  std::vector<column> picked;
  for (const auto& name : options.columns) {
    auto at = std::find_if(columns.begin(), columns.end(),
                           [&](const column& c) { return lower(c.title) == lower(name) || c.path == name; });
    if (at == columns.end()) {
      std::vector<std::string> known;
      std::string list;
      for (const auto& c : columns) {
        known.push_back(lower(c.title));
        list += (list.empty() ? "" : ", ") + lower(c.title);
      }
      auto near = nearest(lower(name), known);
      return error{errc::invalid, "there is no column '" + name + "'\nhint: " +
                                    (near ? "did you mean '" + *near + "'?" : "the columns are " + list)};
    }
    picked.push_back(*at);
  }
  return picked;
}

bool right_aligned(const column& c) {
  return c.how == show_as::number || c.how == show_as::percent || c.how == show_as::bytes ||
         c.how == show_as::count;
}

paint paint_of(std::string_view state) {
  if (state == "COMPLETED" || state == "RUNNING" || state == "ACTIVE")
    return paint::green;
  if (state == "ERROR" || state == "CANCELED")
    return paint::red;
  return state == "PAUSED" || state.starts_with("STOPPING") ? paint::yellow : paint::plain;
}

std::string table(const value& rows, const std::vector<column>& columns, const output_options& options) {
  std::vector<std::vector<std::string>> cells;
  std::vector<int> widths, digits;
  for (const auto& c : columns) {
    widths.push_back(options.header ? width_of(c.title) : 0);
    digits.push_back(c.how == show_as::compact ? digits_for(rows, c.path) : 0);
  }
  for (const auto& row : rows) {
    auto& line = cells.emplace_back();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto& x = part(row, columns[i].path);
      line.push_back(printable(x.is_object() && digits[i] > 0 ? compact(x, digits[i])
                                                              : shown(x, columns[i].how, options.now)));
      widths[i] = std::max(widths[i], width_of(line.back()));
    }
  }
  std::string out;
  auto print = [&](const std::vector<std::string>& line, bool is_header) {
    std::string text;
    int used = 0;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      auto cell = i + 1 == columns.size() && !right_aligned(columns[i])
                    ? line[i]
                    : padded(line[i], widths[i], right_aligned(columns[i]));
      if (options.screen.interactive)
        cell = fitted(cell, options.screen.width - used, options.screen.utf8);
      used += width_of(cell) + 2;
      auto how = is_header                          ? paint::bold
                 : columns[i].how == show_as::state ? paint_of(line[i])
                                                    : paint::plain;
      text += (i ? "  " : "") + painted(cell, how, options.screen);
      if (options.screen.interactive && used >= options.screen.width)
        break;
    }
    while (text.ends_with(' '))
      text.pop_back();
    out += text + "\n";
  };
  if (options.header && !options.quiet) {
    std::vector<std::string> titles;
    for (const auto& c : columns)
      titles.emplace_back(c.title);
    print(titles, true);
  }
  for (const auto& line : cells)
    print(line, false);
  return out;
}

std::string csv(const value& rows, const std::vector<column>& columns, const output_options& options) {
  std::string out;
  if (options.header && !options.quiet) {
    for (std::size_t i = 0; i < columns.size(); ++i)
      out += (i ? "," : "") + csv_cell(columns[i].path);
    out += "\n";
  }
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < columns.size(); ++i)
      out += (i ? "," : "") + csv_cell(raw(part(row, columns[i].path)));
    out += "\n";
  }
  return out;
}

bool plain_in_yaml(const std::string& text) {
  if (text.empty() || text.size() > 200)
    return false;
  static const std::vector<std::string> taken = {"true", "false", "yes", "no", "on",
                                                 "off",  "null",  "y",   "n",  "~"};
  if (std::find(taken.begin(), taken.end(), lower(text)) != taken.end())
    return false;
  if (!std::isalpha(static_cast<unsigned char>(text[0])) && text[0] != '_' && text[0] != '/')
    return false; // numbers, dates, indicators
  for (unsigned char c : text)
    if (c >= 0x80 || !(std::isalnum(c) || c == '_' || c == '-' || c == '.' || c == '/' || c == ' '))
      return false;
  return !text.ends_with(' ');
}

std::string yaml_scalar(const value& x) {
  if (x.is_string())
    return plain_in_yaml(x.get<std::string>()) ? x.get<std::string>() : to_json(x); // JSON strings are YAML's
  return to_json(x);
}

void write_yaml(const value& x, int depth, std::string& out) {
  std::string indent(static_cast<std::size_t>(depth) * 2, ' ');
  bool list = x.is_array();
  bool first = true;
  for (auto at = x.begin(); at != x.end(); ++at) {
    if (!(first && out.ends_with("- "))) // the first key of a list's item stands beside the dash
      out += indent;
    first = false;
    out += list ? "- " : yaml_scalar(at.key()) + ":";
    const auto& inner = *at;
    if (inner.is_structured() && !inner.empty()) {
      if (!list)
        out += "\n";
      else if (inner.is_array())
        out.pop_back(), out += "\n";
      write_yaml(inner, depth + 1, out);
    } else {
      out += (list ? "" : " ") +
             (inner.is_array()    ? "[]"
              : inner.is_object() ? "{}"
                                  : yaml_scalar(inner)) +
             "\n";
    }
  }
}

} // namespace

std::string to_yaml(const value& x) {
  if (!x.is_structured() || x.empty())
    return (x.is_array() ? "[]" : x.is_object() ? "{}" : yaml_scalar(x)) + "\n";
  std::string out;
  write_yaml(x, 0, out);
  return out;
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos)
    return std::string(text);
  std::string out = "\"";
  for (char c : text)
    out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string log_text(const value& log) {
  const auto& text = part(log, "log");
  if (!text.is_string())
    return "";
  std::string before;
  const auto rank = number_in(part(log, "rankId")).value_or(0); // the platform's own lines have none
  if (rank > 0)
    before = "[rank=" + number_text(rank) + "] ";
  const auto level = shown(part(log, "level"), show_as::state, {});
  if (!part(log, "level").is_string() || level == "UNSPECIFIED" || level.empty())
    return before + text.get<std::string>();
  const auto named = level + ":";
  if (!text.get_ref<const std::string&>().starts_with(named)) // a client may have left it there
    before += named + " ";
  return before + text.get<std::string>();
}

const value& part(const value& x, std::string_view path) {
  static const value none;
  const value* at = &x;
  while (!path.empty()) {
    auto key = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(key.size() + 1, path.size()));
    if (!at->is_object())
      return none;
    auto inner = at->find(std::string(key));
    if (inner == at->end())
      return none;
    at = &*inner;
  }
  return *at;
}

std::string number_text(double x, int digits) {
  if (std::isnan(x))
    return "NaN";
  if (std::isinf(x))
    return x > 0 ? "Infinity" : "-Infinity";
  char text[48];
  if (x == std::floor(x) && std::fabs(x) < 0x1p53) // up to there every whole number is exact
    std::snprintf(text, sizeof text, "%.0f", x == 0 ? 0.0 : x);
  else
    std::snprintf(text, sizeof text, "%.*g", digits, x);
  return text;
}

std::string span_text(double seconds) {
  seconds = std::max(0.0, seconds);
  char text[64];
  if (seconds < 10)
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  else if (seconds < 60)
    std::snprintf(text, sizeof text, "%.0f s", std::floor(seconds));
  else if (seconds < 3600)
    std::snprintf(text, sizeof text, "%d min %02d s", static_cast<int>(seconds) / 60,
                  static_cast<int>(seconds) % 60);
  else
    std::snprintf(text, sizeof text, "%d h %02d min", static_cast<int>(seconds / 3600),
                  static_cast<int>(std::fmod(seconds, 3600)) / 60);
  return text;
}

std::string moment_text(time_point at, time_point now) {
  const auto text = to_rfc3339(at);
  const auto day = text.substr(0, 10);
  return (day == to_rfc3339(now).substr(0, 10) ? std::string() : day + " ") + text.substr(11, 5) + " UTC";
}

std::optional<time_point> parse_rfc3339(std::string_view text) {
  int y = 0, mo = 0, d = 0, h = 0, mi = 0, used = 0;
  double s = 0;
  if (std::sscanf(std::string(text).c_str(), "%d-%d-%dT%d:%d:%lf%n", &y, &mo, &d, &h, &mi, &s, &used) != 6)
    return std::nullopt;
  using namespace std::chrono;
  year_month_day day{year(y), month(static_cast<unsigned>(mo)), std::chrono::day(static_cast<unsigned>(d))};
  if (!day.ok())
    return std::nullopt;
  return time_point(sys_days(day)) + hours(h) + minutes(mi) + microseconds(std::llround(s * 1e6));
}

std::string shown(const value& x, show_as how, time_point now) {
  if (x.is_null())
    return "-";
  switch (how) {
  case show_as::state: {
    auto text = raw(x);
    for (std::string_view prefix : {"STATE_", "TYPE_", "LOG_LEVEL_"})
      if (text.starts_with(prefix))
        return text.substr(prefix.size());
    return text;
  }
  case show_as::number: {
    auto number = number_in(x);
    return number ? number_text(*number) : raw(x);
  }
  case show_as::percent:
    return number_in(x) ? number_text(std::floor(*number_in(x) * 100), 4) + " %" : raw(x);
  case show_as::age: {
    auto at = x.is_string() ? parse_rfc3339(x.get<std::string>()) : std::nullopt;
    if (at == time_point{})
      return "-"; // 0 means never
    return at ? span_text(std::chrono::duration<double>(now - *at).count()) + " ago" : raw(x);
  }
  case show_as::compact:
    return compact(x);
  case show_as::bytes:
    return bytes_text(x);
  case show_as::count:
    return std::to_string(x.size());
  case show_as::span:
    return number_in(x) ? span_text(*number_in(x)) : raw(x);
  case show_as::plain:
    return x.is_array() ? listed(x) : raw(x);
  }
  return raw(x);
}

result<std::string> show_rows(const value& rows, const std::vector<column>& columns,
                              const output_options& options) {
  if (!options.quiet && options.format == output_format::json)
    return to_json(rows, 2) + "\n";
  if (!options.quiet && options.format == output_format::yaml)
    return to_yaml(rows);
  auto picked = chosen(columns, options);
  if (!picked)
    return picked.error();
  return options.quiet || options.format == output_format::csv ? csv(rows, *picked, options)
                                                               : table(rows, *picked, options);
}

result<std::string> show_one(const value& thing, const std::vector<column>& columns,
                             const output_options& options) {
  if (!options.quiet && options.format == output_format::json)
    return to_json(thing, 2) + "\n";
  if (!options.quiet && options.format == output_format::yaml)
    return to_yaml(thing);
  auto picked = chosen(columns, options);
  if (!picked)
    return picked.error();
  if (options.quiet || options.format == output_format::csv)
    return csv(value::array({thing}), *picked, options);
  int widest = 0;
  for (const auto& c : *picked)
    widest = std::max(widest, width_of(c.title));
  std::string out;
  for (const auto& c : *picked) {
    const auto& x = part(thing, c.path);
    if (x.is_null())
      continue;
    auto text = printable(shown_exactly(x, c.how, options.now));
    auto how = c.how == show_as::state ? paint_of(text) : paint::plain;
    out += painted(padded(c.title, widest), paint::bold, options.screen) + "  " +
           painted(text, how, options.screen) + "\n";
  }
  return out;
}

} // namespace troupe::cli
