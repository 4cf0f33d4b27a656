// The table for people and editors: explain, the JSON Schema, the reference page.

#include "model/config/describe.hpp"

#include "model/config/check.hpp"
#include "model/config/effects.hpp"

#include <algorithm>

namespace troupe::config {
namespace {

std::string number_text(double x) {
  value v = x;
  if (x == static_cast<double>(static_cast<std::int64_t>(x)))
    v = static_cast<std::int64_t>(x);
  return v.dump();
}

std::string range_text(const shape& s) {
  std::string out;
  auto add = [&](const std::optional<double>& bound, const char* says) {
    if (bound)
      out += (out.empty() ? "" : ", ") + std::string(says) + " " + number_text(*bound);
  };
  add(s.least, "at least");
  add(s.above, "more than");
  add(s.most, "at most");
  return out;
}

} // namespace

std::string type_text(const shape& s) {
  if (!s.alternatives.empty()) {
    std::string out;
    for (const auto* one : s.alternatives) {
      auto text = type_text(*one);
      if (out.find(text) == std::string::npos)
        out += (out.empty() ? "" : " or ") + text;
    }
    return out;
  }
  if (!s.allowed.empty()) {
    std::string out;
    for (const auto& one : s.allowed)
      out += (out.empty() ? "" : ", ") + one.get<std::string>();
    return s.allowed.size() == 1 ? out : "one of " + out;
  }
  if (s.kinds == 0)
    return "anything";
  auto part = [](const shape& inner) { return inner.name.empty() ? type_text(inner) : inner.name; };
  if (s.takes(kind::list))
    return s.items ? "list of " + part(*s.items) : "list";
  if (s.takes(kind::map))
    return s.values ? "map of " + part(*s.values) : "map";
  std::string type = s.takes(kind::number)    ? "number"
                     : s.takes(kind::integer) ? "integer"
                     : s.takes(kind::boolean) ? "boolean"
                     : s.takes(kind::string)  ? "string"
                                              : "null";
  auto range = s.takes(kind::string) ? s.pattern_says : range_text(s);
  return range.empty() ? type : type + " (" + range + ")";
}

std::string default_text(const key& k) {
  if (k.needed == need::always)
    return "required";
  if (k.needed == need::to_run && (!k.fallback || k.fallback->is_null()))
    return "required to run";
  if (!k.fallback || k.fallback->is_null())
    return "none";
  return k.fallback->is_string() && k.fallback->get<std::string>().empty() ? "\"\"" : k.fallback->dump();
}

namespace {

bool is_shown(const key& k) { return k.what->kinds != 1u << static_cast<unsigned>(kind::null); }

/// The keys that `s` itself knows; for a union those of its members come first.
std::vector<std::pair<std::string, const key*>> keys_named(const shape& s, std::string_view name) {
  std::vector<std::pair<std::string, const key*>> found;
  for (const auto* one : s.alternatives)
    for (auto& each : keys_named(*one, name))
      found.push_back(each);
  for (const auto& m : s.members)
    if (const auto* k = m.what->find(name))
      found.emplace_back(m.value, k);
  if (found.empty() || !s.members.empty())
    if (const auto* k = s.find(name); k && (found.empty() || k->what->kinds != 0))
      found.insert(found.begin(), {"", k});
  return found;
}

void list_keys(std::string& out, const shape& s) {
  std::size_t widest = 0;
  for (const auto& k : s.keys)
    if (is_shown(k) && !k.ignored)
      widest = std::max(widest, k.name.size());
  for (const auto& k : s.keys)
    if (is_shown(k) && !k.ignored)
      out += "  " + k.name + std::string(widest - k.name.size() + 2, ' ') + k.doc + "\n";
}

/// The map within a shape whose keys are worth listing.
const shape& map_within(const shape& s) {
  for (const auto* one : s.alternatives)
    if (one->takes(kind::map))
      return map_within(*one);
  return s.items && s.keys.empty() ? map_within(*s.items) : s;
}

/// "integer of int; number of double log" where the kinds of a union differ; otherwise the type.
std::string type_by_kind(const key& k, const std::vector<std::pair<std::string, const key*>>& kinds) {
  std::vector<std::pair<std::string, std::string>> types; // each with its kinds
  for (const auto& [kind, one] : kinds) {
    auto type = type_text(*one->what);
    if (kind.empty() || type == kind) // the discriminator
      continue;
    auto same = std::find_if(types.begin(), types.end(), [&](const auto& t) { return t.first == type; });
    if (same == types.end())
      types.emplace_back(type, kind);
    else
      same->second += " " + kind;
  }
  if (types.size() < 2)
    return type_text(*k.what);
  std::string out;
  for (const auto& [type, of] : types)
    out += (out.empty() ? "" : "; ") + type + " of " + of;
  return out;
}

std::string explain_key(std::string_view path, const key& k, const std::vector<std::string>& kinds,
                        const std::vector<std::pair<std::string, const key*>>& by_kind) {
  auto out = std::string(path) + ": " + type_by_kind(k, by_kind) + "\n  " + k.doc + "\n";
  out += "  default: " + default_text(k) + "\n";
  if (!k.unit.empty())
    out += "  unit: " + k.unit + "\n";
  if (!kinds.empty()) {
    out += "  of:";
    for (const auto& one : kinds)
      out += " " + one;
    out += "\n";
  }
  out += "  since: " + k.since + "\n";
  for (const auto& r : k.what->rules)
    out += "  rule: " + r.message + "\n";
  for (const auto& one : keys_without_effect())
    if (one.path == path && !one.when)
      out += "  note: it " + std::string(one.says) + "\n";
  const auto& map = map_within(*k.what);
  if (!map.members.empty()) {
    out += map.discriminator + " says which kind:\n";
    for (const auto& m : map.members)
      out +=
        "  " + m.value + std::string(m.value.size() < 18 ? 18 - m.value.size() : 1, ' ') + m.what->doc + "\n";
  } else if (!map.keys.empty()) {
    out += "keys:\n";
    list_keys(out, map);
  }
  return out;
}

} // namespace

result<std::string> explain(std::string_view path) {
  const shape* at = schemas().at("experiment");
  if (path.empty()) {
    std::string out = "An experiment configuration has these keys; explain any of them.\n";
    list_keys(out, *at);
    return out;
  }
  std::string way;
  for (std::string_view rest = path; !rest.empty();) {
    auto dot = rest.find('.');
    auto name = rest.substr(0, dot);
    name = name.substr(0, name.find('['));
    rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
    const auto& map = map_within(*at);
    auto found = keys_named(map, name);
    if (found.empty() && map.values) {
      at = map.values;
      way += (way.empty() ? "" : ".") + std::string(name);
      if (rest.empty())
        return way + ": " + type_text(*at) + "\n" + (at->doc.empty() ? "" : "  " + at->doc + "\n");
      continue;
    }
    // A member of a union can be named as a step: searcher.adaptive_asha.max_trials.
    if (const auto* m = map.member_named(name); found.empty() && m) {
      at = m->what;
      way += "." + std::string(name);
      if (rest.empty()) {
        std::string out = way + ": " + at->doc + "\nkeys:\n";
        list_keys(out, *at);
        return out;
      }
      continue;
    }
    if (found.empty() && map.open && map.keys.empty())
      return std::string(path) + ": anything\n  Free below " + way + ".\n";
    if (found.empty()) {
      std::vector<std::string_view> words;
      for (const auto& k : map.keys)
        words.push_back(k.name);
      for (const auto& m : map.members)
        for (const auto& k : m.what->keys)
          words.push_back(k.name);
      auto near = nearest(name, words);
      return error{errc::not_found,
                   "there is no key '" + std::string(path) + "'" +
                     (near.empty() ? "" : "; did you mean '" + (way.empty() ? "" : way + ".") + near + "'?")};
    }
    way += (way.empty() ? "" : ".") + std::string(name);
    if (rest.empty()) {
      std::vector<std::string> kinds;
      const key* best = found.front().second;
      for (const auto& [kind, k] : found)
        if (!kind.empty()) {
          kinds.push_back(kind);
          best = best->what->kinds == 0 ? k : best;
        }
      return explain_key(way, *best, kinds, found);
    }
    at = found.front().second->what;
  }
  return error{errc::not_found, "no key is named"};
}

namespace {

class json_schema_writer {
public:
  value write(const shape& root) {
    value out = body(root);
    out["$schema"] = "http://json-schema.org/draft-07/schema#";
    out["title"] = root.name;
    if (!definitions_.empty())
      out["definitions"] = std::move(definitions_);
    return out;
  }

private:
  value of(const shape& s) {
    if (s.name.empty())
      return body(s);
    if (!definitions_.contains(s.name)) {
      definitions_[s.name] = true; // noted before its own parts ask for it
      definitions_[s.name] = body(s);
    }
    return {{"$ref", "#/definitions/" + s.name}};
  }

