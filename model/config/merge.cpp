#include "model/config/merge.hpp"

#include <algorithm>
#include <set>

namespace troupe::config {
namespace {

/// Appends those of `low` whose `key_of` is not in `high`; repeats within one list stay.
template <class KeyOf>
value joined_lists(value high, value low, KeyOf key_of) {
  std::set<value> known;
  for (const auto& item : high)
    known.insert(key_of(item));
  for (auto& item : low)
    if (!known.contains(key_of(item)))
      high.push_back(std::move(item));
  return high;
}

value member_of(const value& item, const char* key) {
  auto found = item.is_object() ? item.find(key) : item.end();
  return found == item.end() ? value(nullptr) : *found;
}

/// A policy without a name equals another with the same pattern and action.
value policy_key(const value& policy) {
  auto name = member_of(policy, "name");
  if (!name.is_null())
    return name;
  return value::array({member_of(policy, "action"), member_of(policy, "pattern")});
}

std::string variable_name(const value& item) {
  auto text = item.is_string() ? item.get<std::string>() : item.dump();
  return text.substr(0, text.find('='));
}

value by_variable(value high, value low) {
  for (auto& item : high) {
    auto same = std::find_if(low.begin(), low.end(),
                             [&](const value& old) { return variable_name(old) == variable_name(item); });
    if (same == low.end())
      low.push_back(std::move(item));
    else
      *same = std::move(item);
  }
  return low;
}

value variables_last(value high, value low) {
  for (auto& item : high) {
    const auto last = std::find_if(
      low.rbegin(), low.rend(), [&](const value& old) { return variable_name(old) == variable_name(item); });
    if (last == low.rend() || *last != item)
      low.push_back(std::move(item));
  }
  return low;
}

value by_key(value high, value low, const shape& s) {
  for (auto& [name, part] : low.items()) {
    auto found = high.find(name);
    if (found == high.end() || found->is_null()) {
      high[name] = std::move(part);
      continue;
    }
    const auto* k = s.find(name);
    const auto* what = k ? k->what : s.values;
    if (what)
      *found = merged(std::move(*found), std::move(part), *what);
    else if (found->is_object() && part.is_object())
      *found = by_key(std::move(*found), std::move(part), s);
  }
  return high;
}

/// The higher layer decides the kind; from another kind only keys of every kind are taken.
value of_one_kind(value high, value low, const shape& s) {
  if (s.name == "checkpoint-storage") // the secrets of two layers must not mix
    if (!member_of(high, "connection_string").is_null() || !member_of(high, "account_url").is_null())
      for (auto secret : {"connection_string", "account_url", "credential"})
        low.erase(secret);
  auto own = member_of(high, s.discriminator.c_str()), other = member_of(low, s.discriminator.c_str());
  if (!own.is_null() && !other.is_null() && own != other) {
    const auto& mine = narrowed(s, high);
    for (auto it = low.begin(); it != low.end();) {
      const auto* k = s.find(it.key());
      bool everywhere = k && k->what->kinds != 0 && mine.find(it.key());
      it = everywhere && it.key() != s.discriminator ? std::next(it) : low.erase(it);
    }
  }
  const auto& kind = narrowed(s, own.is_null() ? low : high);
  return by_key(std::move(high), std::move(low), kind);
}

bool is_nested(const value& x) { return x.is_object() && !x.contains("type"); }

value hyperparameter(value high, value low) {
  if (!is_nested(high) || !is_nested(low))
    return high;
  for (auto& [name, part] : low.items()) {
    auto found = high.find(name);
    if (found == high.end())
      high[name] = std::move(part);
    else
      *found = hyperparameter(std::move(*found), std::move(part));
  }
  return high;
}

value all_hyperparameters(value high, value low) {
  for (auto& [name, part] : low.items()) {
    auto found = high.find(name);
    if (found == high.end())
      high[name] = std::move(part);
    else
      *found = hyperparameter(std::move(*found), std::move(part));
  }
  return high;
}

bool all_named(const value& list) {
  return std::all_of(list.begin(), list.end(),
                     [](const value& x) { return !member_of(x, "name").is_null(); });
}

value pod(value high, value low) {
  if (high.is_array() && low.is_array() && all_named(high) && all_named(low)) {
    for (auto& part : low) {
      auto same =
        std::find_if(high.begin(), high.end(), [&](const value& x) { return x["name"] == part["name"]; });
      if (same == high.end())
        high.push_back(std::move(part));
      else
        *same = pod(std::move(*same), std::move(part));
    }
    return high;
  }
  if (!high.is_object() || !low.is_object())
    return high;
  for (auto& [name, part] : low.items()) {
    auto found = high.find(name);
    if (found == high.end() || found->is_null())
      high[name] = std::move(part);
    else
      *found = pod(std::move(*found), std::move(part));
  }
  return high;
}

value sorted_set(const value& high, const value& low) {
  std::set<value> all(high.begin(), high.end());
  all.insert(low.begin(), low.end());
  return value(value::array_t(all.begin(), all.end()));
}

value appended(value first, value second) {
  for (auto& item : second)
    first.push_back(std::move(item));
  return first;
}

/// A search has one warm start: a key in the higher layer replaces the other key of the lower one.
void leave_one_warm_start(const value& high, value& low) {
  constexpr const char* keys[] = {"source_trial_id", "source_checkpoint_uuid"};
  for (int i = 0; i < 2; ++i)
    if (const auto at = high.find(keys[i]); at != high.end() && !at->is_null())
      if (const auto other = low.find(keys[1 - i]); other != low.end())
        *other = nullptr;
}

} // namespace

value merged(value high, value low, const shape& s) {
  if (low.is_null())
    return high;
  if (high.is_null())
    return low;
  if (high.is_object() && low.is_object()) {
    if (s.name == "searcher")
      leave_one_warm_start(high, low);
    switch (s.merge) {
    case merging::of_one_kind:
      return of_one_kind(std::move(high), std::move(low), s);
    case merging::hyperparameter:
      return s.name == "hyperparameters" ? all_hyperparameters(std::move(high), std::move(low))
                                         : hyperparameter(std::move(high), std::move(low));
    case merging::pod:
      return pod(std::move(high), std::move(low));
    case merging::by_key: {
      const auto& one = narrowed(s, high);
      return by_key(std::move(high), std::move(low), one);
    }
    default:
      return high;
    }
  }
  if (high.is_array() && low.is_array()) {
    switch (s.merge) {
    case merging::by_container_path:
      return joined_lists(std::move(high), std::move(low),
                          [](const value& x) { return member_of(x, "container_path"); });
    case merging::by_port:
      return joined_lists(std::move(high), std::move(low),
                          [](const value& x) { return member_of(x, "proxy_port"); });
    case merging::by_name:
      return joined_lists(std::move(high), std::move(low), policy_key);
    case merging::each_once:
      return joined_lists(std::move(high), std::move(low), [](const value& x) { return x; });
    case merging::lower_first:
      return appended(std::move(low), std::move(high));
    case merging::higher_first:
      return appended(std::move(high), std::move(low));
    case merging::variables_last:
      return variables_last(std::move(high), std::move(low));
    case merging::by_variable:
      return by_variable(std::move(high), std::move(low));
    case merging::sorted_set:
      return sorted_set(high, low);
    case merging::pod:
      return pod(std::move(high), std::move(low));
    default:
      break;
    }
  }
  return high;
}

} // namespace troupe::config
