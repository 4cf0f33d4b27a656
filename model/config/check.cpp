#include "model/config/check.hpp"

#include "model/config/secrets.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace troupe::config {
namespace {

/// Writes numbers as people do: 0, 1.5, 1e-06.
std::string shown(double x) {
  value v = x;
  if (x == std::trunc(x) && std::abs(x) < 1e15)
    v = static_cast<std::int64_t>(x);
  return v.dump();
}

/// A scalar as the text has it, shortened where it is long.
std::string shown(const node& x) {
  if (x.is(kind::list) || x.is(kind::map) || x.is(kind::null))
    return name_with_article(x.type);
  auto text = x.is(kind::string) ? "'" + quotable(x.text) + "'" : to_value(x).dump();
  if (!x.text.empty() && !x.is(kind::string))
    text = x.text;
  if (text.size() > 60)
    text = text.substr(0, 57) + "...'";
  return text;
}

std::string expected_kinds(const shape& s) {
  std::vector<std::string> names;
  for (auto k : {kind::boolean, kind::integer, kind::number, kind::string, kind::list, kind::map}) {
    if (k == kind::integer && s.takes(kind::number))
      continue;
    if (s.takes(k))
      names.push_back(name_with_article(k));
  }
  if (names.empty())
    return "nothing";
  std::string out = names[0];
  for (std::size_t i = 1; i < names.size(); ++i)
    out += (i + 1 == names.size() ? " or " : ", ") + names[i];
  return out;
}

std::string listed(const std::vector<std::string_view>& words) {
  std::string out;
  for (auto word : words)
    out += (out.empty() ? "" : ", ") + std::string(word);
  return out;
}

/// Another place, at most two levels deep, where the table knows a key of this name: "searcher.max_time".
std::string known_elsewhere(std::string_view name) {
  const auto& top = *schemas().at("experiment");
  if (top.find(name))
    return std::string(name);
  for (const auto& k : top.keys) {
    if (k.what->find(name))
      return k.name + "." + std::string(name);
    for (const auto& m : k.what->members)
      if (m.what->find(name))
        return k.name + "." + std::string(name);
  }
  return {};
}

class checker {
public:
  explicit checker(report& out) : out_(out) {}

  void check(const node& x, const shape& s) {
    if (out_.full())
      return;
    if (!s.alternatives.empty()) {
      const auto& one = narrowed(s, x);
      return &one == &s ? wrong_kind(x, s) : check(x, one);
    }
    if (!s.takes(x.type) && !(s.takes(kind::integer) && x.is_integer()))
      return wrong_kind(x, s);
    switch (x.type) {
    case kind::integer:
    case kind::number:
      check_number(x, s);
      break;
    case kind::string:
      check_text(x, s);
      break;
    case kind::list:
      check_list(x, s);
      break;
    case kind::map:
      check_map(x, s);
      break;
    default:
      break;
    }
    for (const auto& r : s.rules)
      if (r.level == need::always && !r.holds(x)) {
        const auto* part = r.at.empty() ? nullptr : x.find(r.at);
        fault(part ? part->at : x.at, r.message, r.hint);
      }
  }

  trail& way() { return way_; }

private:
  /// The value as a fault may quote it: of a secret only the type.
  std::string got(const node& x) const {
    return way_.leads_to_secret() ? std::string(name_with_article(x.type)) : shown(x);
  }

  void wrong_kind(const node& x, const shape& s) {
    if (s.kinds == bit_of(kind::null))
      return fault(x.at, "must be null", "remove this key");
    if (x.is(kind::string) && s.takes(kind::number) && is_written_not_finite(x.text))
      return fault(x.at, "expected a finite number, got " + x.text, "");
    const bool quotes = !way_.leads_to_secret();
    std::string hint;
    bool scalar = x.is(kind::boolean) || x.is(kind::integer) || x.is(kind::number);
    if (scalar && s.takes(kind::string)) // quotes are the mend where they make a valid text of it
      hint = s.fits && !s.fits(x.text) ? "write " + s.pattern_says
             : quotes                  ? "put it in quotes: \"" + (x.text.empty() ? shown(x) : x.text) + "\""
                                       : "put it in quotes";
    else if (x.is(kind::string) && (s.takes(kind::integer) || s.takes(kind::boolean)) && !x.text.empty())
      hint = "a value in quotes is a string; remove the quotes where there are some";
    else if (x.is(kind::list) == false && s.takes(kind::list) && !s.takes(kind::map))
      hint = "write it as a list: [" +
             (x.text.empty() || !quotes ? std::string("...") : quotable(x.text).substr(0, 40)) + "]";
    auto given = x.is(kind::null) ? "nothing (null)" : std::string(name_with_article(x.type));
    if (quotes && !x.is(kind::null) && !x.is(kind::list) && !x.is(kind::map))
      given += ", " + shown(x);
    fault(x.at, "expected " + expected_kinds(s) + ", got " + given, hint);
  }

