#include "searchers/custom.hpp"

#include "model/rng.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::searchers {
namespace {

constexpr std::uint32_t snapshot_magic = 0x43535254; // "TRSC"
constexpr std::uint32_t snapshot_version = 2;        // version 1 had no driver
constexpr std::uint64_t trial_seed_stream = 2;
constexpr std::size_t longest_key = 256;

error wrong(std::string what) { return {errc::invalid, std::move(what)}; }

const value& member(const value& object, const char* key) {
  static const value none;
  auto it = object.find(key);
  return it == object.end() ? none : *it;
}

} // namespace

struct custom_search::draft {
  std::map<trial_key, stage> changed; ///< stages that differ from those in `known`
  const std::map<trial_key, stage>& known;
  std::vector<search_action> actions;
  double progress = 0;
  bool over = false;

  const stage* find(const trial_key& key) const {
    if (auto it = changed.find(key); it != changed.end())
      return &it->second;
    auto it = known.find(key);
    return it == known.end() ? nullptr : &it->second;
  }
  std::size_t count() const {
    auto fresh =
      std::count_if(changed.begin(), changed.end(), [&](const auto& x) { return !known.contains(x.first); });
    return known.size() + static_cast<std::size_t>(fresh);
  }
};

result<std::vector<search_action>> custom_search::apply(const search_event& event) {
  if (auto* ordered = std::get_if<search_ordered>(&event))
    return obey(ordered->orders);
  return std::visit(
    [this](const auto& x) -> result<std::vector<search_action>> {
      if constexpr (requires { x.trial; }) {
        auto it = trials_.find(x.trial);
        if (it == trials_.end())
          return error{errc::not_found, "trial `" + x.trial + "` was never created by this search"};
        if constexpr (std::is_same_v<std::decay_t<decltype(x)>, trial_exited>)
          it->second = stage::closed;
      }
      return std::vector<search_action>{};
    },
    event);
}

result<std::vector<search_action>> custom_search::obey(const value& orders) {
  if (!orders.is_object() || !member(orders, "actions").is_array())
    return wrong("orders are an object with the list `actions`");
  for (const auto& [key, unused] : orders.items())
    if (key != "actions" && key != "upto" && key != "driver" && key != "take_over")
      return wrong("orders: unknown member `" + key + "`; they take actions, upto, driver, take_over");
  auto driver = driver_of(orders);
  if (!driver)
    return driver.error();
  const auto& upto = member(orders, "upto");
  if (!upto.is_null() && (!upto.is_number_integer() || upto.get<std::int64_t>() < 0))
    return wrong("`upto` must be the number of an event");
  if (!upto.is_null() && upto.get<std::uint64_t>() <= taken_upto_) {
    driver_ = std::move(*driver);
    return std::vector<search_action>{};
  }
  if (over_)
    return error{errc::conflict, "the search was shut down"};
  draft d{{}, trials_, {}, progress_, false};
  const auto& list = member(orders, "actions");
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto where = "actions[" + std::to_string(i) + "]";
    if (d.over)
      return wrong(where + ": nothing can follow the shutdown");
    if (auto ok = obey_one(d, list[i]); !ok)
      return error{ok.error().code, where + ": " + ok.error().what};
  }
  for (const auto& [key, at] : d.changed)
    trials_[key] = at;
  progress_ = d.progress;
  over_ = d.over;
  driver_ = std::move(*driver);
  if (!upto.is_null())
    taken_upto_ = upto.get<std::uint64_t>();
  return std::move(d.actions);
}

result<std::string> custom_search::driver_of(const value& orders) const {
  const auto &named = member(orders, "driver"), &take_over = member(orders, "take_over");
  if (!named.is_null() && (!named.is_string() || named.get<std::string>().empty() ||
                           named.get<std::string>().size() > longest_key))
    return wrong("`driver` must name the process that decides: a string of at most 256 bytes");
  if (!take_over.is_null() && !take_over.is_boolean())
    return wrong("`take_over` must be true or false");
  auto name = named.is_null() ? std::string() : named.get<std::string>();
  if (take_over == true && name.empty())
    return wrong("`take_over` needs `driver`, the name of the new one");
  if (driver_.empty() || name == driver_ || take_over == true)
    return name.empty() ? driver_ : name;
  return error{errc::conflict,
               "the search is driven by `" + driver_ + "`" +
                 (name.empty() ? "; these orders name no driver" : ", not by `" + name + "`") +
                 "; to take it over, send `driver` and `\"take_over\": true`"};
}

