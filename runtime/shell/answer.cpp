#include "runtime/shell/answer.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

namespace troupe::shell {
namespace {

using cli::column;
using cli::output_format;
using cli::part;
using cli::show_as;

std::string raw(const value& x) {
  if (x.is_null())
    return "";
  return x.is_string() ? x.get<std::string>() : to_json(x);
}

/// A value as people read it: the name of its key says the unit.
value for_people(const std::string& key, const value& x, const look& how) {
  auto number = x.is_number() ? std::optional<double>(x.get<double>()) : std::nullopt;
  if (number && (key.ends_with("_us") || key.find("_us_") != key.npos))
    return micros_text(*number, how.screen.utf8);
  if (number && key.ends_with("_ms"))
    return micros_text(*number * 1000, how.screen.utf8);
  if (number && (key.ends_with("uptime_s") || key.ends_with("since_s") || key == "age_s"))
    return cli::span_text(*number);
  if (number && key.ends_with("_bytes"))
    return cli::shown(x, show_as::bytes, how.now);
  if (number && key.ends_with("_per_s"))
    return cli::number_text(*number < 10 ? std::round(*number * 10) / 10 : std::round(*number));
  if (x.is_string() && (key == "at" || key == "since"))
    return clock_text(x.get<std::string>());
  return x;
}

value rows_for_people(const value& rows, const look& how) {
  auto out = value::array();
  for (const auto& row : rows) {
    auto shown = row;
    if (row.is_object())
      for (const auto& [key, x] : row.items())
        shown[key] = for_people(key, x, how);
    out.push_back(std::move(shown));
  }
  return out;
}

std::vector<column> columns_for(const answer& a, const std::vector<std::string>& keys, bool all) {
  if (!all && !a.columns.empty())
    return a.columns;
  std::vector<column> out = a.columns;
  for (const auto& key : keys)
    if (std::none_of(out.begin(), out.end(), [&](const column& c) { return c.path == key; }))
      out.push_back({key, key});
  return out;
}

std::string in_rows(const answer& a, const value& rows, const look& how, bool header = true) {
  cli::output_options options;
  options.format = how.format;
  options.header = header;
  options.screen = how.screen;
  options.now = how.now;
  bool table = how.format == output_format::table;
  auto keys = keys_of(rows);
  auto columns = columns_for(a, keys, !table);
  if (columns.empty())
    return "";
  auto text = cli::show_rows(table ? rows_for_people(rows, how) : rows, columns, options);
  return text ? *text : "";
}

std::string group_text(const value& x, const look& how) {
  if (!x.is_object())
    return x.is_null() ? "-" : raw(x);
  std::string out;
  for (const auto& [key, inner] : x.items()) {
    if (inner.is_null())
      continue;
    auto shown = for_people(key, inner, how);
    auto name = key;
    if (name.ends_with("_per_s"))
      name.replace(name.size() - 6, 6, "/s");
    for (const char* unit : {"_us", "_ms", "_s", "_bytes"})
      if (shown != inner && name.ends_with(unit)) {
        name.resize(name.size() - std::string(unit).size());
        break;
      }
    std::replace(name.begin(), name.end(), '_', ' ');
    auto text = cli::printable(raw(shown));
    out += (out.empty() ? "" : "   ") + name + " " + (text.empty() ? "-" : text);
  }
  return out.empty() ? "-" : out;
}

std::string message_line(const value& row, const look& how) {
  auto text = raw(part(row, "text"));
  auto type = raw(part(row, "type"));
  if (text.empty() || text == type)
    text = type;
  else if (!text.starts_with(type))
    text = type + " " + text;
  auto line = clock_text(raw(part(row, "at"))) + "  ";
  if (row.contains("actor"))
    line += raw(row["actor"]) + (how.screen.utf8 ? " ← " : " <- ");
  line += text;
  if (auto from = raw(part(row, "from")); !from.empty())
    line += "  from " + from;
  if (const auto& wait = part(row, "wait_us"); wait.is_number())
    line += "  waited " + micros_text(wait.get<double>(), how.screen.utf8);
  if (const auto& run = part(row, "run_us"); run.is_number())
    line += "  ran " + micros_text(run.get<double>(), how.screen.utf8);
  return cli::printable(line);
}

std::string info_text(const value& x, const look& how) {
  std::string out;
  auto say = [&](const char* title, const std::string& text) {
    out += cli::painted(cli::padded(title, 10), cli::paint::bold, how.screen) + " " + text + "\n";
  };
  auto identity = part(x, "identity");
  std::string actor;
  if (identity.is_object()) {
    actor = raw(part(identity, "actor"));
    identity.erase("actor");
  }
  say("identity", actor + "   " + group_text(identity, how));
  std::string links;
  if (const auto& list = part(x, "links"); list.is_array())
    for (const auto& link : list)
      links += (links.empty() ? "" : "   ") + raw(part(link, "how")) + ": " +
               cli::printable(raw(part(link, "peer")));
  say("links", links.empty() ? "-" : links);
  say("work", group_text(part(x, "work"), how));
  say("memory", group_text(part(x, "memory"), how));
  const auto& recent = part(x, "recent");
  bool first = true;
  if (recent.is_array())
    for (const auto& row : recent)
      say(std::exchange(first, false) ? "recent" : "", message_line(row, how));
  if (first)
    say("recent", "-");
  return out;
}

void tree_lines(const value& x, const std::string& indent, const look& how, std::string& out) {
  auto line = cli::printable(raw(part(x, "actor")));
  auto state = raw(part(x, "state"));
  if (!state.empty())
    line = cli::padded(line, std::max(4, 30 - cli::width_of(indent))) + "  " + cli::printable(state);
  if (auto restarts = number_in(part(x, "restarts")); restarts && *restarts > 0)
    line += "  restarts " + cli::number_text(*restarts);
  while (line.ends_with(' '))
    line.pop_back();
  out += line + "\n";
  const auto& children = part(x, "children");
  if (!children.is_array())
    return;
  for (std::size_t i = 0; i < children.size(); ++i) {
    bool last = i + 1 == children.size();
    out += indent + (how.screen.utf8 ? (last ? "└─ " : "├─ ") : (last ? "`- " : "|- "));
    tree_lines(children[i], indent + (last ? "   " : how.screen.utf8 ? "│  " : "|  "), how, out);
  }
}

void flatten_tree(const value& x, const std::string& parent, int depth, value& rows) {
  rows.push_back({{"actor", part(x, "actor")},
                  {"parent", parent},
                  {"depth", depth},
                  {"state", part(x, "state")},
                  {"restarts", part(x, "restarts")}});
  if (const auto& children = part(x, "children"); children.is_array())
    for (const auto& child : children)
      flatten_tree(child, raw(part(x, "actor")), depth + 1, rows);
}

void flatten(const value& x, const std::string& path, value& rows) {
  if (x.is_structured() && !x.empty()) {
    for (auto at = x.begin(); at != x.end(); ++at) {
      auto step =
        x.is_array() ? "[" + std::to_string(at - x.begin()) + "]" : (path.empty() ? "" : ".") + at.key();
      flatten(*at, path + step, rows);
    }
    return;
  }
  rows.push_back({{"path", path}, {"value", x}});
}

std::string state_text(const value& x, const look& how) {
  if (x.contains("changes")) {
    const auto& changes = x["changes"];
    if (!changes.is_array() || changes.empty())
      return "nothing changed\n";
    std::string out;
    for (const auto& c : changes)
      out += cli::printable(raw(part(c, "path")) + "  " + to_json(part(c, "before")) + " -> " +
                            to_json(part(c, "after"))) +
             "\n";
    return out;
  }
  static_cast<void>(how);
  return cli::to_yaml(x.contains("state") ? x["state"] : x);
}

std::string histogram_text(const char* title, const value& x, const look& how) {
  std::string out = cli::painted(title, cli::paint::bold, how.screen);
  for (const char* name : {"p50", "p99"})
    if (const auto& n = part(x, name); n.is_number())
      out += std::string("  ") + name + " " + micros_text(n.get<double>(), how.screen.utf8);
  out += "\n";
  const auto& buckets = part(x, "buckets");
  double most = 0;
  if (buckets.is_array())
    for (const auto& b : buckets)
      if (b.is_array() && b.size() == 2 && b[1].is_number())
        most = std::max(most, b[1].get<double>());
  if (most <= 0)
    return out + "  no message yet\n";
  for (const auto& b : buckets) {
    if (!b.is_array() || b.size() != 2 || !b[1].is_number() || b[1].get<double>() <= 0)
      continue;
    auto upper =
      b[0].is_number() ? "< " + micros_text(b[0].get<double>(), how.screen.utf8) : std::string("more");
    auto cells = static_cast<std::size_t>(std::ceil(b[1].get<double>() / most * 40));
    std::string bar;
    for (std::size_t i = 0; i < cells; ++i)
      bar += how.screen.utf8 ? "█" : "#";
    out += cli::padded(upper, 12, true) + "  " + cli::padded(raw(b[1]), 9, true) + "  " + bar + "\n";
  }
  return out;
}

std::string stats_text(const value& x, const look& how) {
  auto out = histogram_text("wait", part(x, "wait_us"), how) + histogram_text("run", part(x, "run_us"), how);
  if (const auto& types = part(x, "by_type"); types.is_array() && !types.empty()) {
    answer list{
      shape::rows,
      types,
      {{"TYPE", "type"}, {"COUNT", "count", show_as::number}, {"RUN P50", "run_us_p50", show_as::number}},
      {}};
    out += "\n" + in_rows(list, types, how);
  }
  return out;
}

/// The rows that csv prints.
value as_rows(const answer& a) {
  auto rows = value::array();
  switch (a.how) {
  case shape::rows:
    return a.what;
  case shape::tree:
    flatten_tree(a.what, "", 0, rows);
    break;
  case shape::info:
  case shape::stats:
    flatten(a.what, "", rows);
    break;
  case shape::state:
    if (a.what.contains("changes"))
      return a.what["changes"];
    flatten(a.what.contains("state") ? a.what["state"] : a.what, "", rows);
    break;
  default:
    rows.push_back(a.what.is_object() ? a.what : value{{"text", a.what}});
  }
  return rows;
}

} // namespace

std::string micros_text(double us, bool utf8) {
  const char* units[] = {utf8 ? "µs" : "us", "ms", "s"};
  int unit = 0;
  for (; us >= 1000 && unit < 2; ++unit)
    us /= 1000;
  char text[48];
  std::snprintf(text, sizeof text, us < 10 && us != std::floor(us) ? "%.1f %s" : "%.0f %s", us, units[unit]);
  return text;
}

std::string clock_text(const std::string& at) {
  if (at.size() < 19 || at[10] != 'T' || !cli::parse_rfc3339(at))
    return at;
  auto text = at.substr(11, 12);
  while (!text.empty() && !std::isdigit(static_cast<unsigned char>(text.back())))
    text.pop_back();
  return text;
}

std::vector<std::string> keys_of(const value& rows) {
  std::vector<std::string> keys;
  if (rows.is_array())
    for (const auto& row : rows)
      if (row.is_object())
        for (const auto& [key, x] : row.items())
          if (std::find(keys.begin(), keys.end(), key) == keys.end())
            keys.push_back(key);
  return keys;
}

std::string id_of(const value& what, const std::vector<column>& columns) {
  if (what.is_array())
    return what.empty() ? "" : id_of(what.front(), columns);
  if (!what.is_object())
    return raw(what);
  if (!columns.empty() && what.contains(std::string(columns.front().path)))
    return raw(what[std::string(columns.front().path)]);
  for (const char* key : {"actor", "id", "uuid", "name", "node", "level", "answer", "done"})
    if (what.contains(key))
      return raw(what[key]);
  if (what.contains("identity"))
    return id_of(what["identity"]);
  return what.empty() ? "" : raw(*what.begin());
}

std::string render(const answer& a, const look& how) {
  if (a.how == shape::none)
    return "";
  if (how.format == output_format::json)
    return to_json(a.what) + "\n";
  if (how.format == output_format::yaml)
    return cli::to_yaml(a.what);
  if (how.format == output_format::csv) {
    answer rows{shape::rows, as_rows(a), a.how == shape::rows ? a.columns : std::vector<column>{}, {}};
    return in_rows(rows, rows.what, how);
  }
  switch (a.how) {
  case shape::rows:
    return in_rows(a, a.what, how);
  case shape::tree: {
    std::string out;
    tree_lines(a.what, "", how, out);
    return out;
  }
  case shape::info:
    return info_text(a.what, how);
  case shape::state:
    return state_text(a.what, how);
  case shape::stats:
    return stats_text(a.what, how);
  default:
    break;
  }
  if (a.what.is_object() && a.what.size() == 1) {
    const auto& only = *a.what.begin(); // {}: the order was carried out, and there is nothing to show
    return (only.is_object() && only.empty() ? "done" : cli::printable(raw(only))) + "\n";
  }
  return a.what.is_string() ? a.what.get<std::string>() + "\n" : cli::to_yaml(a.what);
}

std::string stream_head(const answer& a, const look& how) {
  if (how.format == output_format::json)
    return "[";
  if (how.format == output_format::csv) {
    std::string out;
    for (const auto& c : a.columns)
      out += (out.empty() ? "" : ",") + cli::csv_cell(c.path);
    return out + "\n";
  }
  return "";
}

std::string stream_row(const answer& a, const value& row, bool first, const look& how) {
  if (how.format == output_format::json)
    return (first ? "" : ",") + to_json(row);
  if (how.format == output_format::yaml)
    return cli::to_yaml(value::array({row}));
  if (how.format == output_format::csv) {
    std::string out;
    for (const auto& c : a.columns)
      out += (&c == &a.columns.front() ? "" : ",") + cli::csv_cell(raw(part(row, c.path)));
    return out + "\n";
  }
  std::string line;
  if (row.contains("type")) {
    line = message_line(row, how);
  } else { // an event
    line = clock_text(raw(part(row, "at"))) + "  " + cli::padded(raw(part(row, "kind")), 11) + "  " +
           cli::padded(raw(part(row, "actor")), 18) + "  " + raw(part(row, "what"));
    if (auto user = raw(part(row, "user")); !user.empty())
      line += "  by " + user;
    line = cli::printable(line);
  }
  return (how.screen.interactive ? cli::fitted(line, how.screen.width, how.screen.utf8) : line) + "\n";
}

std::string stream_end(const look& how) { return how.format == output_format::json ? "]\n" : ""; }

} // namespace troupe::shell