  /// Whether it is a spelling of Python, C or some writers of JSON; YAML reads these as strings.
  static bool is_written_not_finite(std::string_view text) {
    if (text.starts_with('-') || text.starts_with('+'))
      text.remove_prefix(1);
    for (std::string_view word : {"NaN", "nan", "NAN", "Infinity", "infinity", "inf", "Inf", "INF"})
      if (text == word)
        return true;
    return false;
  }

  static unsigned bit_of(kind k) { return 1u << static_cast<unsigned>(k); }

  void check_number(const node& x, const shape& s) {
    double d = x.as_double();
    if (!std::isfinite(d))
      return fault(x.at, "expected a finite number, got " + got(x), "");
    if (s.least && d < *s.least)
      fault(x.at, "must be at least " + shown(*s.least) + ", got " + got(x), "");
    if (s.above && d <= *s.above)
      fault(x.at, "must be more than " + shown(*s.above) + ", got " + got(x), "");
    if (s.most && d > *s.most)
      fault(x.at, "must be at most " + shown(*s.most) + ", got " + got(x), "");
  }

  void check_text(const node& x, const shape& s) {
    if (!s.allowed.empty() &&
        std::find(s.allowed.begin(), s.allowed.end(), value(x.text)) == s.allowed.end()) {
      std::vector<std::string_view> words;
      for (const auto& one : s.allowed)
        words.push_back(one.get_ref<const std::string&>());
      return not_allowed(x, words, s.allowed_hint);
    }
    if (s.fits && !s.fits(x.text))
      fault(x.at, "expected " + s.pattern_says + ", got " + got(x), "");
  }

  void not_allowed(const node& x, const std::vector<std::string_view>& words, const std::string& own_hint) {
    auto near = x.is(kind::string) ? nearest(x.text, words) : std::string();
    auto hint = !near.empty() ? "did you mean '" + near + "'?" : own_hint;
    fault(x.at, (words.size() == 1 ? "expected " : "expected one of ") + listed(words) + "; got " + got(x),
          hint);
  }

  void check_list(const node& x, const shape& s) {
    for (std::size_t i = 0; i < x.items.size() && !out_.full(); ++i) {
      trail::guard step(way_, i);
      if (s.items)
        check(x.items[i], *s.items);
      else
        check_finite(x.items[i]);
    }
  }

  void check_map(const node& x, const shape& s) {
    if (!s.members.empty()) {
      const auto* which = x.find(s.discriminator);
      if (which && !(which->is(kind::null) && s.find(s.discriminator) && s.find(s.discriminator)->nullable)) {
        const auto& one = narrowed(s, x);
        if (&one != &s) {
          check(x, one);
          if (one.open && !s.open) // rules of every kind hold for an open one too
            check_entries(x, s, &one);
          return;
        }
        if (!s.open) {
          std::vector<std::string_view> words;
          for (const auto& m : s.members)
            if (!m.legacy)
              words.push_back(m.value);
          {
            trail::guard step(way_, s.discriminator);
            not_allowed(*which, words, "");
          }
          if (s.keys.size() > 1)
            check_entries(x, s, nullptr, s.discriminator); // keys of every kind
          return;
        }
      }
    }
    if (s.values)
      return check_values(x, s);
    check_entries(x, s, nullptr);
    if (s.name == "experiment")
      check_experiment(x);
    if (s.name == "master-config")
      check_pools(x);
    if (s.name == "environment")
      check_ports(x);
  }

