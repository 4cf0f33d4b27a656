#include "actors/retention/retention.hpp"
#include "actors/retention/storage_history.hpp"
#include "model/checkpoint_place.hpp"
#include "model/config/secrets.hpp"
#include "model/config_in_force.hpp"
#include "runtime/api/log_shape.hpp"
#include "runtime/api/shapes.hpp"
#include "storage/keys.hpp"
#include "storage/rollback.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace troupe::api {
namespace {

bool is_set(time_point at) { return at != time_point{}; }

value sizes(const checkpoint& saved) {
  value x = value::object();
  for (const auto& [path, bytes] : saved.files)
    x[path] = std::to_string(bytes);
  return x;
}

value metadata_of(const checkpoint& saved) {
  value x = saved.metadata.is_object() ? saved.metadata : value::object();
  if (!x.contains("steps_completed"))
    x["steps_completed"] = saved.steps;
  return x;
}

/// The report, joined with what the run reported at the same step right before and after it.
result<metric_row> whole_step(metric_row report, const trial_row& of, const storage::reader& storage) {
  constexpr std::uint64_t around = 8; // reports of one step are close to each other
  auto some = storage.metrics(of.id, report.row > around ? report.row - around : 0, 2 * around, report.group);
  if (!some)
    return some.error();
  std::optional<metric_row> all;
  for (const auto& one : *some)
    if (of_one_step(one, report))
      all ? join_step(*all, one) : void(all = one);
  return all ? std::move(*all) : std::move(report);
}

/// The report of a validation, joined as `whole_step` does. A deletion erases reports right before their
/// trial: where the report is gone, so is the trial.
result<metric_row> whole_validation(const validation_row& known, const trial_row& of,
                                    const storage::reader& storage) {
  auto report = storage.metric(of.id, known.row);
  if (!report && report.error().code == errc::not_found)
    return error{errc::not_found, "trial '" + to_string(of.id) + "' not found"};
  return report ? whole_step(std::move(*report), of, storage) : report;
}

/// The validation at `steps` that is not archived; nullopt where the trial has none.
result<std::optional<metric_row>> validation_at(const trial_row& of, std::int64_t steps,
                                                const storage::reader& storage) {
  for (const auto& known : {of.best, of.latest})
    if (known.row != 0 && known.steps == steps) {
      auto whole = whole_validation(known, of, storage);
      return whole ? result<std::optional<metric_row>>(std::move(*whole)) : whole.error();
    }
  auto gone = storage::rollback_of(of, storage);
  if (!gone)
    return gone.error();
  std::optional<metric_row> found;
  for (std::uint64_t after = 0;;) {
    auto some = storage.metrics(of.id, after, 1000, "validation");
    if (!some)
      return some.error();
    for (auto& report : *some)
      if (report.steps == steps && !gone->archives(report)) {
        if (found && of_one_step(*found, report))
          join_step(*found, report);
        else
          found = report;
      }
    if (some->size() < 1000)
      return found;
    after = some->back().row;
  }
}

result<value> validation_shape(const validation_row& known, const trial_row& of,
                               const storage::reader& storage) {
  if (known.row == 0)
    return value(nullptr);
  auto whole = whole_validation(known, of, storage);
  return whole ? result<value>(training_workload(*whole)) : whole.error();
}

double wall_seconds(const trial_row& row, time_point now) {
  duration sum{};
  for (const auto& run : row.runs)
    sum += std::max((is_set(run.ended) ? run.ended : now) - run.started, duration{});
  return std::chrono::duration<double>(sum).count();
}

value progress_validation(const validation_row& v) {
  if (v.row == 0)
    return nullptr;
  value shape{{"totalBatches", v.steps}, {"metric", v.judged ? value(v.metric) : value()}};
  if (!std::isnan(v.units))
    shape["units"] = v.units;
  return shape;
}

const char* state_of(const checkpoint_row& row) {
  switch (row.state) {
  case checkpoint_state::completed:
    return "STATE_COMPLETED";
  case checkpoint_state::partially_deleted:
    return "STATE_PARTIALLY_DELETED";
  case checkpoint_state::deleted:
    return "STATE_DELETED";
  }
  return "STATE_COMPLETED";
}

value log_common(const log_line& line) {
  value x{{"id", std::to_string(line.number)},
          {"timestamp", to_rfc3339(line.at)},
          {"level", level_name(line.level)},
          {"message", rendered(line)},
          {"log", line.text + "\n"},
          {"agentId", line.agent},
          {"containerId", ""},
          {"source", line.stream == "troupe" ? "master" : "task"},
          {"stdtype", line.stream}};
  if (has_rank(line))
    x["rankId"] = line.rank;
  return x;
}

} // namespace

