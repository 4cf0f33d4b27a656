// Routes that read a trial: the trial itself, its workloads, metrics and logs.

#include "runtime/api/errors.hpp"
#include "runtime/api/listing.hpp"
#include "runtime/api/route.hpp"
#include "runtime/api/series_columns.hpp"
#include "runtime/api/shapes.hpp"
#include "runtime/api/streams.hpp"
#include "runtime/api/work_shapes.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace troupe::api {
namespace {

constexpr std::size_t batch = 1000;

/// The row of the task {taskId}, or of the trial {trialId}.
result<task_row> task_of(const call& c) {
  const auto trial = c.named("trialId");
  const auto text = trial.empty() ? c.named("taskId") : trial;
  const task_id id = trial.empty() ? named_task(text) : task_id{parse_id<trial_id>(text)};
  if (!id && !trial.empty())
    return error{errc::invalid, "'" + std::string(text.substr(0, 100)) + "' is not an id of a trial"};
  auto row = id ? c.parts->storage->task(id) : result<task_row>(error{errc::not_found, ""});
  if (row && named_continuation(text) > row->continued.size())
    row = error{errc::not_found, ""};
  if (!row && row.error().code == errc::not_found)
    return error{errc::not_found, !trial.empty() ? "trial '" + to_string(id) + "' not found"
                                                 : "task '" + std::string(text) + "' not found"};
  return row;
}

result<value> one(const call& c) {
  auto row = named_trial(c);
  if (!row)
    return row.error();
  auto shape = trial_shape(*row, *c.parts->storage, c.now);
  auto summary = shape ? summary_metrics(*row, *c.parts->columns, *c.parts->storage) : shape;
  if (!summary)
    return summary.error();
  (*shape)["summaryMetrics"] = std::move(*summary);
  if (!terminal(row->state))
    (*shape)["runnerState"] = c.parts->runners->of(row->id);
  auto of = c.parts->storage->experiment(row->experiment);
  auto all = value::array({std::move(*shape)});
  if (auto added = of ? add_log_retention(all, *of, *c.parts->storage) : result<void>(of.error()); !added)
    return added.error();
  return value{{"trial", std::move(all.front())}};
}

struct workload {
  std::int64_t steps;
  int rank; ///< order within one step: training, validation, checkpoint
  value shape;
};

result<void> add_reports(const call& c, const trial_row& trial, const std::string& group,
                         std::vector<workload>& all) {
  auto gone = c.parts->columns->rollback(trial, *c.parts->storage);
  if (!gone)
    return gone.error();
  std::map<std::string, metric_row> newest; // newest report of each group
  const auto add = [&](const metric_row& row) {
    const bool validation = row.group == "validation";
    all.push_back(
      {row.steps, validation ? 1 : 0, {{validation ? "validation" : "training", training_workload(row)}}});
  };
  for (std::uint64_t after = 0;;) {
    auto rows = c.parts->storage->metrics(trial.id, after, batch, group);
    if (!rows)
      return rows.error();
    for (auto& row : *rows) {
      after = row.row;
      if ((*gone)->archives(row) || (row.group != "validation" && row.group != "training"))
        continue;
      auto [last, fresh] = newest.try_emplace(row.group, row);
      if (fresh)
        continue;
      if (of_one_step(last->second, row)) {
        join_step(last->second, row);
        continue;
      }
      add(last->second);
      last->second = std::move(row);
    }
    if (rows->size() < batch)
      break;
  }
  for (const auto& [name, row] : newest)
    add(row);
  return {};
}

/// The value of a metric in a report; nullopt for a checkpoint, and where the value is not a number.
std::optional<double> number_in(const value& workload, const std::string& metric) {
  for (const char* kind : {"training", "validation"})
    if (const auto report = workload.find(kind); report != workload.end())
      if (const auto x = report->at("metrics").at("avgMetrics").find(metric);
          x != report->at("metrics").at("avgMetrics").end() && x->is_number())
        return x->get<double>();
  return std::nullopt;
}

result<value> workloads(const call& c) {
  auto trial = named_trial(c);
  if (!trial)
    return trial.error();
  const auto filter = c.query.first("filter"), type = c.query.first("metricType");
  const bool checkpoints = filter != "FILTER_OPTION_VALIDATION" && type.empty();
  const bool reports = filter != "FILTER_OPTION_CHECKPOINT";
  std::string group(c.query.first("group"));
  if (type == "METRIC_TYPE_VALIDATION" || filter == "FILTER_OPTION_VALIDATION" ||
      filter == "FILTER_OPTION_CHECKPOINT_OR_VALIDATION")
    group = "validation";
  else if (type == "METRIC_TYPE_TRAINING")
    group = "training";
  std::vector<workload> all;
  if (reports)
    if (auto added = add_reports(c, *trial, group, all); !added)
      return added.error();
  if (checkpoints) {
    auto saved = c.parts->storage->checkpoints(trial->id);
    if (!saved)
      return saved.error();
    for (const auto& one : *saved)
      if (one.state != checkpoint_state::deleted || !c.query.flag("removeDeletedCheckpoints"))
        all.push_back({one.saved.steps, 2, {{"checkpoint", checkpoint_workload(one)}}});
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a.steps, a.rank) < std::tie(b.steps, b.rank);
  });
  const bool down = is_descending(c.query);
  if (down)
    std::reverse(all.begin(), all.end());
  if (const std::string key(c.query.first("sortKey")); !key.empty() && key != "batches")
    sort_unset_last(all, down, [&](const workload& one) { return number_in(one.shape, key); });
  auto part = page_of(c.query, all.size());
  if (!part)
    return part.error();
  value list = value::array();
  for (auto i = part->first; i < part->last; ++i)
    list.push_back(std::move(all[i].shape));
  return value{{"workloads", std::move(list)}, {"pagination", part->pagination}};
}

