#include "runtime/cli/selection.hpp"

#include "model/chosen_name.hpp"
#include "runtime/cli/words.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace troupe::cli {
namespace {

constexpr std::array<std::string_view, 7> ops = {"!=", "<=", ">=", "=", "<", ">", "~"};

bool blank(char c) { return c == ' ' || c == '\t'; }

std::string_view op_at(std::string_view text, std::size_t at) {
  for (auto op : ops)
    if (text.substr(at).starts_with(op))
      return op;
  return {};
}

error wrong_at(std::size_t at, const std::string& what) {
  return {errc::invalid, "--where, character " + std::to_string(at + 1) + ": " + what +
                           "\nhint: --where \"state=RUNNING best>0.9 name~'a b'\""};
}

error no_column(const std::string& key, const grid& of, const std::string& where) {
  std::vector<std::string> known;
  std::string list;
  for (const auto& [name, cell] : of.columns) {
    known.push_back(name);
    list += (list.empty() ? "" : ", ") + name;
  }
  auto near = nearest(key, known);
  return {errc::invalid, where + "there is no column '" + key + "'\nhint: " +
                           (near ? "did you mean '" + *near + "'?" : "the columns are " + list)};
}

/// The known key that `key` means; `hp.` may be left out.
std::optional<std::string> known_key(const std::string& key, const grid& of) {
  for (const auto& name : {key, "hp." + key})
    if (of.columns.contains(name))
      return name;
  return std::nullopt;
}

struct scanned {
  std::vector<condition> all;
  std::vector<std::size_t> at; ///< where each word begins
  std::optional<error> fault;  ///< fault of the text after `all`
};

scanned scan(const std::string& text) {
  scanned out;
  auto failed = [&](std::size_t at, const std::string& what) -> scanned& {
    out.fault = wrong_at(at, what);
    return out;
  };
  for (std::size_t i = 0; i < text.size();) {
    if (blank(text[i])) {
      ++i;
      continue;
    }
    const auto start = i;
    condition one;
    bool quoted = false;
    std::optional<std::size_t> doubled; // where a second comparison follows the first
    while (i < text.size() && !blank(text[i])) {
      if (text[i] == '\'') {
        const auto begun = i++;
        for (;; ++i) {
          if (i >= text.size())
            return failed(begun, "this quote is not closed");
          if (text[i] == '\'' && (++i >= text.size() || text[i] != '\''))
            break; // a doubled quote is one quote of the text
          one.text += text[i];
        }
        quoted = true;
        continue;
      }
      if (const auto op = one.op.empty() ? op_at(text, i) : std::string_view{}; !op.empty()) {
        if (one.text.empty())
          return failed(i, "there is no column before " + std::string(op));
        one.key = std::exchange(one.text, "");
        quoted = false;
        one.op = op;
        i += op.size();
        if (!op_at(text, i).empty())
          doubled = i;
        continue;
      }
      one.text += text[i++];
    }
    if (one.op.empty())
      one.op = "~";
    else if (one.text.empty() && !quoted)
      return failed(i, "what should " + one.key + " be compared with?");
    else if (doubled)
      return failed(*doubled, std::string(1, text[*doubled]) + " cannot follow " + one.op +
                                ": a value that begins with it stands in quotes");
    out.all.push_back(std::move(one));
    out.at.push_back(start);
  }
  return out;
}

/// "12", "-0.5", "1e-3", "Infinity" are numbers; other texts are not.
std::optional<double> number_of(std::string_view text) {
  while (!text.empty() && blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && blank(text.back()))
    text.remove_suffix(1);
  auto digits = text;
  if (digits.starts_with('+') || digits.starts_with('-'))
    digits.remove_prefix(1);
  const double sign = text.starts_with('-') ? -1 : 1;
  if (digits == "Infinity")
    return sign * std::numeric_limits<double>::infinity();
  if (digits.empty() || !(std::isdigit(static_cast<unsigned char>(digits.front())) || digits.front() == '.'))
    return text == "NaN" || text == "Nan" ? std::optional(std::nan("")) : std::nullopt;
  double x = 0;
  const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), x);
  return bad == std::errc{} && end == digits.data() + digits.size() ? std::optional(sign * x) : std::nullopt;
}

std::optional<double> number_of(const value& x) {
  return x.is_number()   ? number_in(x)
         : x.is_string() ? number_of(std::string_view(x.get_ref<const std::string&>()))
                         : std::nullopt;
}

