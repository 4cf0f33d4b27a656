#include "actors/pool/pool_settings.hpp"

#include "model/chosen_name.hpp"
#include "model/config/duration_text.hpp"
#include "model/config/memory_size.hpp"

#include <algorithm>
#include <set>

namespace troupe {
namespace {

constexpr const char* scheduler_names[] = {"fifo", "round_robin", "priority", "fair"};
constexpr const char* fitting_names[] = {"best", "worst"};
constexpr const char* gang_names[] = {"any", "whole", "whole_mixed"};

/// Reads the keys of one map, and remembers the first fault.
class keys_in {
public:
  explicit keys_in(std::string fault = {}) : fault_(std::move(fault)) {}
  const std::string& fault() const { return fault_; }
  void refuse(const std::string& key, const std::string& expected) {
    if (fault_.empty())
      fault_ = "`" + key + "` must be " + expected;
  }
  template <std::size_t N>
  std::size_t word(const std::string& key, const value& x, const char* const (&names)[N]) {
    std::string all;
    for (std::size_t i = 0; i < N; ++i) {
      if (x == names[i])
        return i;
      all += (i ? ", " : "") + std::string(names[i]);
    }
    refuse(key, "one of " + all);
    return 0;
  }
  bool flag(const std::string& key, const value& x) {
    if (!x.is_boolean())
      refuse(key, "true or false");
    return x.is_boolean() && x.get<bool>();
  }
  int count(const std::string& key, const value& x, int least, int most = 1'000'000'000) {
    if (!x.is_number_integer() || x < least || x > most) {
      refuse(key, most == 1'000'000'000
                    ? "a number from " + std::to_string(least) + " on"
                    : "a number from " + std::to_string(least) + " to " + std::to_string(most));
      return least;
    }
    return x.get<int>();
  }
  duration time(const std::string& key, const value& x) {
    const auto got = x.is_string() ? config::parse_duration(x.get<std::string>()) : std::nullopt;
    if (!got)
      refuse(key, "a duration: 0s, 200ms, 30s, 5m, 2h, 90d");
    return got.value_or(duration{});
  }
  std::string text(const std::string& key, const value& x) {
    if (!x.is_string() || x.get_ref<const std::string&>().empty())
      refuse(key, "a text");
    return x.is_string() ? x.get<std::string>() : std::string();
  }
  std::vector<std::string> texts(const std::string& key, const value& x) {
    std::vector<std::string> out;
    if (!x.is_array())
      out.push_back(text(key, x));
    else
      for (const auto& one : x)
        out.push_back(text(key, one));
    return out;
  }
  std::map<std::string, std::vector<std::string>> labels(const std::string& key, const value& x) {
    std::map<std::string, std::vector<std::string>> out;
    if (!x.is_object())
      refuse(key, "a map of labels");
    else
      for (const auto& [label, values] : x.items())
        out[label] = texts(key + "." + label, values);
    return out;
  }

private:
  std::string fault_;
};

slot_quota quota_of(keys_in& in, const std::string& where, const value& x) {
  slot_quota out{{}, {}, 0};
  if (!x.is_object()) {
    in.refuse(where, "a map {user | workspace, max_slots}");
    return out;
  }
  for (const auto& [key, content] : x.items())
    if (content.is_null()) // a completed file has null for a key that is absent
      continue;
    else if (key == "user")
      out.user = in.text(where + ".user", content);
    else if (key == "workspace")
      out.workspace = in.text(where + ".workspace", content);
    else if (key == "max_slots")
      out.max_slots = in.count(where + ".max_slots", content, 0);
    else
      in.refuse(where, "a map {user | workspace, max_slots}, and `" + key + "` is none of its keys");
  if (out.user.empty() == out.workspace.empty())
    in.refuse(where, "of a user or of a workspace");
  if (!x.contains("max_slots"))
    in.refuse(where + ".max_slots", "there");
  return {out.user, out.workspace, out.max_slots};
}

} // namespace

slot_quota::slot_quota(std::string of_user, std::string of_workspace, int most)
    : user(std::move(of_user)), workspace(std::move(of_workspace)), max_slots(most),
      folded(case_folded(user.empty() ? workspace : user)) {}

const char* name(scheduler_kind kind) { return scheduler_names[static_cast<int>(kind)]; }

result<pool_settings> pool_settings_of(const value& keys) {
  pool_settings out;
  keys_in in;
  if (!keys.is_object())
    return error{errc::invalid, "the settings of a pool must be a map"};
  for (const auto& [key, x] : keys.items()) {
    if (key == "scheduler")
      out.scheduler = static_cast<scheduler_kind>(in.word(key, x, scheduler_names));
    else if (key == "preemption")
      out.preemption = in.flag(key, x);
    else if (key == "default_priority")
      out.default_priority = in.count(key, x, 1, 99);
    else if (key == "max_slots")
      out.max_slots = x.is_null() ? -1 : in.count(key, x, 1);
    else if (key == "fitting")
      out.fitting = static_cast<fitting_order>(in.word(key, x, fitting_names));
    else if (key == "gangs")
      out.gangs = static_cast<gang_rule>(in.word(key, x, gang_names));
    else if (key == "reserve_after")
      out.reserve_after = in.time(key, x);
    else if (key == "min_run")
      out.min_run = in.time(key, x);
    else if (key == "fallback")
      out.fallback = in.texts(key, x);
    else if (key == "fallback_after")
      out.fallback_after = in.time(key, x);
    else if (key == "aux_per_agent")
      out.aux_per_agent = in.count(key, x, 0);
    else if (key == "launch_error")
      out.launch_error = in.flag(key, x);
    else if (key == "quotas") {
      if (!x.is_array())
        in.refuse(key, "a list");
      std::set<std::pair<bool, std::string>> seen; // whether of a workspace, and whose
      for (std::size_t i = 0; x.is_array() && i < x.size(); ++i) {
        const auto where = "quotas[" + std::to_string(i) + "]";
        out.quotas.push_back(quota_of(in, where, x[i]));
        if (!seen.insert({out.quotas.back().user.empty(), out.quotas.back().folded}).second)
          in.refuse(where, "the only quota of its user or workspace");
      }
    } else if (key != "default" && key != "defaults" && key != "provider")
      return error{errc::invalid, "`" + key + "` is not a key of a pool"};
  }
  if (!in.fault().empty())
    return error{errc::invalid, in.fault()};
  return out;
}

result<placement_rules> placement_rules_of(const value& keys) {
  placement_rules out;
  keys_in in;
  if (!keys.is_object())
    return error{errc::invalid, "`constraints` must be a map"};
  for (const auto& [key, x] : keys.items()) {
    const auto where = "constraints." + key;
    if (key == "device_type")
      out.device_types = in.texts(where, x);
    else if (key == "min_memory") {
      const auto bytes = x.is_string() ? config::parse_memory_size(x.get<std::string>()) : std::nullopt;
      if (bytes)
        out.min_memory_bytes = static_cast<std::uint64_t>(*bytes);
      else if (x.is_number_integer() && x >= 0)
        out.min_memory_bytes = x.get<std::uint64_t>();
      else
        in.refuse(where, "a size of memory: 40GiB");
    } else if (key == "labels")
      out.labels = in.labels(where, x);
    else if (key == "not_labels")
      out.not_labels = in.labels(where, x);
    else if (key == "agents")
      out.agents = in.texts(where, x);
    else if (key == "not_agents")
      out.not_agents = in.texts(where, x);
    else if (key == "same_label")
      out.same_label = in.text(where, x);
    else if (key == "prefer_labels")
      out.prefer_labels = in.labels(where, x);
    else
      return error{errc::invalid, "`" + where + "` is not a constraint"};
  }
  for (const auto& agent : out.agents)
    if (std::find(out.not_agents.begin(), out.not_agents.end(), agent) != out.not_agents.end())
      in.refuse("constraints.agents", "without `" + agent + "`, which stands in not_agents");
  if (!in.fault().empty())
    return error{errc::invalid, in.fault()};
  return out;
}

const slot_quota* pool_settings::quota_of_user(const std::string& folded) const {
  const slot_quota* found = nullptr;
  for (const auto& q : quotas)
    if (!q.user.empty() && (q.folded == folded || (q.user == "*" && !found)))
      found = &q;
  return found;
}

const slot_quota* pool_settings::quota_of_workspace(const std::string& folded) const {
  for (const auto& q : quotas)
    if (!q.workspace.empty() && q.folded == folded)
      return &q;
  return nullptr;
}

} // namespace troupe