std::string level_name(const std::string& level) { // an older build stored any text as a level
  for (const char* known : {"TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"})
    if (level == known)
      return "LOG_LEVEL_" + level;
  return "LOG_LEVEL_UNSPECIFIED";
}

value reported(const metric_row& report) {
  auto x = parse_msgpack(report.metrics);
  return x && x->is_object() ? std::move(*x) : value::object();
}

bool of_one_step(const metric_row& a, const metric_row& b) {
  return a.steps == b.steps && a.run == b.run && a.group == b.group;
}

void join_step(metric_row& to, const metric_row& more) {
  auto all = reported(to);
  all.update(reported(more));
  to.metrics = to_msgpack(all);
  if (!more.batches.empty())
    to.batches = more.batches;
  to.row = std::max(to.row, more.row);
  to.at = std::max(to.at, more.at);
}

value reported_batches(const metric_row& report) {
  auto x = report.batches.empty() ? result<value>(value::array()) : parse_msgpack(report.batches);
  return x && x->is_array() ? std::move(*x) : value::array();
}

value training_workload(const metric_row& report) {
  return {{"totalBatches", report.steps},
          {"numInputs", 0},
          {"endTime", to_rfc3339(report.at)},
          {"metrics", {{"avgMetrics", reported(report)}, {"batchMetrics", reported_batches(report)}}}};
}

value checkpoint_workload(const checkpoint_row& row) {
  return {{"uuid", row.saved.uuid},          {"state", state_of(row)},
          {"totalBatches", row.saved.steps}, {"endTime", to_rfc3339(row.at)},
          {"resources", sizes(row.saved)},   {"metadata", metadata_of(row.saved)}};
}

value metric_report_shape(const metric_row& report, trial_id of, bool archived, bool wrapped) {
  value metrics = reported(report);
  if (wrapped)
    metrics = report.group == "validation"
                ? value{{"validation_metrics", std::move(metrics)}}
                : value{{"avg_metrics", std::move(metrics)}, {"batch_metrics", reported_batches(report)}};
  value x = {{"group", report.group},          {"totalBatches", report.steps},
             {"trialRunId", report.run.value}, {"endTime", to_rfc3339(report.at)},
             {"archived", archived},           {"metrics", std::move(metrics)}};
  x[wrapped ? "id" : "row"] = report.row;
  if (wrapped)
    x["trialId"] = of.value;
  return x;
}

std::int64_t steps_processed(const trial_row& row) {
  return std::max({row.latest.steps, row.best.steps, row.reported_steps});
}

result<std::optional<checkpoint_row>> best_checkpoint(const trial_row& row, const storage::reader& storage) {
  if (row.checkpoint_count == 0)
    return std::optional<checkpoint_row>{};
  auto all = storage.checkpoints(row.id);
  if (!all)
    return all.error();
  std::optional<checkpoint_row> best, newest;
  for (const auto& one : *all) {
    if (one.state == checkpoint_state::deleted)
      continue;
    if (row.best.row != 0 && one.saved.steps == row.best.steps)
      best = one;
    if (!newest || one.saved.steps >= newest->saved.steps)
      newest = one;
  }
  return best ? best : newest;
}

static std::size_t preemptions(const trial_row& row) {
  return static_cast<std::size_t>(std::count_if(row.runs.begin(), row.runs.end(),
                                                [](const run_row& run) { return !run.preempted.empty(); }));
}
static double preempted_slot_seconds(const trial_row& row, time_point now) {
  double all = 0;
  for (const auto& run : row.runs)
    all += preempted_slot_seconds(run, now);
  return all;
}