/// A number as a page writes it.
std::string number_word(double x) {
  if (std::isnan(x))
    return "NaN";
  if (std::isinf(x))
    return x > 0 ? "Infinity" : "-Infinity";
  const auto size = std::fabs(x);
  const auto how =
    size == 0 || (size >= 1e-6 && size < 1e21) ? std::chars_format::fixed : std::chars_format::scientific;
  char text[400];
  const auto end = std::to_chars(text, text + sizeof text, x == 0 ? 0.0 : x, how).ptr;
  std::string out(text, end);
  if (const auto at = out.find('e'); at != out.npos && out[at + 2] == '0')
    out.erase(at + 2, 1);
  return out;
}

std::string word_of(const value& x) {
  return x.is_string() ? x.get<std::string>() : x.is_number() ? number_word(*number_in(x)) : to_json(x);
}

/// Whether it is null, "", or NaN.
bool missing(const value& x) {
  if (x.is_null() || (x.is_string() && x.get_ref<const std::string&>().empty()))
    return true;
  return (x.is_number() && std::isnan(x.get<double>())) || x == "NaN";
}

template <class T>
bool compared(const T& a, const T& b, const std::string& op) {
  return op == "="    ? a == b
         : op == "!=" ? a != b
         : op == "<"  ? a < b
         : op == "<=" ? a <= b
         : op == ">"  ? a > b
                      : a >= b;
}

bool contains(const value& x, const std::string& text) {
  return case_folded(word_of(x)).find(case_folded(text)) != std::string::npos;
}

bool holds(const value& row, const condition& c, const grid& of) {
  if (c.key.empty())
    return std::any_of(of.bare.begin(), of.bare.end(), [&](const std::string& key) {
      const auto x = of.columns.at(key)(row);
      return !x.is_null() && contains(x, c.text);
    });
  return holds(of.columns.at(c.key)(row), c);
}

} // namespace

bool holds(const value& x, const condition& c) {
  if (missing(x))
    return false;
  if (c.op == "~")
    return contains(x, c.text);
  const auto have = number_of(x), wanted = number_of(std::string_view(c.text));
  if (have && wanted)
    return compared(*have, *wanted, c.op);
  if (x.is_number())
    return c.op == "!="; // a number and a word have no order
  return compared(case_folded(word_of(x)), case_folded(c.text), c.op);
}

bool before(const value& a, const value& b, bool descending) {
  if (missing(a) || missing(b))
    return !missing(a) && missing(b);
  const auto x = number_of(a), y = number_of(b);
  if (x && y)
    return descending ? *y < *x : *x < *y;
  if (x || y)
    return descending != static_cast<bool>(x); // numbers come before texts
  return descending ? word_of(b) < word_of(a) : word_of(a) < word_of(b);
}

result<std::vector<condition>> conditions_in(const std::string& text, const grid& of) {
  auto all = scan(text);
  for (std::size_t i = 0; i < all.all.size(); ++i) {
    auto& one = all.all[i];
    if (one.key.empty())
      continue;
    auto key = known_key(one.key, of);
    if (!key)
      return no_column(one.key, of, "--where, character " + std::to_string(all.at[i] + 1) + ": ");
    one.key = *std::move(key);
  }
  if (all.fault)
    return *all.fault;
  return std::move(all.all);
}

std::vector<std::string> keys_named(const std::string& where, const std::string& sort) {
  std::vector<std::string> keys;
  for (auto& one : scan(where).all)
    if (!one.key.empty())
      keys.push_back(std::move(one.key));
  if (!sort.empty())
    keys.push_back(sort.substr(sort.starts_with('-')));
  return keys;
}

result<value> selected(value rows, const grid& of, const std::string& where, const std::string& sort) {
  auto all = conditions_in(where, of);
  if (!all)
    return all.error();
  if (all->empty() && sort.empty())
    return rows;
  auto kept = value::array();
  for (auto& row : rows)
    if (std::all_of(all->begin(), all->end(), [&](const condition& c) { return holds(row, c, of); }))
      kept.push_back(std::move(row));
  if (sort.empty())
    return kept;
  const bool descending = sort.starts_with('-');
  const auto key = known_key(sort.substr(descending), of);
  if (!key)
    return no_column(sort.substr(descending), of, "--sort: ");
  std::vector<std::pair<value, value>> cells; // each row with its cell, which is made once
  for (auto& row : kept) {
    auto cell = of.columns.at(*key)(row);
    cells.emplace_back(std::move(cell), std::move(row));
  }
  std::stable_sort(cells.begin(), cells.end(),
                   [&](const auto& a, const auto& b) { return before(a.first, b.first, descending); });
  kept = value::array();
  for (auto& [cell, row] : cells)
    kept.push_back(std::move(row));
  return kept;
}

} // namespace troupe::cli
