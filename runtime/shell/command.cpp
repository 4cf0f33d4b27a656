#include "runtime/shell/command.hpp"
#include "runtime/cli/words.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace troupe::shell {
namespace {

error wrong(std::string what, const std::string& hint) {
  return {errc::invalid, std::move(what) + "\nhint: " + hint};
}

std::string key_of(const option& o) { return std::string(o.names.substr(o.names.rfind(',') + 1)); }

bool named(const option& o, std::string_view name) {
  for (auto rest = o.names; !rest.empty();) {
    auto one = rest.substr(0, rest.find(','));
    if (one == name)
      return true;
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
  }
  return false;
}

constexpr option output[] = {{"-o,--output", "FORMAT", "table, json, csv or yaml, for this command"}};

const option* find_option(const command& c, std::string_view name) {
  for (const auto& o : c.options)
    if (named(o, name))
      return &o;
  return named(output[0], name) ? &output[0] : nullptr;
}

result<void> check(const command& c, const option& o, const std::string& text) {
  auto key = key_of(o);
  auto name = std::string(c.name);
  if (o.value == "N") {
    std::int64_t n = 0;
    auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (fault != std::errc{} || end != text.data() + text.size() || n < 0)
      return wrong(key + " takes a whole number, not '" + text + "'", name + " " + key + " 10");
  } else if (o.value == "T") {
    if (auto span = parse_span(text); !span)
      return wrong(key + " " + span.error().what.substr(0, span.error().what.find('\n')),
                   name + " " + key + " 2s");
  } else if (o.value == "FORMAT") {
    const std::vector<std::string> formats = {"table", "json", "csv", "yaml"};
    if (std::find(formats.begin(), formats.end(), text) == formats.end()) {
      auto near = cli::nearest(text, formats);
      return wrong(key + " takes table, json, csv or yaml, not '" + text + "'",
                   near ? "did you mean '" + *near + "'?" : "-o json");
    }
  }
  return {};
}

} // namespace

std::string typed_words::text(const std::string& key, const std::string& otherwise) const {
  auto at = options.find(key);
  return at == options.end() ? otherwise : at->second;
}

std::int64_t typed_words::number(const std::string& key, std::int64_t otherwise) const {
  auto at = options.find(key);
  if (at != options.end())
    std::from_chars(at->second.data(), at->second.data() + at->second.size(), otherwise);
  return otherwise;
}

std::chrono::milliseconds typed_words::span(const std::string& key,
                                            std::chrono::milliseconds otherwise) const {
  auto at = options.find(key);
  if (at == options.end())
    return otherwise;
  auto span = parse_span(at->second);
  return span ? *span : otherwise;
}

const command* find_command(const std::vector<std::string>& words, std::size_t& used) {
  const command* found = nullptr;
  for (const auto& c : all_commands()) {
    auto space = c.name.find(' ');
    if (space == c.name.npos) {
      if (!found && !words.empty() && words[0] == c.name)
        found = &c, used = 1;
    } else if (words.size() > 1 && words[0] == c.name.substr(0, space) &&
               words[1] == c.name.substr(space + 1)) {
      found = &c, used = 2;
    }
  }
  return found;
}

result<typed_words> read_typed_words(const command& c, const std::vector<std::string>& words,
                                     const std::vector<bool>& quoted) {
  typed_words out;
  std::string name(c.name);
  bool only_words = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto& w = words[i];
    bool plain = i < quoted.size() && quoted[i];
    if (!plain && w == "--" && !only_words) {
      only_words = true;
      continue;
    }
    bool number = w.size() > 1 && w[0] == '-' && std::isdigit(static_cast<unsigned char>(w[1]));
    if (plain || only_words || w.size() < 2 || w[0] != '-' || number) {
      out.words.push_back(w);
      continue;
    }
    auto equals = w.starts_with("--") ? w.find('=') : std::string::npos;
    auto flag = w.substr(0, equals);
    if (flag == "--help" || flag == "-h") {
      out.options["--help"] = "";
      continue;
    }
    const auto* o = find_option(c, flag);
    if (!o) {
      std::vector<std::string> known = {"--help", "--output"};
      for (const auto& k : c.options)
        known.push_back(key_of(k));
      auto near = cli::nearest(flag, known);
      return wrong("'" + name + "' has no option '" + flag + "'",
                   near ? "did you mean '" + *near + "'?" : "help " + name);
    }
    if (o->value.empty()) {
      if (equals != std::string::npos)
        return wrong(flag + " takes no value", name + " " + flag);
      out.options[key_of(*o)] = "";
      continue;
    }
    if (equals == std::string::npos && i + 1 >= words.size())
      return wrong(flag + " needs a value", name + " " + flag + " " + std::string(o->value));
    auto text = equals == std::string::npos ? words[++i] : w.substr(equals + 1);
    if (auto ok = check(c, *o, text); !ok)
      return ok.error();
    out.options[key_of(*o)] = text;
  }
  if (out.has("--help"))
    return out;
  if (out.words.size() < c.least)
    return wrong("'" + name + "' needs " + std::string(c.takes), "help " + name);
  if (out.words.size() > c.most)
    return wrong("unexpected word '" + out.words[c.most] + "' after '" + name + "'", "help " + name);
  return out;
}

