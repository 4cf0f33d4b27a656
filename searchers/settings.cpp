#include "searchers/settings.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::searchers {

section::section(const value& object, std::string where, std::vector<std::string>& faults)
    : object_(object), where_(std::move(where)), faults_(faults) {
  if (!object.is_object() && !object.is_null())
    faults_.push_back(where_ + ": must be an object");
}

const value* section::find(const char* key) const {
  if (!object_.is_object())
    return nullptr;
  auto it = object_.find(key);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

bool section::has(const char* key) const { return find(key) != nullptr; }

void section::fault(const std::string& key, const std::string& what) {
  faults_.push_back(where_ + "." + key + ": " + what);
}

std::string section::text(const char* key, std::string fallback) {
  const auto* x = find(key);
  if (!x)
    return fallback;
  if (x->is_string())
    return x->get<std::string>();
  fault(key, "must be a string");
  return fallback;
}

std::string section::one_of(const char* key, std::vector<std::string> names, std::string fallback) {
  auto got = text(key, fallback);
  if (std::find(names.begin(), names.end(), got) != names.end())
    return got;
  std::string list;
  for (const auto& n : names)
    list += (list.empty() ? "" : ", ") + n;
  fault(key, "`" + got + "` is none of " + list);
  return fallback;
}

bool section::flag(const char* key, bool fallback) {
  const auto* x = find(key);
  if (!x)
    return fallback;
  if (x->is_boolean())
    return x->get<bool>();
  fault(key, "must be true or false");
  return fallback;
}

double section::number(const char* key, double fallback, double least, double most) {
  const auto* x = find(key);
  if (!x)
    return fallback;
  if (!x->is_number() || !(x->get<double>() >= least) || !(x->get<double>() <= most)) {
    auto end = most < std::numeric_limits<double>::max() ? " to " + to_json(most) : std::string(" or more");
    fault(key, "must be a number, " + to_json(least) + end);
    return fallback;
  }
  return x->get<double>();
}

std::int64_t section::integer(const char* key, std::int64_t fallback, std::int64_t least, std::int64_t most) {
  const auto* x = find(key);
  if (!x)
    return fallback;
  bool whole = x->is_number_integer() || (x->is_number() && std::abs(x->get<double>()) < 0x1p53 &&
                                          std::floor(x->get<double>()) == x->get<double>());
  auto n = whole
             ? (x->is_number_integer() ? x->get<std::int64_t>() : static_cast<std::int64_t>(x->get<double>()))
             : 0;
  if (!whole || n < least || n > most) {
    auto end = most < std::numeric_limits<std::int64_t>::max() ? " to " + std::to_string(most)
                                                               : std::string(" or more");
    fault(key, "must be an integer, " + std::to_string(least) + end);
    return fallback;
  }
  return n;
}

std::vector<std::int64_t> section::integers(const char* key, std::int64_t least) {
  std::vector<std::int64_t> list;
  const auto* x = find(key);
  if (!x)
    return list;
  bool good = x->is_array();
  if (good)
    for (const auto& n : *x) {
      good = good && n.is_number_integer() && n.get<std::int64_t>() >= least;
      if (good)
        list.push_back(n.get<std::int64_t>());
    }
  if (!good)
    fault(key, "must be a list of integers, each " + std::to_string(least) + " or more");
  return good ? list : std::vector<std::int64_t>{};
}

std::vector<std::string> section::texts(const char* key) {
  const auto* x = find(key);
  if (!x)
    return {};
  if (x->is_string())
    return {x->get<std::string>()};
  std::vector<std::string> list;
  if (x->is_array())
    for (const auto& s : *x)
      if (s.is_string())
        list.push_back(s.get<std::string>());
  if (!x->is_array() || list.size() != x->size())
    fault(key, "must be a string or a list of strings");
  return list;
}

const value& section::member(const char* key) const {
  static const value none;
  const auto* x = find(key);
  return x ? *x : none;
}

settings read_settings(section& in, std::uint64_t seed) {
  settings s;
  s.seed = seed;
  s.name = in.text("name");
  auto metrics = in.texts("metric");
  if (metrics.empty() && s.name == "nsga2")
    metrics = in.texts("metrics");
  if (!metrics.empty())
    s.metric = metrics.front();
  if (in.member("smaller_is_better").is_boolean() || !in.has("smaller_is_better"))
    s.smaller_is_better = in.flag("smaller_is_better", true);
  else if (const auto& list = in.member("smaller_is_better");
           list.is_array() && !list.empty() && list[0].is_boolean())
    s.smaller_is_better = list[0].get<bool>();
  else
    in.fault("smaller_is_better", "must be true or false");
  s.time_metric = in.text("time_metric");
  if (const auto& policies = in.member("early_stopping"); s.time_metric.empty() && policies.is_object())
    s.time_metric = section(policies, "searcher.early_stopping", in.faults()).text("time_metric");
  s.max_concurrent = in.integer("max_concurrent_trials", 16, 0, 1'000'000'000);
  if (s.metric.empty())
    in.fault("metric", "is needed: the name of the validation metric to search by");
  if (s.name == "grid" || s.name == "single")
    return s;
  bool custom = s.name == "custom"; // the process outside knows when it is done
  if (!in.has("max_trials") && s.name != "pbt" && !custom)
    in.fault("max_trials", "is needed");
  s.max_trials = in.integer("max_trials", custom ? 4'000'000'000 : 1, 1, 4'000'000'000);
  return s;
}

} // namespace troupe::searchers
