#include "actors/inspector/state_path.hpp"

#include <charconv>
#include <set>

namespace troupe {
namespace {

std::string members_of(const value& x) {
  if (x.is_array())
    return "it is a list of " + std::to_string(x.size());
  if (!x.is_object())
    return "it has no parts";
  std::string names;
  for (const auto& [key, part] : x.items()) {
    if (names.size() > 200)
      return "it has " + names + ", ...";
    names += (names.empty() ? "" : ", ") + key;
  }
  return names.empty() ? "it is empty" : "it has " + names;
}

void compare(const std::string& path, const value& before, const value& after, std::size_t most,
             std::vector<state_change>& out) {
  if (out.size() >= most || before == after)
    return;
  if (before.is_object() && after.is_object()) {
    std::set<std::string> keys;
    for (const auto* side : {&before, &after})
      for (const auto& [key, part] : side->items())
        keys.insert(key);
    for (const auto& key : keys)
      compare(path.empty() ? key : path + "." + key, before.contains(key) ? before[key] : value(),
              after.contains(key) ? after[key] : value(), most, out);
    return;
  }
  if (before.is_array() && after.is_array()) {
    for (std::size_t i = 0; i < std::max(before.size(), after.size()); ++i)
      compare(path + "[" + std::to_string(i) + "]", i < before.size() ? before[i] : value(),
              i < after.size() ? after[i] : value(), most, out);
    return;
  }
  out.push_back({path, before, after});
}

} // namespace

result<value> at_path(const value& state, const std::string& path) {
  const value* at = &state;
  std::string so_far;
  for (std::size_t i = 0; i < path.size();) {
    if (path[i] == '[') {
      const auto end = path.find(']', i);
      std::size_t index = 0;
      const auto* first = path.data() + i + 1;
      const auto* last = path.data() + (end == path.npos ? path.size() : end);
      auto [stop, fault] = std::from_chars(first, last, index);
      if (end == path.npos || fault != std::errc{} || stop != last)
        return error{errc::invalid, "the path '" + path + "' has a broken index; write NAME[0]"};
      if (!at->is_array() || index >= at->size())
        return error{errc::not_found,
                     "no '" + path.substr(0, end + 1) + "' in the state; " + members_of(*at)};
      at = &(*at)[index];
      i = end + 1;
    } else {
      // Keys may hold dots ("12.3"), so the longest key that exists is taken.
      const auto from = path[i] == '.' ? i + 1 : i;
      const value* found = nullptr;
      auto end = path.find('[', from);
      end = end == path.npos ? path.size() : end;
      for (auto stop = end; stop > from; stop = path.rfind('.', stop - 1)) {
        if (stop == path.npos || stop < from)
          break;
        if (at->is_object())
          if (auto it = at->find(path.substr(from, stop - from)); it != at->end()) {
            found = &*it;
            end = stop;
            break;
          }
      }
      if (!found) {
        auto dot = path.find_first_of(".[", from);
        return error{errc::not_found, "no '" + path.substr(0, dot) + "' in the state; " + members_of(*at)};
      }
      at = found;
      i = end;
    }
  }
  return *at;
}

std::vector<state_change> changes_between(const value& before, const value& after, std::size_t most) {
  std::vector<state_change> out;
  compare("", before, after, most, out);
  return out;
}

} // namespace troupe
