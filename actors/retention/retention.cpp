#include "actors/retention/retention.hpp"

#include "model/checkpoint_place.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace troupe {
namespace {

std::optional<std::int64_t> whole(const value& of, const char* key) {
  if (!of.is_object())
    return std::nullopt;
  auto it = of.find(key);
  return it != of.end() && it->is_number() ? std::optional{it->get<std::int64_t>()} : std::nullopt;
}

std::uint64_t count(const value& of, const char* key, std::uint64_t otherwise) {
  auto given = whole(of, key);
  return given ? static_cast<std::uint64_t>(std::max<std::int64_t>(*given, 0)) : otherwise;
}

/// Marks the first `count` members of `order` as kept.
void keep_first(const std::vector<std::size_t>& order, std::uint64_t count, std::vector<char>& kept) {
  for (std::size_t i = 0; i < order.size() && i < count; ++i)
    kept[order[i]] = 1;
}

} // namespace

retention_policy retention_of(const value& config) {
  retention_policy policy;
  const auto storage = config.is_object() ? config.value("checkpoint_storage", value()) : value();
  policy.experiment_best = count(storage, "save_experiment_best", policy.experiment_best);
  policy.trial_best = count(storage, "save_trial_best", policy.trial_best);
  policy.trial_latest = count(storage, "save_trial_latest", policy.trial_latest);
  const auto type = storage.is_object() ? storage.value("type", value()) : value();
  policy.deletes_here = type != "s3" && type != "gcs" && type != "azure";
  const auto logs = config.is_object() ? config.value("retention_policy", value()) : value();
  if (auto days = whole(logs, "log_retention_days"); days)
    policy.log_days = static_cast<int>(std::clamp<std::int64_t>(*days, -1, 32767));
  return policy;
}

std::vector<std::string> superfluous(const retention_policy& policy, bool smaller_is_better,
                                     const std::vector<checkpoint_standing>& all) {
  std::vector<char> kept(all.size(), 0);
  auto better = [&](std::size_t a, std::size_t b) {
    return smaller_is_better ? *all[a].metric < *all[b].metric : *all[a].metric > *all[b].metric;
  };
  std::vector<std::size_t> ranked;
  struct own {
    std::vector<std::size_t> best, latest;
  };
  std::map<trial_id, own> by_trial;
  for (std::size_t i = 0; i < all.size(); ++i) {
    by_trial[all[i].trial].latest.push_back(i);
    if (all[i].metric && !std::isnan(*all[i].metric))
      ranked.push_back(i);
  }
  std::stable_sort(ranked.begin(), ranked.end(), better);
  keep_first(ranked, policy.experiment_best, kept);
  for (auto i : ranked)
    by_trial[all[i].trial].best.push_back(i);
  for (auto& [trial, of] : by_trial) {
    keep_first(of.best, policy.trial_best, kept);
    std::stable_sort(of.latest.begin(), of.latest.end(),
                     [&](auto a, auto b) { return all[a].steps > all[b].steps; });
    keep_first(of.latest, policy.trial_latest, kept);
  }
  std::vector<std::string> out;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!kept[i])
      out.push_back(all[i].uuid);
  return out;
}

time_point sweep_due(std::string_view source, const retention_policy& policy, time_point ended) {
  const retention_policy usual;
  if (std::tie(policy.experiment_best, policy.trial_best, policy.trial_latest) !=
      std::tie(usual.experiment_best, usual.trial_best, usual.trial_latest))
    return ended;
  for (auto key : {"save_experiment_best", "save_trial_best", "save_trial_latest"})
    if (source.find(key) != std::string_view::npos)
      return ended;
  return ended + std::chrono::hours(1);
}

std::optional<int> log_days(const retention_policy& policy, const std::vector<log_retention_changed>& changes,
                            trial_id trial) {
  const log_retention_changed* last = nullptr;
  for (const auto& one : changes)
    if ((!one.trial || one.trial == trial) && (!last || last->at <= one.at))
      last = &one;
  return last ? std::optional<int>(last->days) : policy.log_days;
}

std::optional<duration> log_life(const retention_policy& policy,
                                 const std::vector<log_retention_changed>& changes, trial_id trial,
                                 std::optional<duration> usual) {
  const auto days = log_days(policy, changes, trial);
  if (!days)
    return usual;
  return *days < 0 ? std::nullopt : std::optional<duration>(std::chrono::hours(24) * *days);
}

bool log_expired(std::optional<duration> life, time_point ended, time_point now) {
  return life && ended != time_point{} && ended + *life <= now;
}

bool removable(const checkpoint& saved) {
  const bool named =
    saved.uuid.size() == 36 && saved.uuid.find_first_not_of("0123456789abcdefABCDEF-") == std::string::npos;
  return named && place_of(saved).key == saved.uuid;
}

} // namespace troupe
