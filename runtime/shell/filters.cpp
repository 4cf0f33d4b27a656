#include "runtime/shell/filters.hpp"
#include "runtime/cli/selection.hpp"
#include "runtime/cli/words.hpp"

#include <algorithm>
#include <charconv>

namespace troupe::shell {
namespace {

using cli::part;

error wrong(const std::string& what, const std::string& hint) {
  return {errc::invalid, what + "\nhint: " + hint};
}

error no_key(const std::string& key, const value& rows) {
  auto keys = keys_of(rows);
  auto near = cli::nearest(key, keys);
  std::string list;
  for (const auto& k : keys)
    list += (list.empty() ? "" : ", ") + k;
  return wrong("the rows have no '" + key + "'",
               near ? "did you mean '" + *near + "'?" : "they have " + list);
}

bool has_key(const value& rows, const std::string& key) {
  return rows.empty() || std::any_of(rows.begin(), rows.end(), [&](const value& row) {
           return !part(row, key).is_null() || row.contains(key);
         });
}

result<cli::condition> condition_of(const std::string& word) {
  auto at = word.find_first_of("=!~<>");
  if (at == 0 || at == word.npos)
    return wrong("'" + word + "' is not a condition", "where state=RUNNING 'backlog>10' actor~trial");
  cli::condition c{word.substr(0, at), word.substr(at, 1), ""};
  auto rest = at + 1;
  if (rest < word.size() && word[rest] == '=' && c.op != "=" && c.op != "~")
    c.op += word[rest++];
  if (c.op == "!")
    return wrong("'" + word + "' is not a condition", "where state!=RUNNING");
  c.text = word.substr(rest);
  return c;
}

result<std::size_t> number_after(const std::vector<std::string>& words, std::size_t otherwise) {
  if (words.size() < 2)
    return otherwise;
  std::size_t n = 0;
  const auto& text = words[1];
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (fault != std::errc{} || end != text.data() + text.size() || words.size() > 2)
    return wrong("'" + words[0] + "' takes one whole number", words[0] + " 10");
  return n;
}

result<answer> rows_where(answer a, const std::vector<std::string>& words) {
  std::vector<cli::condition> all;
  for (std::size_t i = 1; i < words.size(); ++i) {
    auto c = condition_of(words[i]);
    if (!c)
      return c.error();
    if (!has_key(a.what, c->key))
      return no_key(c->key, a.what);
    all.push_back(*std::move(c));
  }
  auto kept = value::array();
  for (auto& row : a.what)
    if (std::all_of(all.begin(), all.end(),
                    [&](const cli::condition& c) { return cli::holds(part(row, c.key), c); }))
      kept.push_back(std::move(row));
  a.what = std::move(kept);
  return a;
}

result<answer> rows_ordered(answer a, std::string key) {
  const bool falls = key.starts_with('-');
  key.erase(0, falls);
  if (!has_key(a.what, key))
    return no_key(key, a.what);
  std::stable_sort(a.what.begin(), a.what.end(), [&](const value& x, const value& y) {
    return cli::before(part(x, key), part(y, key), falls);
  });
  return a;
}

/// The keys in all words after the first one, each a list with commas.
std::vector<std::string> keys_in(const std::vector<std::string>& words) {
  std::vector<std::string> keys;
  for (std::size_t i = 1; i < words.size(); ++i)
    for (std::size_t at = 0; at < words[i].size();) {
      auto end = std::min(words[i].find(',', at), words[i].size());
      if (end > at)
        keys.push_back(words[i].substr(at, end - at));
      at = end + 1;
    }
  return keys;
}

result<answer> with_columns(answer a, const std::vector<std::string>& keys) {
  auto rows = value::array();
  for (const auto& key : keys)
    if (!has_key(a.what, key))
      return no_key(key, a.what);
  for (const auto& row : a.what) {
    auto kept = value::object();
    for (const auto& key : keys)
      kept[key] = part(row, key);
    rows.push_back(std::move(kept));
  }
  // Titles come from the command's columns. For other keys the key is the title, and its text must outlive
  // the answer.
  std::vector<cli::column> titled;
  for (const auto& key : keys) {
    auto at =
      std::find_if(a.columns.begin(), a.columns.end(), [&](const cli::column& c) { return c.path == key; });
    if (at != a.columns.end())
      titled.push_back(*at);
  }
  a.columns = titled.size() == keys.size() ? titled : std::vector<cli::column>{};
  a.what = std::move(rows);
  return a;
}

} // namespace

result<answer> filtered(answer a, const std::vector<std::string>& words) {
  const auto& name = words.front();
  if (a.how == shape::tree || a.how == shape::info || a.how == shape::state || a.how == shape::stats ||
      !a.what.is_array())
    return wrong("'" + name + "' works on rows, and this command gives none",
                 "ps | " + name + "; other text goes to host commands: | grep, | head");
  if (name == "count") {
    if (words.size() > 1)
      return wrong("'count' takes nothing", "ps | count");
    return answer{shape::text, a.what.size(), {}, a.notes};
  }
  if (name == "first" || name == "last") {
    auto n = number_after(words, 1);
    if (!n)
      return n.error();
    auto keep = static_cast<std::ptrdiff_t>(std::min(*n, a.what.size()));
    a.what = name == "first" ? value(value::array_t(a.what.begin(), a.what.begin() + keep))
                             : value(value::array_t(a.what.end() - keep, a.what.end()));
    return a;
  }
  if (words.size() < 2)
    return wrong("'" + name + "' needs a word", name == "where"   ? "where state=RUNNING"
                                                : name == "order" ? "order -backlog"
                                                                  : "columns actor,backlog");
  if (name == "where")
    return rows_where(std::move(a), words);
  return name == "order" ? rows_ordered(std::move(a), words[1]) : with_columns(std::move(a), keys_in(words));
}

} // namespace troupe::shell