result<void> custom_search::obey_one(draft& d, const value& action) const {
  if (!action.is_object())
    return wrong("an action is an object");
  static constexpr const char* kinds[] = {"create",  "stop",     "pause",   "resume",
                                          "perturb", "progress", "shutdown"};
  std::string kind;
  for (const char* k : kinds)
    if (action.contains(k)) {
      if (!kind.empty())
        return wrong("both `" + kind + "` and `" + k + "`; one action an object");
      kind = k;
    }
  if (kind.empty())
    return wrong("none of create, stop, pause, resume, perturb, progress, shutdown");
  const auto& named = action[kind];
  if (kind == "progress") {
    auto x = number_in(named);
    if (!x || !(*x >= 0 && *x <= 1))
      return wrong("`progress` must be a number, 0 to 1");
    d.progress = *x;
    return {};
  }
  if (kind == "shutdown") {
    if (named != true)
      return wrong("`shutdown` must be true");
    for (const char* flag : {"cancel", "failure"})
      if (const auto& x = member(action, flag); !x.is_null() && !x.is_boolean())
        return wrong(std::string("`") + flag + "` must be true or false");
    d.actions.push_back(shut_down{member(action, "cancel") == true, member(action, "failure") == true});
    d.over = true;
    return {};
  }
  if (!named.is_string() || named.get<std::string>().empty() || named.get<std::string>().size() > longest_key)
    return wrong("`" + kind + "` must name a trial: a string of at most 256 bytes");
  auto key = named.get<std::string>();
  const auto& hparams = member(action, "hparams");
  if ((kind == "create" || kind == "perturb") && !hparams.is_object())
    return wrong("`hparams` must be an object");
  auto* at = d.find(key);
  if (kind == "create") {
    if (at)
      return {};
    if (d.count() >= static_cast<std::size_t>(max_trials_))
      return wrong("`max_trials` of the configuration are " + std::to_string(max_trials_));
    const auto& seed = member(action, "trial_seed");
    if (!seed.is_null() &&
        !(seed.is_number_integer() && seed.get<std::int64_t>() >= 0 && seed.get<std::int64_t>() < 1LL << 31))
      return wrong("`trial_seed` must be an integer, 0 to 2147483647");
    const auto& source = member(action, "source_checkpoint");
    if (!source.is_null() && !source.is_string())
      return wrong("`source_checkpoint` must be the UUID of a checkpoint");
    create_trial made{key, hparams, 0, source.is_string() ? source.get<std::string>() : ""};
    made.trial_seed = seed.is_null()
                        ? static_cast<std::uint32_t>(random_bits(seed_, trial_seed_stream, d.count()) >> 33)
                        : seed.get<std::uint32_t>();
    d.actions.push_back(std::move(made));
    d.changed[key] = stage::running;
    return {};
  }
  if (!at)
    return error{errc::not_found, "trial `" + key + "` was never created by this search"};
  if (*at == stage::closed)
    return {}; // the trial ended while the orders were on their way
  if (kind == "stop") {
    stop_trial reason;
    reason.trial = key;
    const auto& why = member(action, "why");
    reason.why = why.is_string() && !why.get<std::string>().empty() ? why.get<std::string>()
                                                                    : "stopped by the custom search";
    reason.metric = reason.needed = std::nan("");
    d.actions.push_back(std::move(reason));
    d.changed[key] = stage::closed;
  } else if (kind == "pause") {
    if (*at == stage::running)
      d.actions.push_back(pause_trial{key});
    d.changed[key] = stage::paused;
  } else if (kind == "resume") {
    if (*at == stage::paused)
      d.actions.push_back(resume_trial{key, number_in(member(action, "until")).value_or(0)});
    d.changed[key] = stage::running;
  } else {
    const auto &source = member(action, "source"), &checkpoint = member(action, "checkpoint");
    if (!source.is_string() || !d.find(source.get<std::string>()))
      return wrong("`source` must name a trial of this search");
    if (!checkpoint.is_string() || checkpoint.get<std::string>().empty())
      return wrong("`checkpoint` must be the UUID of a checkpoint");
    d.actions.push_back(
      perturb_trial{key, source.get<std::string>(), checkpoint.get<std::string>(), hparams});
  }
  return {};
}

void custom_search::persist(archive& ar, std::uint32_t version) {
  std::vector<std::string> keys;
  std::vector<stage> stages;
  for (const auto& [key, at] : trials_) {
    keys.push_back(key);
    stages.push_back(at);
  }
  ar(keys, stages, taken_upto_, progress_, over_);
  if (version >= 2)
    ar(driver_);
  if (!ar.reading() || keys.size() != stages.size())
    return keys.size() == stages.size() ? void() : ar.fail();
  for (std::size_t i = 0; i < keys.size(); ++i)
    trials_[keys[i]] = stages[i];
}

std::string custom_search::snapshot() const {
  archive ar;
  auto magic = snapshot_magic, version = snapshot_version;
  ar(magic, version);
  custom_search(*this).persist(ar, version);
  return sealed(ar.take());
}

result<void> custom_search::restore(std::string_view bytes) {
  auto payload = unsealed(bytes);
  if (!payload)
    return payload.error();
  archive ar(*payload);
  std::uint32_t magic = 0, version = 0;
  ar(magic, version);
  if (ar.failed() || magic != snapshot_magic)
    return error{errc::corrupt, "searcher snapshot: these bytes are none of a custom search"};
  if (version < 1 || version > snapshot_version)
    return error{errc::unsupported, "searcher snapshot: version " + std::to_string(version) +
                                      ", this build reads 1 to " + std::to_string(snapshot_version)};
  persist(ar, version);
  if (ar.failed() || !ar.at_end())
    return error{errc::corrupt, "searcher snapshot: lengths do not fit together"};
  return {};
}

} // namespace troupe::searchers
