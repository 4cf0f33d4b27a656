#include "model/config/document.hpp"

#include "model/config/master_config.hpp"
#include "model/config/secrets.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace troupe::config {

const char* name_with_article(kind k) {
  switch (k) {
  case kind::null:
    return "null";
  case kind::boolean:
    return "a boolean";
  case kind::integer:
    return "an integer";
  case kind::number:
    return "a number";
  case kind::string:
    return "a string";
  case kind::list:
    return "a list";
  case kind::map:
    return "a map";
  }
  return "";
}

bool node::is_integer() const {
  return type == kind::integer ||
         (type == kind::number && std::abs(real) < 0x1p63 && real == std::trunc(real));
}

const entry* node::entry_of(std::string_view key) const {
  if (type == kind::map)
    for (const auto& e : entries)
      if (e.key == key)
        return &e;
  return nullptr;
}

const node* node::find(std::string_view key) const {
  const auto* found = entry_of(key);
  return found ? &found->what : nullptr;
}

value to_value(const node& x) {
  switch (x.type) {
  case kind::null:
    return nullptr;
  case kind::boolean:
    return x.flag;
  case kind::integer:
    return x.whole;
  case kind::number:
    return x.real;
  case kind::string:
    return x.text;
  case kind::list: {
    value list = value::array();
    list.get_ref<value::array_t&>().reserve(x.items.size());
    for (const auto& item : x.items)
      list.push_back(to_value(item));
    return list;
  }
  case kind::map: {
    value map = value::object();
    auto& entries = map.get_ref<value::object_t&>();
    for (const auto& e : x.entries)
      entries.insert_or_assign(e.key, to_value(e.what));
    return map;
  }
  }
  return nullptr;
}

node to_node(const value& x) {
  node n;
  switch (x.type()) {
  case value::value_t::boolean:
    n.type = kind::boolean;
    n.flag = x.get<bool>();
    break;
  case value::value_t::number_integer:
    n.type = kind::integer;
    n.whole = x.get<std::int64_t>();
    break;
  case value::value_t::number_unsigned:
    if (auto number = x.get<std::uint64_t>(); number <= INT64_MAX) {
      n.type = kind::integer;
      n.whole = static_cast<std::int64_t>(number);
    } else {
      n.type = kind::number;
      n.real = static_cast<double>(number);
    }
    break;
  case value::value_t::number_float:
    n.type = kind::number;
    n.real = x.get<double>();
    break;
  case value::value_t::string:
    n.type = kind::string;
    n.text = x.get_ref<const std::string&>();
    break;
  case value::value_t::array:
    n.type = kind::list;
    for (const auto& item : x)
      n.items.push_back(to_node(item));
    break;
  case value::value_t::object:
    n.type = kind::map;
    for (const auto& [key, part] : x.items())
      n.entries.push_back({key, {}, to_node(part)});
    break;
  default:
    break;
  }
  return n;
}

namespace {

constexpr std::size_t longest_key =
  200; ///< limit of a key in a path; longer keys are cut, so that many faults stay small

/// Whether the key cannot be misread as part of a path; otherwise it is quoted: a["b.c"].
bool is_plain_key(std::string_view key) {
  return !key.empty() && key.find_first_of(".[]\"\n") == std::string_view::npos;
}

/// Cuts the first step off `path`; false where there is none.
bool next_step(std::string_view& path, std::string& key, std::size_t& index, bool& is_index) {
  if (path.empty())
    return false;
  if (path.front() == '.')
    path.remove_prefix(1);
  if (path.starts_with("[\"")) {
    auto end = path.find("\"]", 2);
    if (end == std::string_view::npos)
      return false;
    key = path.substr(2, end - 2);
    path.remove_prefix(end + 2);
    is_index = false;
    return true;
  }
  if (path.starts_with('[')) {
    auto end = path.find(']');
    if (end == std::string_view::npos)
      return false;
    auto [p, fault] = std::from_chars(path.data() + 1, path.data() + end, index);
    path.remove_prefix(end + 1);
    is_index = true;
    return fault == std::errc{};
  }
  auto end = path.find_first_of(".[");
  key = path.substr(0, end);
  path.remove_prefix(end == std::string_view::npos ? path.size() : end);
  is_index = false;
  return true;
}

} // namespace

std::string trail::text() const {
  std::string out;
  for (const auto& s : steps_) {
    const auto key = quotable(std::string(s.key.substr(0, longest_key)));
    if (s.index != no_index) {
      out += '[' + std::to_string(s.index) + ']';
    } else if (!is_plain_key(s.key)) {
      out += "[\"" + key + "\"]";
    } else {
      if (!out.empty())
        out += '.';
      out += key;
    }
  }
  return out;
}

bool remove_at(node& root, std::string_view path) {
  node* at = &root;
  node* owner = nullptr;
  std::string key, own_key;
  std::size_t index = 0;
  bool is_index = false;
  while (next_step(path, key, index, is_index) && !is_index) {
    auto found =
      std::find_if(at->entries.begin(), at->entries.end(), [&](const entry& e) { return e.key == key; });
    if (!at->is(kind::map) || found == at->entries.end())
      break;
    owner = at;
    own_key = key;
    at = &found->what;
  }
  return owner && std::erase_if(owner->entries, [&](const entry& e) { return e.key == own_key; }) > 0;
}

bool trail::leads_to_secret() const {
  // A text in the place of a registry's login is most likely that login.
  if (!steps_.empty() && steps_.back().key == "registry_auth")
    return true;
  std::string_view above;
  for (const auto& s : steps_) {
    if (is_secret(s.key) || (above == "data" && s.key == "secrets"))
      return true;
    above = s.key;
  }
  return false;
}

std::string trail::sibling(std::string_view key) const {
  trail other = *this;
  other.steps_.back() = {key, no_index};
  return other.text();
}

namespace {

/// The deepest part of `root` on the way `path`; `whole` is false where the way leads on.
const node& deepest(const node& root, std::string_view path, bool& whole) {
  const node* at = &root;
  std::string key;
  std::size_t index = 0;
  bool is_index = false;
  while (next_step(path, key, index, is_index)) {
    const node* next = nullptr;
    if (is_index) {
      if (at->is(kind::list) && index < at->items.size())
        next = &at->items[index];
    } else {
      next = at->find(key);
    }
    whole = next != nullptr;
    if (!next)
      break;
    at = next;
  }
  return *at;
}

} // namespace

const node* part_at(const node& root, std::string_view path) {
  bool whole = true;
  const auto& found = deepest(root, path, whole);
  return whole ? &found : nullptr;
}

place place_of(const node& root, std::string_view path) {
  bool whole = true;
  return deepest(root, path, whole).at;
}

} // namespace troupe::config