response streamed(std::unique_ptr<body_stream> body, const char* type = "application/json") {
  response out;
  out.content_type = type;
  out.stream = std::move(body);
  return out;
}

result<response> trial_logs(const call& c) {
  auto trial = task_of(c);
  if (!trial)
    return trial.error();
  auto what = log_request_of(c.query);
  if (!what)
    return what.error();
  what->task = trial->id;
  what->shape = [id = trial->id.trial()](const log_line& line) { return trial_log_shape(line, id); };
  return streamed(log_stream(c.parts->storage, std::move(*what)));
}

/// The lines of the named task. A trial that was continued has another task after each continuation, and one
/// log with the lines of all of them.
std::function<bool(const log_line&)> lines_of_named(const call& c, const task_row& row) {
  return [continued = row.continued, which = named_continuation(c.named("taskId"))](const log_line& line) {
    return continuation_of(continued, line.allocation.run) == which;
  };
}

/// Whether the trial has been continued since the named task, which has ended therefore.
bool is_earlier(const call& c, const task_row& row) {
  return named_continuation(c.named("taskId")) < row.continued.size();
}

result<response> task_logs(const call& c) {
  auto task = task_of(c);
  if (!task)
    return task.error();
  auto what = log_request_of(c.query);
  if (!what)
    return what.error();
  what->task = task->id;
  what->follow = what->follow && !is_earlier(c, *task);
  if (!task->continued.empty())
    what->keep = [own = lines_of_named(c, *task), keep = std::move(what->keep)](const log_line& line) {
      return own(line) && keep(line);
    };
  what->shape = [of = *task](const log_line& line) { return task_log_shape(line, of); };
  return streamed(log_stream(c.parts->storage, std::move(*what)));
}

result<response> trial_log_fields(const call& c) {
  auto trial = task_of(c);
  if (!trial)
    return trial.error();
  return streamed(log_field_stream(c.parts->storage, trial->id, c.query.flag("follow"), {}));
}

result<response> task_log_fields(const call& c) {
  auto task = task_of(c);
  if (!task)
    return task.error();
  return streamed(log_field_stream(
    c.parts->storage, task->id, c.query.flag("follow") && !is_earlier(c, *task), lines_of_named(c, *task)));
}