  static value type_of(const shape& s) {
    value types = value::array();
    for (auto [k, word] : {std::pair{kind::null, "null"},
                           {kind::boolean, "boolean"},
                           {kind::number, "number"},
                           {kind::integer, "integer"},
                           {kind::string, "string"},
                           {kind::list, "array"},
                           {kind::map, "object"}})
      if (s.takes(k) && !(k == kind::integer && s.takes(kind::number)))
        types.push_back(word);
    return types.size() == 1 ? types[0] : types;
  }

  value body(const shape& s) {
    value out = value::object();
    if (!s.doc.empty())
      out["description"] = s.doc;
    if (!s.alternatives.empty()) {
      for (const auto* one : s.alternatives)
        out["anyOf"].push_back(one->kinds == 0 ? other_than_map(*one, s) : of(*one));
      return out;
    }
    if (s.kinds != 0)
      out["type"] = type_of(s);
    if (s.least)
      out["minimum"] = number(*s.least);
    if (s.above)
      out["exclusiveMinimum"] = number(*s.above);
    if (s.most)
      out["maximum"] = number(*s.most);
    if (!s.allowed.empty())
      out["enum"] = s.allowed;
    if (!s.pattern.empty())
      out["pattern"] = s.pattern;
    if (s.items)
      out["items"] = of(*s.items);
    if (s.takes(kind::map) && s.kinds != 0)
      add_map(out, s);
    for (const auto& r : s.rules)
      if (r.as_json_schema.is_object())
        out.update(r.as_json_schema);
    return out;
  }

