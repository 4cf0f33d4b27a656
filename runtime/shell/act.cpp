// Commands that change the cluster. The server checks rights and writes the audit log; this only turns words
// into values.

#include "runtime/cli/words.hpp"
#include "runtime/shell/actions.hpp"

#include <algorithm>

namespace troupe::shell::actions {
namespace {

outcome done(const result<value>& got) {
  if (!got)
    return got.error();
  return answer{shape::text, *got, {}, {}};
}

outcome about_actor(session& s, const typed_words& g, const std::string& name) {
  return done(s.post(name, {{"actor", g.words[0]}}));
}

bool begins_with_one_of(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view w) { return text.starts_with(w); });
}

/// The value of a field by its type; a field of an unknown type is sent as text.
result<value> typed(const std::string& field, const std::string& type, const std::string& text) {
  auto bad = [&](const char* wanted, const char* example) {
    return error{errc::invalid, "field '" + field + "' takes " + wanted + ", not '" + text +
                                  "'\nhint: " + field + "=" + example};
  };
  if (begins_with_one_of(type, {"bool", "flag"})) {
    if (text == "true" || text == "yes" || text == "on")
      return value(true);
    if (text == "false" || text == "no" || text == "off")
      return value(false);
    return bad("true or false", "true");
  }
  if (begins_with_one_of(type, {"int", "uint", "number", "double", "float", "id", "count"})) {
    auto number = parse_json(text);
    if (!number || !number->is_number() ||
        (!begins_with_one_of(type, {"number", "double", "float"}) && !number->is_number_integer()))
      return bad("a number", "7");
    return *number;
  }
  if (begins_with_one_of(type, {"json", "object", "list", "array", "map"})) {
    auto parsed = parse_json(text);
    return parsed ? result<value>(*parsed) : bad("JSON", "'{\"a\": 1}'");
  }
  return value(text);
}

std::size_t count_below(const value& tree) {
  std::size_t count = 0;
  if (const auto& children = cli::part(tree, "children"); children.is_array())
    for (const auto& child : children)
      count += 1 + count_below(child);
  return count;
}

value guessed(const std::string& text) {
  auto parsed = parse_json(text);
  return parsed && (parsed->is_number() || parsed->is_boolean()) ? *parsed : value(text);
}

} // namespace

outcome send(session& s, const typed_words& g) {
  auto table = s.get("messages");
  if (!table)
    return table.error();
  const auto& name = g.words[1];
  const value* message = nullptr;
  std::vector<std::string> known;
  auto rows = rows_of(*table, {}).what;
  for (const auto& row : rows) {
    known.push_back(cli::shown(cli::part(row, "name"), cli::show_as::plain, {}));
    if (known.back() == name)
      message = &row;
  }
  if (!message) {
    auto near = cli::nearest(name, known);
    std::string list;
    for (const auto& k : known)
      list += (list.empty() ? "" : ", ") + k;
    return error{errc::invalid, "there is no message '" + name + "'\nhint: " +
                                  (near ? "did you mean '" + *near + "'?" : "there are " + list)};
  }
  auto fields = value::object();
  for (std::size_t i = 2; i < g.words.size(); ++i) {
    auto pair = pair_of(g.words[i]);
    if (!pair)
      return error{errc::invalid, "'" + g.words[i] + "' is not FIELD=VALUE\nhint: help send"};
    std::string type;
    std::vector<std::string> names;
    for (const auto& field : cli::part(*message, "fields")) {
      names.push_back(cli::shown(cli::part(field, "name"), cli::show_as::plain, {}));
      if (names.back() == pair->first)
        type = cli::shown(cli::part(field, "type"), cli::show_as::plain, {});
    }
    if (std::find(names.begin(), names.end(), pair->first) == names.end()) {
      auto near = cli::nearest(pair->first, names);
      std::string list;
      for (const auto& k : names)
        list += (list.empty() ? "" : ", ") + k;
      return error{errc::invalid, "message '" + name + "' has no field '" + pair->first + "'\nhint: " +
                                    (near           ? "did you mean '" + *near + "'?"
                                     : list.empty() ? "it has none"
                                                    : "it has " + list)};
    }
    auto x = typed(pair->first, type, pair->second);
    if (!x)
      return x.error();
    fields[pair->first] = *std::move(x);
  }
  return done(s.post("send", {{"actor", g.words[0]}, {"message", name}, {"fields", fields}}));
}

outcome kill(session& s, const typed_words& g) {
  const auto& actor = g.words[0];
  if (s.confirm && !g.has("--yes")) {
    auto tree = s.get("tree", {{"actor", actor}});
    if (!tree)
      return tree.error();
    const auto below = count_below(*tree);
    if (!s.confirm("End " + actor +
                   (below == 0   ? "?"
                    : below == 1 ? " and the actor below it?"
                                 : " and the " + std::to_string(below) + " actors below it?"))) {
      s.note("nothing was done");
      return cli::exit_failed;
    }
  }
  return about_actor(s, g, "kill");
}
outcome restart(session& s, const typed_words& g) { return about_actor(s, g, "restart"); }

outcome config_set(session& s, const typed_words& g) {
  return done(s.post("config", {{"key", g.words[0]}, {"value", guessed(g.words[1])}}));
}

outcome drain(session& s, const typed_words& g) {
  auto how = g.words.size() > 1 ? g.words[1] : "on";
  if (how != "on" && how != "off")
    return error{errc::invalid,
                 "'drain' takes on or off, not '" + how + "'\nhint: drain " + g.words[0] + " off"};
  return done(s.post("drain", {{"node", g.words[0]}, {"on", how == "on"}}));
}

outcome fault(session& s, const typed_words& g) {
  value body{{"actor", g.words[0]}, {"fault", g.words[1]}};
  for (std::size_t i = 2; i < g.words.size(); ++i) {
    auto pair = pair_of(g.words[i]);
    if (!pair || pair->first == "actor" || pair->first == "fault")
      return error{errc::invalid, "'" + g.words[i] + "' is not KEY=VALUE\nhint: fault " + g.words[0] + " " +
                                    g.words[1] + " for=1m"};
    body[pair->first] = guessed(pair->second);
  }
  return done(s.post("fault", body));
}

} // namespace troupe::shell::actions