/// The slots that each allocation got on each host. Only agents know the devices behind slots.
result<value> accelerators(const call& c) {
  auto row = task_of(c);
  if (!row)
    return row.error();
  auto runs = c.parts->storage->runs(row->id);
  if (!runs)
    return runs.error();
  const auto which = named_continuation(c.named("taskId"));
  value all = value::array();
  for (const auto& run : *runs) {
    if (continuation_of(row->continued, run.run) != which)
      continue;
    int node_rank = 0;
    for (const auto& part : run.on) {
      value uuids = value::array();
      for (const int slot : part.slots)
        uuids.push_back(part.agent + "-" + std::to_string(slot));
      const allocation_id id{row->id, run.run};
      all.push_back({{"allocationId", allocation_name(row->experiment, id)},
                     {"taskId", task_name(row->experiment, row->id, which)},
                     {"containerId", part_name(id, node_rank++)},
                     {"nodeName", part.agent},
                     {"resourcePool", run.pool},
                     {"acceleratorType", "slot"},
                     {"acceleratorUuids", std::move(uuids)}});
    }
  }
  return value{{"acceleratorData", std::move(all)}};
}

handler metrics_of_group(const char* group) {
  return respond_with([group](const call& c) -> result<response> {
    metric_request what;
    what.columns = c.parts->columns;
    what.as = metric_request::form::lines_of_batches;
    what.group = group ? group : std::string(c.query.first("group"));
    for (auto text : c.query.every("trialIds")) {
      auto trial = trial_of(c, text);
      if (!trial)
        return trial.error();
      what.trials.push_back(trial->id);
    }
    if (what.trials.empty())
      return error{errc::invalid, "trialIds is missing"};
    return streamed(metric_stream(c.parts->storage, std::move(what)));
  });
}

result<response> own_metrics(const call& c) {
  auto trial = named_trial(c);
  if (!trial)
    return trial.error();
  auto after = c.query.number("after", 0), limit = c.query.number("limit", 0);
  for (const auto* number : {&after, &limit})
    if (!*number || **number < 0)
      return *number ? error{errc::invalid, "after and limit have to be 0 or more"} : number->error();
  metric_request what;
  what.columns = c.parts->columns;
  what.trials = {trial->id};
  what.group = c.query.first("group");
  what.after = static_cast<std::uint64_t>(*after);
  what.limit = static_cast<std::uint64_t>(*limit);
  what.follow = c.query.flag("follow");
  what.as = what.follow ? metric_request::form::lines : metric_request::form::array;
  return streamed(metric_stream(c.parts->storage, std::move(what)));
}

void kill(const call_ptr& c, const reply& back) {
  auto row = named_trial(*c);
  if (!row)
    return back(failure(row.error()));
  command(c, back, commands::trial_kill{row->id});
}

/// Whether the task is a trial whose processes run outside of the cluster.
bool is_outside(const call& c, const task_row& row) {
  const auto of = row.id.is_trial() ? c.parts->storage->experiment(row.experiment)
                                    : result<experiment_row>(error{errc::not_found, ""});
  return of && of->unmanaged;
}

result<value> task(const call& c) {
  auto row = task_of(c);
  if (!row)
    return row.error();
  auto runs = c.parts->storage->runs(row->id);
  if (!runs)
    return runs.error();
  auto shape = task_shape(*row, *runs, named_continuation(c.named("taskId")), is_outside(c, *row));
  if (row->id.is_trial()) {
    if (auto trial = c.parts->storage->trial(row->id.trial()))
      add_log_policy(shape, trial->log_policy);
  } else if (auto other = c.parts->storage->other_task(row->id)) {
    add_other(shape, *other);
  }
  return value{{"task", std::move(shape)}};
}

result<value> allocation(const call& c) {
  const auto id = named_allocation(c.named("allocationId"));
  const error none{errc::not_found, "allocation '" + std::string(c.named("allocationId")) + "' not found"};
  auto row = c.parts->storage->task(id.task);
  if (!row)
    return row.error().code == errc::not_found ? none : row.error();
  auto runs = c.parts->storage->runs(id.task);
  if (!runs)
    return runs.error();
  for (const auto& run : *runs)
    if (run.run == id.run)
      return value{{"allocation", allocation_shape(*row, run, is_outside(c, *row))}};
  return none;
}