result<value> trial_shape(const trial_row& row, const storage::reader& storage, time_point now) {
  auto best = validation_shape(row.best, row, storage), latest = validation_shape(row.latest, row, storage);
  auto saved = best_checkpoint(row, storage);
  if (!best)
    return best.error();
  if (!latest)
    return latest.error();
  if (!saved)
    return saved.error();
  const auto task = task_name(row.experiment, row.id);
  value tasks = value::array();
  for (std::uint32_t n = 0; n <= row.continued.size(); ++n)
    tasks.push_back(task_name(row.experiment, row.id, n));
  const auto steps = std::max(steps_processed(row), *saved ? (*saved)->saved.steps : 0);
  value x = {{"id", row.id.value},
             {"experimentId", row.experiment.value},
             {"state", state_name(row)},
             {"hparams", row.hparams.is_null() ? value::object() : row.hparams},
             {"restarts", row.restarts},
             {"preemptions", preemptions(row)},
             {"preemptedSlotSeconds", preempted_slot_seconds(row, now)},
             {"startTime", to_rfc3339(row.created)},
             {"totalBatchesProcessed", steps},
             {"bestValidation", std::move(*best)},
             {"latestValidation", std::move(*latest)},
             {"bestCheckpoint", *saved ? checkpoint_workload(**saved) : value(nullptr)},
             {"checkpointCount", row.checkpoint_count},
             {"totalCheckpointSize", std::to_string(row.checkpoint_bytes)},
             {"wallClockTime", wall_seconds(row, now)},
             {"runnerState", ""},
             {"why", row.why},
             {"summaryMetrics", nullptr},
             {"taskId", task},
             {"taskIds", std::move(tasks)}};
  if (!row.log_policy.empty())
    x["logPolicyMatched"] = row.log_policy;
  if (row.metadata.is_object())
    x["metadata"] = row.metadata;
  if (is_set(row.ended))
    x["endTime"] = to_rfc3339(row.ended);
  if (row.best.row != 0)
    x["searcherMetricValue"] = row.best.metric;
  if (!row.runs.empty() && !row.runs.front().from_checkpoint.empty())
    x["warmStartCheckpointUuid"] = row.runs.front().from_checkpoint;
  return x;
}

result<void> add_log_retention(value& shapes, const experiment_row& of, const storage::reader& storage) {
  auto said = storage::records_of<log_retention_changed>(storage, storage::keys::one(of.id.value));
  if (!said)
    return said.error();
  const auto policy = retention_of(of.config);
  for (auto& shape : shapes)
    if (const auto days = log_days(policy, *said, trial_id{shape.at("id").get<std::uint64_t>()}))
      shape["logRetentionDays"] = *days;
  return {};
}

value trial_progress_shape(const trial_row& row) {
  value agents = value::array();
  if (!row.runs.empty()) // agents of the newest run
    for (const auto& part : row.runs.back().on)
      agents.push_back(part.agent);
  value x = {{"id", row.id.value},
             {"experimentId", row.experiment.value},
             {"state", state_name(row)},
             {"hparams", row.hparams.is_null() ? value::object() : row.hparams},
             {"restarts", row.restarts},
             {"runs", row.runs.size()},
             {"totalBatches", steps_processed(row)},
             {"best", progress_validation(row.best)},
             {"latest", progress_validation(row.latest)},
             {"stop", nullptr},
             {"latestCheckpoint", row.latest_checkpoint},
             {"startTime", to_rfc3339(row.created)},
             {"agents", agents},
             {"why", row.why}};
  if (auto stop = row.stop())
    x["stop"] = {{"why", stop->why},
                 {"rung", stop->rung},
                 {"units", stop->units},
                 {"metric", stop->metric},
                 {"needed", stop->needed}};
  if (is_set(row.ended))
    x["endTime"] = to_rfc3339(row.ended);
  return x;
}

result<value> checkpoint_files_shape(const checkpoint_row& row, const experiment_row& experiment,
                                     const storage::reader& storage) {
  auto place = folder_of(row.saved);
  // The package `troupe` saves into the cluster's own folder, also where the storage is a bucket.
  if (std::error_code ignored; !std::filesystem::is_directory(place, ignored)) {
    auto history = storage_history::of(storage, experiment);
    if (!history)
      return history.error();
    const auto number = history->of_checkpoint(storage, row);
    if (!number)
      return number.error();
    const auto config = history->config(*number);
    const auto section = config.is_object() ? config.value("checkpoint_storage", value()) : value();
    if (auto address = address_in_bucket(section, row.saved.uuid); !address.empty())
      place = std::move(address);
  }
  return value{{"uuid", row.saved.uuid},
               {"trialId", row.trial.value},
               {"totalBatches", row.saved.steps},
               {"path", place},
               {"files", row.saved.files}};
}

result<value> checkpoint_shape(const checkpoint_row& row, const storage::reader& storage) {
  auto trial = storage.trial(row.trial);
  auto experiment = storage.experiment(row.experiment);
  if (!trial)
    return trial.error();
  if (!experiment)
    return experiment.error();
  value training = {{"trialId", row.trial.value},
                    {"experimentId", row.experiment.value},
                    {"experimentConfig", config::without_secrets(config_in_force(*experiment))},
                    {"hparams", trial->hparams.is_null() ? value::object() : trial->hparams}};
  auto validation = validation_at(*trial, row.saved.steps, storage);
  if (!validation)
    return validation.error();
  if (*validation) {
    auto metrics = reported(**validation);
    if (auto metric = metrics.find(experiment->metric); metric != metrics.end())
      if (auto number = number_in(*metric))
        training["searcherMetric"] = *number;
    training["validationMetrics"] = {{"avgMetrics", std::move(metrics)}, {"batchMetrics", value::array()}};
  }
  return value{{"uuid", row.saved.uuid},
               {"trialId", row.trial.value},
               {"taskId", task_name(row.experiment, row.trial, continuation_of(trial->continued, row.run))},
               {"allocationId", allocation_name(row.experiment, {row.trial, row.run})},
               {"reportTime", to_rfc3339(row.at)},
               {"state", state_of(row)},
               {"resources", sizes(row.saved)},
               {"metadata", metadata_of(row.saved)},
               {"training", std::move(training)}};
}