  /// The schema of "anything but a map of this kind".
  value other_than_map(const shape&, const shape& all) {
    value types = value::array({"null", "boolean", "number", "string", "array"});
    return all.alternatives.front()->takes(kind::map) ? value{{"type", types}} : value::object();
  }

  void add_map(value& out, const shape& s) {
    if (!s.members.empty()) {
      value kinds = value::array();
      for (const auto& m : s.members) {
        value is{{"properties", {{s.discriminator, {{"const", m.value}}}}}, {"required", {s.discriminator}}};
        kinds.push_back({{"if", std::move(is)}, {"then", of(*m.what)}});
      }
      out["allOf"] = std::move(kinds);
      value names = value::array();
      for (const auto& m : s.members)
        names.push_back(m.value);
      if (const auto* which = s.find(s.discriminator); which && which->needed == need::always)
        out["required"].push_back(s.discriminator);
      out["properties"][s.discriminator] = s.open ? value(true) : value{{"enum", std::move(names)}};
      if (s.values)
        out["if"] = {{"not", {{"required", {s.discriminator}}}}},
        out["then"] = {{"additionalProperties", of(*s.values)}};
      return;
    }
    if (s.values) {
      out["additionalProperties"] = of(*s.values);
      return;
    }
    for (const auto& k : s.keys) {
      out["properties"][k.name] = property(k);
      if (k.needed == need::always)
        out["required"].push_back(k.name);
    }
    if (!s.open)
      out["additionalProperties"] = false;
  }

  value property(const key& k) {
    if (k.what->kinds == 1u << static_cast<unsigned>(kind::null))
      return k.nullable ? value{{"type", "null"}} : value(false);
    value out = of(*k.what);
    if (k.nullable) {
      if (out.contains("$ref") || out.contains("anyOf") || out.contains("enum"))
        out = {{"anyOf", {std::move(out), {{"type", "null"}}}}};
      else if (out.contains("type")) {
        if (!out["type"].is_array())
          out["type"] = value::array({out["type"]});
        out["type"].push_back("null");
      }
    }
    out["description"] = k.unit.empty() ? k.doc : k.doc + " Unit: " + k.unit + ".";
    if (k.fallback && !k.fallback->is_null())
      out["default"] = *k.fallback;
    return out;
  }