/// What the pools say about an experiment that holds or wants slots.
struct job_standing {
  std::string pool, scheduler;
  std::int64_t priority = 42;
};
using job_standings = std::map<experiment_id, job_standing>;

job_standings standings_in(const value& pools) {
  job_standings out;
  for (const auto& pool : pools)
    for (const auto& job : pool.at("jobs")) {
      auto& one = out[{job.at("experiment").get<std::uint64_t>()}];
      if (!one.pool.empty() && job.at("waiting") == 0)
        continue; // these runs are still in the pool that the experiment left
      one = {pool.at("name"), pool.at("scheduler"), job.at("priority").get<std::int64_t>()};
    }
  return out;
}

/// The scheduler of each pool by the pool's name.
std::map<std::string, std::string> schedulers_in(const value& pools) {
  std::map<std::string, std::string> out;
  for (const auto& pool : pools)
    out.emplace(pool.at("name"), pool.at("scheduler"));
  return out;
}

std::string scheduler_type(const std::string& scheduler) {
  return scheduler == "fair" ? "fair_share" : scheduler;
}

value port_shapes(const std::vector<task_service>& services) {
  value out = value::array();
  for (const auto& one : services)
    out.push_back({{"port", one.port},
                   {"proxyTcp", one.tcp},
                   {"serviceId", one.id},
                   {"unauthenticated", one.unauthenticated}});
  return out;
}

value summary(const task_row& task, const run_row& run, const job_standing& job, int wanted, value ports) {
  const auto id = allocation_name(task.experiment, {task.id, run.run});
  value resources = value::array();
  int slots = 0;
  for (const auto& part : run.on) {
    value devices = value::array();
    for (int slot : part.slots)
      devices.push_back({{"id", slot},
                         {"brand", "CPU"},
                         {"uuid", part.agent + "-" + std::to_string(slot)},
                         {"type", "TYPE_CPU"}});
    slots += static_cast<int>(part.slots.size());
    resources.push_back({{"resourcesId", id},
                         {"resourcesType", "process"},
                         {"allocationId", id},
                         {"containerId", to_string(allocation_id{task.id, run.run})},
                         {"agentDevices", {{part.agent, {{"devices", devices}}}}},
                         {"started", value::object()},
                         {"exited", nullptr}});
  }
  return {{"allocationId", id},
          {"taskId", task_name(task.experiment, task.id, continuation_of(task.continued, run.run))},
          {"name", people_name(task.experiment, task.id)},
          {"registeredTime", to_rfc3339(run.started)},
          {"resourcePool", run.pool.empty() ? job.pool : run.pool},
          {"slotsNeeded", run.on.empty() ? wanted : slots},
          {"priority", job.priority},
          {"schedulerType", scheduler_type(job.scheduler)},
          {"resources", std::move(resources)},
          {"proxyPorts", std::move(ports)}};
}

int slots_wanted(const experiment_row& of) {
  auto slots = of.config->is_object()
                 ? of.config->value(value::json_pointer("/resources/slots_per_trial"), value(1))
                 : value(1);
  if (slots.is_object())
    slots = slots.value("max", value(1));
  return slots.is_number_integer() ? slots.get<int>() : 1;
}

/// The allocations that run or wait now.
void tasks(const call_ptr& c, const reply& back) {
  command(c, back, commands::job_list{}, [c](value got) -> result<value> {
    const auto pools = got.value("pools", value::array());
    const auto jobs = standings_in(pools); // includes tasks that are not trials
    const auto schedulers = schedulers_in(pools);
    const auto& storage = *c->parts->storage;
    auto open = storage.open_tasks();
    if (!open)
      return open.error();
    value all = value::object();
    for (const auto& task : *open) {
      auto runs = storage.runs(task.id);
      if (!runs)
        return runs.error();
      if (runs->empty())
        continue;
      auto of =
        task.id.is_trial() ? storage.experiment(task.experiment) : result<experiment_row>(experiment_row{});
      if (!of || of->unmanaged) // a process outside of the cluster does not hold a slot
        continue;
      const auto known = jobs.find(task.id.is_trial() ? task.experiment : job_of(task.id));
      auto services = c->parts->proxy->services_of(storage, task);
      if (!services)
        return services.error();
      auto shape = summary(task, runs->back(), known == jobs.end() ? job_standing{} : known->second,
                           task.id.is_trial() ? slots_wanted(*of) : 0, port_shapes(*services));
      if (task.id.is_trial()) {
        if (auto trial = storage.trial(task.id.trial()))
          add_log_policy(shape, trial->log_policy);
      } else if (auto other = storage.other_task(task.id)) {
        add_other_summary(shape, *other);
      }
      // The master itself runs some collections of checkpoints, which hold nothing in their pool.
      if (const auto pool = schedulers.find(shape["resourcePool"]);
          known == jobs.end() && pool != schedulers.end())
        shape["schedulerType"] = scheduler_type(pool->second);
      all[allocation_name(task.experiment, {task.id, runs->back().run})] = std::move(shape);
    }
    return value{{"allocationIdToSummary", std::move(all)}};
  });
}

} // namespace