  /// Checks the keys of `x` by `s`, without those that `others` has, and without `done`.
  void check_entries(const node& x, const shape& s, const shape* others, std::string_view done = {}) {
    for (const auto& e : x.entries) {
      if (out_.full())
        return;
      const auto* k = s.find(e.key);
      if ((!done.empty() && e.key == done) || (k && others && others->find(e.key)) ||
          (k && k->nullable && e.what.is(kind::null)))
        continue;
      trail::guard step(way_, e.key);
      if (!k && s.open)
        check_finite(e.what);
      else if (!k)
        unknown(e, s);
      else if (k->is_forbidden())
        fault(e.at, k->what->pattern_says, "remove this key");
      else
        check(e.what, *k->what);
    }
    for (const auto& k : s.keys)
      if (k.needed == need::always && k.name != done && !(others && others->find(k.name)) &&
          !x.entry_of(k.name))
        fault(x.at, "the key '" + k.name + "' is missing", "add " + k.name + ": ...");
  }

  void check_values(const node& x, const shape& s) {
    for (const auto& e : x.entries) {
      if (out_.full())
        return;
      if (e.what.is(kind::null) && s.null_values)
        continue;
      trail::guard step(way_, e.key);
      check(e.what, *s.values);
    }
  }

  void unknown(const entry& e, const shape& s) {
    std::vector<std::string_view> words;
    for (const auto& k : s.keys)
      if (!k.ignored && !k.is_forbidden())
        words.push_back(k.name);
    auto near = nearest(e.key, words);
    auto hint = !near.empty() ? "did you mean '" + near + "'?" : std::string();
    if (!near.empty())
      out_.know(way_.sibling(near)); // otherwise the same slip would be reported twice
    if (auto elsewhere = known_elsewhere(e.key);
        hint.empty() && !elsewhere.empty() &&
        elsewhere != way_.sibling(e.key)) // here the key belongs to other searchers
      hint = "it belongs at " + elsewhere;
    if (hint.empty() && words.size() <= 16)
      hint = "known here: " + listed(words);
    const auto key = quotable(e.key); // a colon without a blank behind it is a part of the key
    if (key != e.key)
      hint = "write a blank behind the colon";
    fault(e.at, "unknown key '" + key.substr(0, 200) + "'", hint);
  }

  void check_experiment(const node& x) {
    const auto *searcher = x.find("searcher"), *space = x.find("hyperparameters");
    const auto* name = searcher ? searcher->find("name") : nullptr;
    if (!name || !space || !name->is(kind::string) || name->text != "grid" || !space->is(kind::map))
      return;
    trail::guard step(way_, "hyperparameters");
    for (const auto& e : space->entries) {
      trail::guard inner(way_, e.key);
      check_grid(e.what, way_, out_);
    }
  }

  void check_pools(const node& x) {
    const auto* pools = x.find("resource_pools");
    if (!pools || !pools->is(kind::list))
      return;
    trail::guard step(way_, "resource_pools");
    std::set<std::string_view> names;
    for (std::size_t i = 0; i < pools->items.size(); ++i)
      if (const auto* name = pools->items[i].find("pool_name");
          name && name->is(kind::string) && !names.insert(name->text).second) {
        trail::guard inner(way_, i);
        trail::guard last(way_, "pool_name");
        fault(name->at, "resource pool has a duplicate name: " + name->text,
              "give each pool a name of its own");
      }
  }

  /// Checks the ports of one task that the proxy leads to: each only once, and at most one at the task's own
  /// address.
  void check_ports(const node& x) {
    const auto* ports = x.find("proxy_ports");
    if (!ports || !ports->is(kind::list))
      return;
    trail::guard step(way_, "proxy_ports");
    std::set<double> seen;
    bool standard = false;
    for (std::size_t i = 0; i < ports->items.size(); ++i) {
      trail::guard inner(way_, i);
      const auto& one = ports->items[i];
      if (!one.is(kind::map))
        continue;
      if (const auto* port = one.find("proxy_port");
          port && port->is_integer() && !seen.insert(port->as_double()).second) {
        trail::guard last(way_, "proxy_port");
        fault(port->at, "the port " + std::to_string(static_cast<int>(port->as_double())) + " is named twice",
              "leave one of them out");
      }
      const auto* means = one.find("default_service_id");
      if (!means || !means->is(kind::boolean) || !means->flag)
        continue;
      trail::guard last(way_, "default_service_id");
      if (std::exchange(standard, true))
        fault(means->at, "two ports are meant by the task's own address",
              "set default_service_id of one port at most");
    }
  }