/// "[time] container [rank=N] || LEVEL: text\n". Eight blanks stand for the container, which Troupe does not
/// have.
std::string rendered(const log_line& line) {
  std::string text = "[" + to_rfc3339(line.at) + "]         ";
  if (has_rank(line))
    text += " [rank=" + std::to_string(line.rank) + "]";
  text += " || ";
  if (!line.level.empty() && !line.text.starts_with(line.level + ":"))
    text += line.level + ": ";
  return text + line.text + "\n";
}

value trial_log_shape(const log_line& line, trial_id trial) {
  auto x = log_common(line);
  x["trialId"] = trial.value;
  return x;
}

value task_log_shape(const log_line& line, const task_row& of) {
  auto x = log_common(line);
  x["taskId"] =
    task_name(of.experiment, line.allocation.task, continuation_of(of.continued, line.allocation.run));
  x["allocationId"] = allocation_name(of.experiment, line.allocation);
  return x;
}

/// The kind of a task in Determined's words.
static const char* task_type(task_kind kind) {
  switch (kind) {
  case task_kind::trial:
    return "TASK_TYPE_TRIAL";
  case task_kind::command:
    return "TASK_TYPE_COMMAND";
  case task_kind::notebook:
    return "TASK_TYPE_NOTEBOOK";
  case task_kind::shell:
    return "TASK_TYPE_SHELL";
  case task_kind::tensorboard:
    return "TASK_TYPE_TENSORBOARD";
  case task_kind::generic:
    return "TASK_TYPE_GENERIC";
  case task_kind::checkpoint_gc:
    return "TASK_TYPE_CHECKPOINT_GC";
  }
  return "TASK_TYPE_UNSPECIFIED";
}

value allocation_shape(const task_row& row, const run_row& run, bool outside) {
  int slots = 0;
  for (const auto& part : run.on)
    slots += static_cast<int>(part.slots.size());
  // A collection of checkpoints in the master itself has no agent, and a trial outside of the cluster needs
  // no slots.
  const bool placed =
    !run.on.empty() || outside || (row.id.kind() == task_kind::checkpoint_gc && is_set(run.placed));
  // `startTime` is the time at which the run got its slots; without slots it is the time at which the run
  // began.
  value x = {{"allocationId", allocation_name(row.experiment, {row.id, run.run})},
             {"taskId", task_name(row.experiment, row.id, continuation_of(row.continued, run.run))},
             {"state", is_set(run.ended) ? "STATE_TERMINATED"
                       : placed          ? "STATE_RUNNING"
                                         : "STATE_QUEUED"},
             {"isReady", placed && !is_set(run.ended)},
             {"slots", slots},
             {"startTime", to_rfc3339(is_set(run.placed) ? run.placed : run.started)}};
  if (is_set(run.ended)) {
    x["endTime"] = to_rfc3339(run.ended);
    x["exitReason"] = run.detail.empty() ? std::string(name(run.why)) : run.detail;
  }
  return x;
}

value task_shape(const task_row& row, const std::vector<run_row>& runs, std::uint32_t continued,
                 bool outside) {
  value x = {{"taskId", task_name(row.experiment, row.id, continued)},
             {"taskType", task_type(row.id.kind())},
             {"startTime", to_rfc3339(row.created)},
             {"allocations", value::array()}};
  time_point begun, ended = continued == row.continued.size() ? row.ended : time_point{};
  for (const auto& run : runs) {
    if (continuation_of(row.continued, run.run) != continued)
      continue;
    x["allocations"].push_back(allocation_shape(row, run, outside));
    begun = is_set(begun) ? begun : run.started;
    if (continued < row.continued.size())
      ended = run.ended;
  }
  if (continued && is_set(begun))
    x["startTime"] = to_rfc3339(begun);
  if (is_set(ended))
    x["endTime"] = to_rfc3339(ended);
  return x;
}

} // namespace troupe::api
