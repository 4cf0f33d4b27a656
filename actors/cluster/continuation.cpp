#include "actors/cluster/continuation.hpp"

#include "actors/catalogue/house_rules.hpp"
#include "actors/cluster/accepted_config.hpp"
#include "model/config/cluster_config.hpp"

#include <algorithm>
#include <cctype>

namespace troupe {

bool says_nothing(const value& overrides) {
  if (!overrides.is_string())
    return overrides.is_null() || overrides == value::object();
  std::string shown;
  for (const char c : overrides.get<std::string>())
    if (!std::isspace(static_cast<unsigned char>(c)))
      shown += c;
  return shown.empty() || shown == "{}";
}

namespace {

/// The configuration with what a user has set since, as the experiment goes on.
value as_set(const experiment_row& row) {
  auto config = row.config.get();
  if (row.resources.empty() || !config.is_object())
    return config;
  const auto& set = row.resources.front();
  auto& resources = config["resources"];
  if (!resources.is_object())
    resources = value::object();
  resources["priority"] = set.priority > 0 ? value(set.priority) : value();
  resources["max_slots"] = set.max_slots >= 0 ? value(set.max_slots) : value();
  if (!set.pool.empty())
    resources["resource_pool"] = set.pool;
  return config;
}

} // namespace

std::optional<error> too_large(const value& settings, const value& cluster,
                               const std::function<int(const std::string& pool)>& slots_in) {
  const auto pool = config::pool_of_experiment(cluster, settings);
  if (!pool || config::pool_settings(cluster, *pool).value("launch_error", value()) != true)
    return std::nullopt;
  auto wanted = settings.value(value::json_pointer("/resources/slots_per_trial"), value(1));
  if (wanted.is_object())
    wanted = wanted.value("min", value(1));
  const int there = slots_in(*pool);
  if (!wanted.is_number_integer() || wanted.get<std::int64_t>() <= there)
    return std::nullopt;
  return error{errc::invalid, "resources.slots_per_trial: " + to_json(wanted) + " slots, and pool '" + *pool +
                                "' has " + std::to_string(there) +
                                "\nhint: ask for fewer, or start more agents; pools." + *pool +
                                ".launch_error: false lets it wait"};
}

result<experiment_continued> to_continue(const experiment_row& row, const std::vector<trial_row>& trials,
                                         const value& overrides, const continuation_terms& terms,
                                         time_point now) {
  const auto searcher = row.config->value(value::json_pointer("/searcher/name"), value());
  const bool single = searcher == "single";
  const bool changes = !says_nothing(overrides);
  if (row.archived)
    return error{errc::invalid, "experiment " + to_string(row.id) + " is archived: unarchive it first"};
  if (row.unmanaged)
    return error{errc::invalid, "experiment " + to_string(row.id) +
                                  " is unmanaged: its own processes start its trials again"};
  if (!single && searcher != "random" && searcher != "grid")
    return error{errc::invalid, "Unsupported searcher type provided"};
  if (!single && changes)
    return error{errc::invalid, "override config is provided and experiment is not single searcher"};
  if (!single && row.state == experiment_state::completed)
    return error{errc::invalid, "experiment has been completed, cannot continue this experiment"};
  experiment_continued out;
  out.at = now;
  out.id = row.id;
  auto config = changes ? continued_config(row.config, overrides, terms.checkpoint_dir, terms.invariant)
                        : result<value>(as_set(row));
  if (!config)
    return config.error();
  if (auto fine = check_constraints(*config, terms.constraints); !fine)
    return fine.error();
  const auto pool = config::pool_of_experiment(terms.cluster, *config);
  if (!pool && changes)
    return pool.error();
  if (pool && !terms.may_use(*pool))
    return error{errc::invalid, "resource pool '" + *pool + "' is not available in its workspace"};
  if (auto no = too_large(*config, terms.cluster, terms.slots_in))
    return *no;
  if (changes)
    out.config = std::move(*config);
  for (const auto& trial : trials)
    if (single || trial.state != trial_state::completed)
      out.trials.push_back(trial.id);
  return out;
}

} // namespace troupe