result<std::chrono::milliseconds> parse_span(std::string_view text) {
  auto bad = [&] {
    return error{errc::invalid, "'" + std::string(text.substr(0, 40)) +
                                  "' is not a span of time\nhint: 500ms, 2s, 1m, 1h30m"};
  };
  double total = 0;
  auto rest = text;
  if (rest.empty())
    return bad();
  while (!rest.empty()) {
    double n = 0;
    auto [end, fault] = std::from_chars(rest.data(), rest.data() + rest.size(), n, std::chars_format::fixed);
    if (fault != std::errc{} || !(n >= 0))
      return bad();
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    auto unit = rest.substr(0, std::min(rest.find_first_of("0123456789."), rest.size()));
    rest.remove_prefix(unit.size());
    double ms = unit == "ms"                   ? 1
                : unit == "s"                  ? 1000
                : unit == "m" || unit == "min" ? 60'000
                : unit == "h"                  ? 3'600'000
                : unit == "d"                  ? 86'400'000
                                               : 0;
    if (unit.empty() && rest.empty() && total == 0) // a number without a unit
      ms = 1000;
    if (ms == 0)
      return bad();
    total += n * ms;
  }
  if (total > 366.0 * 86'400'000)
    return error{errc::invalid,
                 "'" + std::string(text.substr(0, 40)) + "' is longer than a year\nhint: 1h30m"};
  return std::chrono::milliseconds(std::llround(total));
}

std::string span_arg(std::chrono::milliseconds x) {
  char text[48];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(x.count()) / 1000);
  return text;
}

std::string command_help(const command& c) {
  std::string out = std::string(c.summary) + ".\n\nUsage: " + std::string(c.name) +
                    (c.takes.empty() ? "" : " ") + std::string(c.takes) +
                    (c.options.empty() ? "" : " [OPTIONS]") + "\n";
  if (c.acts)
    out += "Changes the cluster: only after :rw; the audit log names you.\n";
  if (!c.options.empty())
    out += "\nOptions:\n";
  for (const auto& o : c.options) {
    std::string left = "  " + std::string(o.names) + (o.value.empty() ? "" : " ") + std::string(o.value);
    if (auto comma = left.find(','); comma != left.npos)
      left.insert(comma + 1, " ");
    left.resize(std::max<std::size_t>(left.size() + 2, 22), ' ');
    out += left + std::string(o.text) + "\n";
  }
  if (!c.examples.empty())
    out += "\nExamples:\n";
  for (auto rest = c.examples; !rest.empty();) {
    auto one = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    out += "  " + std::string(one) + "\n";
  }
  return out;
}

std::string overview_help() {
  std::string out, group;
  for (const auto& c : all_commands()) {
    if (c.group != group) {
      group = std::string(c.group);
      out += (out.empty() ? "" : "\n") + group + ":\n";
    }
    std::string left = "  " + std::string(c.name) + (c.takes.empty() ? "" : " ") + std::string(c.takes);
    left.resize(std::max<std::size_t>(left.size() + 2, 42), ' ');
    out += left + std::string(c.summary) + "\n";
  }
  out += "\nEvery `troupe` verb works here too: experiment list, trial logs 7, help experiment.\n"
         "CMD | where, columns, order, first, last, count (on rows); CMD | host command; CMD > FILE; CMD >> "
         "FILE; CMD; CMD\n"
         "let x = CMD or value, then $x or ${x.field}; _ is the last result. help CMD tells more.\n";
  return out;
}

} // namespace troupe::shell