  static value number(double x) {
    if (x == static_cast<double>(static_cast<std::int64_t>(x)))
      return static_cast<std::int64_t>(x);
    return x;
  }

  value definitions_ = value::object();
};

} // namespace

result<value> json_schema(std::string_view schema) {
  const auto* s = schemas().find(schema);
  if (!s)
    return error{errc::not_found, "there is no schema '" + std::string(schema) + "'"};
  return json_schema_writer().write(*s);
}

namespace {

std::string escaped(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '|')
      text.insert(i++, "\\");
  return text;
}

void write_keys(std::string& out, const shape& s) {
  out += "| key | type | default | meaning |\n|---|---|---|---|\n";
  for (const auto& k : s.keys) {
    if (!is_shown(k))
      continue;
    auto doc = k.doc + (k.unit.empty() ? "" : " Unit: " + k.unit + ".") +
               (k.since == "troupe" ? " *Not in Determined.*" : "");
    out += "| `" + k.name + "` | " + escaped(type_text(*k.what)) + " | " + escaped(default_text(k)) + " | " +
           escaped(doc) + " |\n";
  }
  for (const auto& r : s.rules)
    out += "\nRule: " + r.message + ".\n";
  out += "\n";
}

/// Writes a section and the parts of it that have keys of their own, each shape once.
void write_section(std::string& out, const std::string& title, const shape& s, int depth,
                   std::vector<const shape*>& done) {
  const auto& map = map_within(s);
  if ((map.keys.empty() && map.members.empty()) || std::find(done.begin(), done.end(), &map) != done.end())
    return;
  done.push_back(&map);
  out += std::string(static_cast<std::size_t>(depth), '#') + " " + title + "\n\n";
  if (!map.doc.empty())
    out += map.doc + "\n\n";
  if (!map.members.empty()) {
    out += "`" + map.discriminator + "` says which of these it is.\n\n";
    for (const auto& m : map.members) {
      if (!m.what->name.starts_with("hyperparameter-") &&
          std::find(done.begin(), done.end(), m.what) != done.end())
        continue;
      done.push_back(m.what);
      out += std::string(static_cast<std::size_t>(depth + 1), '#') + " `" + m.value + "`" +
             (m.since == "troupe" ? " (not in Determined)" : "") + "\n\n" + m.what->doc + "\n\n";
      write_keys(out, *m.what);
    }
    return;
  }
  write_keys(out, map);
  for (const auto& k : map.keys)
    if (is_shown(k) && !k.ignored)
      write_section(out, title + "." + k.name, *k.what, depth, done);
}

} // namespace

std::string reference_page() {
  const auto& e = *schemas().at("experiment");
  std::string out =
    "# Experiment configuration\n\n"
    "Made by `troupe config schema -o markdown`; do not edit. A file is YAML or JSON. `null` means that a "
    "key is not given. `troupe config check FILE` finds every fault, `troupe config explain KEY` shows "
    "one key of this page.\n\n"
    "Layers, the higher wins: `--config key=value`, the file, the template, the task container defaults of "
    "the pool, the checkpoint storage of the workspace, that of the cluster.\n\n"
    "## All sections\n\n";
  write_keys(out, e);
  std::vector<const shape*> done;
  for (const auto& k : e.keys) {
    if (k.name == "hyperparameters") {
      done.push_back(&map_within(*schemas().at("hyperparameter")));
      out += "## hyperparameters\n\n" + k.what->doc + " " + schemas().at("hyperparameter")->doc + "\n\n";
      for (const auto& m : map_within(*schemas().at("hyperparameter")).members) {
        out += "### `" + m.value + "`\n\n" + m.what->doc + "\n\n";
        write_keys(out, *m.what);
      }
    } else if (is_shown(k) && !k.ignored) {
      write_section(out, k.name, *k.what, 2, done);
    }
  }
  out += "## Keys without effect\n\nAccepted, so that existing files work; `troupe config check` warns of "
         "each.\n\n"
         "| key | it |\n|---|---|\n";
  for (const auto& one : keys_without_effect())
    out += "| `" + std::string(one.path) + "` | " + std::string(one.says) + " |\n";
  while (out.ends_with("\n\n"))
    out.pop_back();
  return out;
}

} // namespace troupe::config
