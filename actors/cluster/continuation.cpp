#include "actors/cluster/continuation.hpp"

#include "actors/catalogue/house_rules.hpp"
#include "actors/cluster/accepted_config.hpp"
#include "actors/retention/retention.hpp"
#include "model/config/cluster_config.hpp"
#include "model/config/document.hpp"
#include "model/config_in_force.hpp"
#include "model/described.hpp"

#include <algorithm>
#include <cctype>

namespace troupe {
namespace {

/// The configuration with the words of the row, which users may have changed.
value with_words(value config, const experiment_row& row) {
  if (!config.is_object())
    return config;
  const auto words = words_of(config);
  if (!row.name.empty() && row.name != words.name)
    config["name"] = row.name;
  if (row.description != words.description)
    config["description"] = row.description;
  if (row.labels != words.labels)
    config["labels"] = row.labels;
  return config;
}

} // namespace

bool says_nothing(const value& overrides) {
  if (!overrides.is_string())
    return overrides.is_null() || overrides == value::object();
  std::string shown;
  for (const char c : overrides.get<std::string>())
    if (!std::isspace(static_cast<unsigned char>(c)))
      shown += c;
  return shown.empty() || shown == "{}";
}

/// The number of slots of a trial; of a range its `end`, "min" or "max". Null where the configuration does
/// not say it.
static value slots_of_trial(const value& settings, const char* end) {
  auto wanted = settings.value(value::json_pointer("/resources/slots_per_trial"), value(1));
  if (wanted.is_object())
    wanted = wanted.value(end, value(1));
  return wanted.is_number_integer() ? wanted : value();
}

std::optional<error> too_large(const value& settings, const std::string& name, const pool_capacity& pool) {
  const auto wanted = slots_of_trial(settings, "min");
  if (!pool.launch_error || wanted.is_null() || wanted.get<std::int64_t>() <= pool.most())
    return std::nullopt;
  return error{errc::invalid, "resources.slots_per_trial: " + to_json(wanted) + " slots, and pool '" + name +
                                "' has " + std::to_string(pool.most()) +
                                "\nhint: ask for fewer, or start more agents, or raise max_slots where the "
                                "pool has it; pools." +
                                name + ".launch_error: false lets it wait"};
}

value launch_warnings(const value& settings, const pool_capacity& pool) {
  auto out = value::array();
  const auto least = slots_of_trial(settings, "min"), most = slots_of_trial(settings, "max");
  if (least.is_null() || most.is_null())
    return out;
  const bool single = settings.value(value::json_pointer("/resources/is_single_node"), value()) == true;
  if (auto code = launch_warning(pool, least.get<int>(), most.get<int>(), single); !code.empty())
    out.push_back(std::move(code));
  return out;
}

std::optional<error> below_one_trial(const value& settings, std::int64_t max_slots) {
  const auto least = slots_of_trial(settings, "min");
  if (least.is_null() || max_slots >= least.get<std::int64_t>())
    return std::nullopt;
  return error{errc::invalid, "max_slots: " + std::to_string(max_slots) +
                                " is below the least slots of a trial, " + to_json(least) +
                                "\nhint: " + to_json(least) + " or more, or none for no limit"};
}

std::optional<int> log_days_named(const value& overrides, const value& config) {
  const auto source = overrides.is_string() ? overrides.get<std::string>() : to_json(overrides);
  const auto given = config::to_value(config::read_document(source, "override config").root);
  const auto kept = given.is_object() ? given.value("retention_policy", value()) : value();
  if (!kept.is_object() || kept.value("log_retention_days", value()).is_null())
    return std::nullopt;
  return retention_of(config).log_days;
}

result<experiment_continued> to_continue(const experiment_row& row, const std::vector<trial_row>& trials,
                                         const value& overrides, const continuation_terms& terms,
                                         time_point now) {
  const auto searcher = row.config->value(value::json_pointer("/searcher/name"), value());
  const bool single = searcher == "single";
  const bool changes = !says_nothing(overrides);
  if (row.archived)
    return error{errc::invalid, "experiment " + to_string(row.id) + " is archived: unarchive it first"};
  if (row.state >= experiment_state::deleting)
    return error{errc::conflict, "experiment " + to_string(row.id) + " is in state " +
                                   std::string(name(row.state)) + ": its deletion has begun"};
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
  const auto now_set = with_words(config_in_force(row), row);
  auto config = changes ? continued_config(now_set, overrides, terms.checkpoint_dir, terms.invariant)
                        : result<value>(now_set);
  if (!config)
    return config.error();
  if (auto fine = check_constraints(*config, terms.constraints); !fine)
    return fine.error();
  // An experiment that stays as it is may name a pool that is gone: it goes on in the default pool.
  if (const auto pool = config::pool_of_experiment(terms.cluster, *config, terms.pools);
      !pool && (changes || config::pool_of_experiment(terms.cluster, *config)))
    return pool.error();
  if (changes)
    out.config = std::move(*config);
  for (const auto& trial : trials) {
    if (!single && trial.state == trial_state::completed)
      continue;
    if (trial.deletion != deletion_step::none)
      return error{errc::conflict, "the deletion of trial " + to_string(trial.id) + " has begun"};
    out.trials.push_back(trial.id);
  }
  return out;
}

} // namespace troupe
