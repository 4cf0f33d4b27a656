#include "runtime/api/enum_numbers.hpp"

#include "model/value.hpp"

#include <charconv>
#include <optional>

namespace troupe::api {
namespace {

/// The names of an enum in the order of their numbers from 0, without their common prefix; "-" where a number
/// has no name.
struct known_enum {
  std::string_view prefix, names;
};

// The names and numbers are those of proto/src/determined in determined-ai/determined.
constexpr known_enum orders{"ORDER_BY_", "UNSPECIFIED ASC DESC"},
  log_levels{"LOG_LEVEL_", "UNSPECIFIED TRACE DEBUG INFO WARNING ERROR CRITICAL"},
  metric_types{"METRIC_TYPE_", "UNSPECIFIED TRAINING VALIDATION PROFILING"},
  workloads{"FILTER_OPTION_", "UNSPECIFIED CHECKPOINT VALIDATION CHECKPOINT_OR_VALIDATION"},
  tables{"TABLE_TYPE_", "UNSPECIFIED EXPERIMENT RUN"},
  periods{"RESOURCE_ALLOCATION_AGGREGATION_PERIOD_", "UNSPECIFIED DAILY MONTHLY"},
  sources_of_trials{"TRIAL_SOURCE_INFO_TYPE_", "UNSPECIFIED INFERENCE FINE_TUNING"},
  early_exits{"EXITED_REASON_", "UNSPECIFIED INVALID_HP - INIT_INVALID_HP"},
  activities{"ACTIVITY_TYPE_", "UNSPECIFIED GET"}, entities{"ENTITY_TYPE_", "UNSPECIFIED PROJECT"},
  webhook_modes{"WEBHOOK_MODE_", "UNSPECIFIED WORKSPACE SPECIFIC"},
  webhook_types{"WEBHOOK_TYPE_", "UNSPECIFIED DEFAULT SLACK"},
  triggers{"TRIGGER_TYPE_", "UNSPECIFIED EXPERIMENT_STATE_CHANGE METRIC_THRESHOLD_EXCEEDED TASK_LOG CUSTOM"},
  profiler_metrics{"PROFILER_METRIC_TYPE_", "UNSPECIFIED SYSTEM TIMING MISC"},
  experiment_states{"STATE_",
                    "UNSPECIFIED ACTIVE PAUSED STOPPING_COMPLETED STOPPING_CANCELED STOPPING_ERROR COMPLETED "
                    "CANCELED ERROR DELETED DELETING DELETE_FAILED STOPPING_KILLED QUEUED PULLING STARTING "
                    "RUNNING"},
  trial_states{"STATE_", "UNSPECIFIED ACTIVE PAUSED STOPPING_CANCELED STOPPING_KILLED STOPPING_COMPLETED "
                         "STOPPING_ERROR CANCELED COMPLETED ERROR QUEUED PULLING STARTING RUNNING"},
  checkpoint_states{"STATE_", "UNSPECIFIED ACTIVE COMPLETED ERROR DELETED PARTIALLY_DELETED"},
  job_states{"STATE_", "UNSPECIFIED QUEUED SCHEDULED SCHEDULED_BACKFILLED"},
  checkpoint_sorts{"SORT_BY_", "UNSPECIFIED UUID TRIAL_ID BATCH_NUMBER END_TIME STATE SEARCHER_METRIC"},
  experiment_sorts{"SORT_BY_",
                   "UNSPECIFIED ID DESCRIPTION - START_TIME END_TIME STATE - NUM_TRIALS PROGRESS USER NAME "
                   "FORKED_FROM RESOURCE_POOL PROJECT_ID CHECKPOINT_SIZE CHECKPOINT_COUNT "
                   "SEARCHER_METRIC_VAL"},
  trial_sorts{"SORT_BY_",
              "UNSPECIFIED ID - - START_TIME END_TIME STATE BEST_VALIDATION_METRIC LATEST_VALIDATION_METRIC "
              "BATCHES_PROCESSED DURATION RESTARTS CHECKPOINT_SIZE LOG_RETENTION_DAYS"},
  task_sorts{"SORT_BY_", "UNSPECIFIED ID DESCRIPTION - START_TIME WORKSPACE_ID"},
  agent_sorts{"SORT_BY_", "UNSPECIFIED ID TIME"},
  model_sorts{"SORT_BY_",
              "UNSPECIFIED NAME DESCRIPTION - CREATION_TIME LAST_UPDATED_TIME NUM_VERSIONS WORKSPACE"},
  version_sorts{"SORT_BY_", "UNSPECIFIED - - VERSION CREATION_TIME"},
  template_sorts{"SORT_BY_", "UNSPECIFIED NAME"},
  token_sorts{"SORT_BY_", "UNSPECIFIED USER_ID EXPIRY CREATED_AT TOKEN_TYPE REVOKED DESCRIPTION"},
  user_sorts{"SORT_BY_",
             "UNSPECIFIED DISPLAY_NAME USER_NAME ADMIN ACTIVE MODIFIED_TIME NAME LAST_AUTH_TIME REMOTE"},
  workspace_sorts{"SORT_BY_", "UNSPECIFIED ID NAME"},
  project_sorts{"SORT_BY_", "UNSPECIFIED CREATION_TIME LAST_EXPERIMENT_START_TIME NAME DESCRIPTION ID"};

/// Where requests have an enum. `where` is the path of the route or the type of the body; "*" stands for all
/// of them. `key` is the path of the field, "filters.states"; a list on the way stands for each of its
/// elements.
struct place_of_enum {
  std::string_view where, key;
  const known_enum& of;
};

const place_of_enum in_queries[] = {
  {"*", "orderBy", orders},
  {"*", "levels", log_levels},
  {"*", "metricType", metric_types},
  {"*", "sortByAttr", checkpoint_sorts},
  {"*", "tableType", tables},
  {"*", "period", periods},
  {"*", "trialSourceInfoType", sources_of_trials},
  {"/api/v1/trials/{trialId}/workloads", "filter", workloads},
  {"/api/v1/experiments", "states", experiment_states},
  {"/api/v1/experiments/{experimentId}/trials", "states", trial_states},
  {"/api/v1/experiments/{experimentId}/checkpoints", "states", checkpoint_states},
  {"/api/v1/trials/{trialId}/checkpoints", "states", checkpoint_states},
  {"/api/v1/job-queues", "states", job_states},
  {"/api/v1/job-queues-v2", "states", job_states},
  {"/api/v1/experiments", "sortBy", experiment_sorts},
  {"/api/v1/experiments/{experimentId}/trials", "sortBy", trial_sorts},
  {"/api/v1/agents", "sortBy", agent_sorts},
  {"/api/v1/commands", "sortBy", task_sorts},
  {"/api/v1/notebooks", "sortBy", task_sorts},
  {"/api/v1/shells", "sortBy", task_sorts},
  {"/api/v1/tensorboards", "sortBy", task_sorts},
  {"/api/v1/models", "sortBy", model_sorts},
  {"/api/v1/models/{modelName}/versions", "sortBy", version_sorts},
  {"/api/v1/templates", "sortBy", template_sorts},
  {"/api/v1/tokens", "sortBy", token_sorts},
  {"/api/v1/users", "sortBy", user_sorts},
  {"/api/v1/workspaces", "sortBy", workspace_sorts},
  {"/api/v1/workspaces/{id}/projects", "sortBy", project_sorts},
};

const place_of_enum in_bodies[] = {
  {"*", "filters.states", experiment_states},
  {"v1PatchTrialRequest", "state", trial_states},
  {"v1Checkpoint", "state", checkpoint_states},
  {"v1TrialEarlyExit", "reason", early_exits},
  {"v1ReportTrialSourceInfoRequest", "trialSourceInfo.trialSourceInfoType", sources_of_trials},
  {"v1PostUserActivityRequest", "activityType", activities},
  {"v1PostUserActivityRequest", "entityType", entities},
  {"v1PatchMasterConfigRequest", "config.log.level", log_levels},
  {"v1Webhook", "mode", webhook_modes},
  {"v1Webhook", "webhookType", webhook_types},
  {"v1Webhook", "triggers.triggerType", triggers},
  {"v1PostWebhookEventDataRequest", "data.level", log_levels},
  {"v1PostTrialProfilerMetricsBatchRequest", "batches.labels.metricType", profiler_metrics},
};

std::optional<std::string> name_in(const known_enum& of, std::uint64_t number) {
  auto rest = of.names;
  for (; number > 0; --number) {
    const auto blank = rest.find(' ');
    if (blank == rest.npos)
      return std::nullopt;
    rest.remove_prefix(blank + 1);
  }
  const auto name = rest.substr(0, rest.find(' '));
  return name == "-" ? std::nullopt : std::optional(std::string(of.prefix) += name);
}

bool has_name(const known_enum& of, std::string_view text) {
  if (!text.starts_with(of.prefix) || text.ends_with('-') || text.find(' ') != text.npos)
    return false;
  text.remove_prefix(of.prefix.size());
  const auto at = (" " + std::string(of.names) + " ").find(" " + std::string(text) + " ");
  return !text.empty() && at != std::string::npos;
}

std::string all_names(const known_enum& of) {
  std::string out;
  for (std::uint64_t number = 0; number <= of.names.size(); ++number)
    if (auto name = name_in(of, number))
      out += (out.empty() ? "" : ", ") + *name;
  return out;
}

error not_one_of(const known_enum& of, std::string_view where, const std::string& text) {
  return {errc::invalid,
          std::string(where) + ": there is no '" + text.substr(0, 50) + "': it is one of " + all_names(of)};
}

/// Replaces numbers under `key` by names; returns whether it replaced any. Texts may leave out the common
/// prefix. `where` is the whole key, for errors.
result<bool> name_at(value& x, std::string_view key, const known_enum& of, std::string_view where) {
  if (x.is_array()) {
    bool some = false;
    for (auto& one : x) {
      auto replaced = name_at(one, key, of, where);
      if (!replaced)
        return replaced;
      some = some || *replaced;
    }
    return some;
  } else if (key.empty()) {
    if (x.is_string() && !x.get_ref<const std::string&>().empty()) {
      const auto& text = x.get_ref<const std::string&>();
      if (has_name(of, text))
        return false;
      auto whole = std::string(of.prefix) + text;
      if (!has_name(of, whole))
        return not_one_of(of, where, text);
      x = std::move(whole);
      return true;
    } else if (x.is_number()) {
      auto name = x.is_number_unsigned() ? name_in(of, x.get<std::uint64_t>()) : std::nullopt;
      if (!name)
        return not_one_of(of, where, to_json(x));
      x = *std::move(name);
      return true;
    }
  } else if (x.is_object()) {
    const auto dot = key.find('.');
    const auto first = key.substr(0, dot);
    const auto rest = dot == key.npos ? std::string_view() : key.substr(dot + 1);
    for (const auto& spelled : {std::string(first), to_snake(first)})
      if (auto found = x.find(spelled); found != x.end())
        return name_at(*found, rest, of, where);
  }
  return false;
}

/// Whether the text may contain a key of this name. Otherwise it need not be parsed.
bool may_have(std::string_view text, std::string_view key) {
  const auto last = key.substr(key.rfind('.') + 1);
  return text.find("\"" + std::string(last) + "\"") != text.npos ||
         text.find("\"" + to_snake(last) + "\"") != text.npos;
}

/// Limit of bodies that are parsed here; larger ones carry files and have no enums.
constexpr std::size_t largest = 1 << 20;

} // namespace

result<void> name_enums(query_list& query, std::string_view path) {
  if (!path.starts_with("/api/v1/"))
    return {};
  for (auto& [key, text] : query.all)
    for (const auto& one : in_queries) {
      if (text.empty() || key != one.key || (one.where != "*" && one.where != path))
        continue;
      std::uint64_t number = 0;
      const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (bad == std::errc() && end == text.data() + text.size())
        text = name_in(one.of, number).value_or(text);
      if (!has_name(one.of, text))
        return not_one_of(one.of, key, text);
      break;
    }
  return {};
}

result<void> name_enums(std::string& body, std::string_view takes) {
  if (takes.empty() || body.size() > largest)
    return {};
  std::optional<value> read;
  bool some = false;
  for (const auto& one : in_bodies) {
    if ((one.where != "*" && one.where != takes) || !may_have(body, one.key))
      continue;
    if (!read) {
      auto parsed = parse_json(body);
      if (!parsed)
        return {};
      read = *std::move(parsed);
    }
    auto replaced = name_at(*read, one.key, one.of, one.key);
    if (!replaced)
      return replaced.error();
    some = some || *replaced;
  }
  if (some) // otherwise the body keeps its bytes
    body = to_json(*read);
  return {};
}

} // namespace troupe::api