std::vector<route> trial_routes() {
  return {
    {"GET",
     "/api/v1/trials/{trialId}",
     {action::view, thing::trial},
     answer_with(one),
     "",
     "v1GetTrialResponse",
     "One trial."},
    {"GET",
     "/api/v1/trials/{trialId}/workloads",
     {action::view, thing::trial},
     answer_with(workloads),
     "",
     "v1GetTrialWorkloadsResponse",
     "Its reports and checkpoints in the order of their steps."},
    {"POST",
     "/api/v1/trials/{trialId}/kill",
     {action::kill, thing::trial},
     kill,
     "",
     "Empty",
     "Ends the trial at once."},
    {"GET",
     "/api/v1/trials/{trialId}/logs",
     {action::view, thing::log},
     respond_with(trial_logs),
     "",
     "stream of v1TrialLogsResponse",
     "Its log."},
    {"GET",
     "/api/v1/trials/{trialId}/logs/fields",
     {action::view, thing::log},
     respond_with(trial_log_fields),
     "",
     "stream of v1TrialLogsFieldsResponse",
     "The values that filters of the log can take."},
    {"GET",
     "/api/v1/trials/metrics/training_metrics",
     {action::view, thing::trial},
     metrics_of_group("training"),
     "",
     "stream of v1GetTrainingMetricsResponse",
     "Training reports of trials."},
    {"GET",
     "/api/v1/trials/metrics/validation_metrics",
     {action::view, thing::trial},
     metrics_of_group("validation"),
     "",
     "stream of v1GetValidationMetricsResponse",
     "Validation reports of trials."},
    {"GET",
     "/api/v1/trials/metrics/trial_metrics",
     {action::view, thing::trial},
     metrics_of_group(nullptr),
     "",
     "stream of v1GetMetricsResponse",
     "Reports of one group of trials."},
    {"GET",
     "/troupe/v1/trials/{trialId}/metrics",
     {action::view, thing::trial},
     respond_with(own_metrics),
     "",
     "list of MetricReport",
     "Every report, never downsampled."},
    {"GET", "/api/v1/tasks", {action::view, thing::task}, tasks, "", "v1GetTasksResponse", "What runs now."},
    {"GET",
     "/api/v1/tasks/{taskId}/acceleratorData",
     {action::view, thing::task},
     answer_with(accelerators),
     "",
     "v1GetTaskAcceleratorDataResponse",
     "The slots of each of its allocations."},
    {"GET",
     "/api/v1/tasks/{taskId}",
     {action::view, thing::task},
     answer_with(task),
     "",
     "v1GetTaskResponse",
     "One task with its allocations."},
    {"GET",
     "/api/v1/tasks/{taskId}/logs",
     {action::view, thing::log},
     respond_with(task_logs),
     "",
     "stream of v1TaskLogsResponse",
     "Its log."},
    {"GET",
     "/api/v1/tasks/{taskId}/logs/fields",
     {action::view, thing::log},
     respond_with(task_log_fields),
     "",
     "stream of v1TaskLogsFieldsResponse",
     "The values that filters of the log can take."},
    {"GET",
     "/api/v1/allocations/{allocationId}",
     {action::view, thing::allocation},
     answer_with(allocation),
     "",
     "v1GetAllocationResponse",
     "One allocation."},
  };
}

} // namespace troupe::api