  /// Checks a free value: JSON has no infinite numbers.
  void check_finite(const node& x) {
    if (x.is(kind::number) && !std::isfinite(x.real))
      return fault(x.at, "expected a finite number, got " + got(x),
                   way_.leads_to_secret() ? "put it in quotes" : "a string may hold it: \"" + x.text + "\"");
    for (std::size_t i = 0; i < x.items.size() && !out_.full(); ++i) {
      trail::guard step(way_, i);
      check_finite(x.items[i]);
    }
    for (const auto& e : x.entries) {
      trail::guard step(way_, e.key);
      check_finite(e.what);
    }
  }

  void fault(place at, std::string message, std::string hint) {
    out_.fault(at, way_.text(), std::move(message), std::move(hint));
  }

  report& out_;
  trail way_;
};

} // namespace

void report::fault(place at, std::string path, std::string message, std::string hint) {
  if (!full())
    faults_.push_back({files_[static_cast<std::size_t>(at.file)], at.line, at.column, std::move(path),
                       std::move(message), std::move(hint)});
}

namespace {

/// Whether `path` is `owner` or leads into it.
bool is_within(std::string_view path, std::string_view owner) {
  return path.starts_with(owner) && (owner.empty() || path.size() == owner.size() ||
                                     path[owner.size()] == '.' || path[owner.size()] == '[');
}

} // namespace

bool report::knows(std::string_view path) const {
  return std::any_of(known_.begin(), known_.end(),
                     [&](const std::string& one) { return is_within(path, one); });
}

bool report::knows_below(std::string_view path) const {
  return std::any_of(known_.begin(), known_.end(),
                     [&](const std::string& one) { return is_within(one, path); });
}

std::vector<diagnostic> report::take() {
  std::stable_sort(faults_.begin(), faults_.end(), [](const diagnostic& a, const diagnostic& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  return std::move(faults_);
}

void check(const node& x, const shape& s, report& out) {
  checker c(out);
  if (s.name == "check-grid-hyperparameter")
    return check_grid(x, c.way(), out);
  c.check(x, s);
}

void check_grid(const node& x, trail& way, report& out) {
  for (std::size_t i = 0; i < x.items.size(); ++i) {
    trail::guard step(way, i);
    check_grid(x.items[i], way, out);
  }
  if (!x.is(kind::map))
    return;
  const auto* type = x.find("type");
  if (!type) {
    for (const auto& e : x.entries) {
      trail::guard step(way, e.key);
      check_grid(e.what, way, out);
    }
    return;
  }
  if (!type->is(kind::string)) {
    trail::guard step(way, "type");
    return out.fault(type->at, way.text(),
                     "expected a string, got " + std::string(name_with_article(type->type)));
  }
  const auto* count = x.find("count");
  bool divides = type->text == "int" || type->text == "double" || type->text == "log";
  if (divides && (!count || count->is(kind::null)))
    out.fault(x.at, way.text(), "a grid search needs count: into how many points it divides this range",
              "add count: 5");
}

std::string nearest(std::string_view word, const std::vector<std::string_view>& words) {
  if (word.size() > 64)
    return {};
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, std::min<std::size_t>(3, word.size() / 3)) + 1;
  std::vector<std::size_t> before2, before, now;
  for (auto other : words) {
    if (other.size() > 64)
      continue;
    before.assign(other.size() + 1, 0);
    for (std::size_t j = 0; j <= other.size(); ++j)
      before[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      now.assign(other.size() + 1, i);
      for (std::size_t j = 1; j <= other.size(); ++j) {
        now[j] = std::min({before[j] + 1, now[j - 1] + 1, before[j - 1] + (word[i - 1] != other[j - 1])});
        if (i > 1 && j > 1 && word[i - 1] == other[j - 2] && word[i - 2] == other[j - 1])
          now[j] = std::min(now[j], before2[j - 2] + 1);
      }
      before2 = std::move(before);
      before = std::move(now);
      now.clear();
    }
    if (before.back() < best_distance) {
      best_distance = before.back();
      best = other;
    }
  }
  if (best.empty())
    for (auto other : words)
      if (other.size() >= 3 && (word.starts_with(other) || (word.size() >= 3 && other.starts_with(word))))
        return std::string(other);
  return best;
}

} // namespace troupe::config
