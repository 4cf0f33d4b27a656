// The routes that the processes of a trial call: context, rendezvous, preemption, reports, checkpoints, log
// lines.

#include "actors/retention/globs.hpp"
#include "model/names.hpp"
#include "runtime/api/checkpoint_uuid.hpp"
#include "runtime/api/context.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/gathering.hpp"
#include "runtime/api/route.hpp"
#include "runtime/api/run_metadata.hpp"
#include "runtime/api/shapes.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <map>
#include <mutex>

namespace troupe::api {
namespace {

constexpr std::int64_t most_poll_seconds = 300;

/// A command of a task, with the fields that all such commands have set.
template <class C>
C from(const call& c) {
  C x;
  x.allocation = c.by.who.allocation;
  x.experiment = c.by.experiment;
  return x;
}

/// Fails as for an unknown one where the caller sees no task `id`, which the request names by `text`.
result<void> check_task(const call& c, task_id id, const std::string& text) {
  auto row = id ? c.parts->storage->task(id) : result<task_row>(error{errc::not_found, ""});
  if (row)
    return {};
  return row.error().code == errc::not_found ? error{errc::not_found, "task '" + text + "' not found"}
                                             : row.error();
}

/// The call of a task as it is. The call of a user becomes one of the unmanaged trial that the path or body
/// names.
result<call_ptr> speaking(const call_ptr& c, const value& body, bool late = false) {
  if (c->by.is_task())
    return c;
  if (c->path.contains("trialId"))
    return spoken_for(c, parse_id<trial_id>(c->named("trialId")), late);
  fields f{body};
  auto text = f.text("taskId");
  if (text.empty())
    text = f.text("allocationId");
  if (text.empty() && !f.bad())
    f.fault("taskId", "has to name a task");
  if (f.bad())
    return *f.bad();
  const auto task = named_task(text);
  if (auto known = check_task(*c, task, text); !known)
    return known.error();
  return spoken_for(c, task, late);
}

/// A handler for a command of a task. `fill` reads the command's own fields from the JSON body.
template <class C>
handler task_command(std::function<void(const call&, fields&, C&)> fill = {}) {
  return [fill = std::move(fill)](const call_ptr& from_whom, const reply& back) {
    auto body = parse_object(from_whom->body);
    if (!body)
      return back(failure(body.error()));
    auto speaks = speaking(from_whom, *body);
    if (!speaks)
      return back(failure(speaks.error()));
    const auto& c = *speaks;
    fields f{*body};
    auto with = from<C>(*c);
    if (fill)
      fill(*c, f, with);
    if (f.bad())
      return back(failure(*f.bad()));
    command(c, back, std::move(with));
  };
}

result<value> context_directory(const call& c) {
  const auto id = named_task(c.named("taskId"));
  auto task = c.parts->storage->task(id);
  if (!task)
    return task.error().code == errc::not_found
             ? error{errc::not_found, "task '" + std::string(c.named("taskId")) + "' not found"}
             : task.error();
  std::string context;
  if (task->id.is_trial()) {
    auto experiment = c.parts->storage->experiment(task->experiment);
    if (!experiment)
      return experiment.error();
    context = experiment->context;
  } else if (auto other = c.parts->storage->other_task(id)) {
    context = other->made.context;
  } else if (other.error().code != errc::not_found) {
    return other.error();
  }
  if (context.empty())
    return value{{"b64Tgz", ""}};
  auto bytes = c.parts->storage->blob(context);
  return bytes ? result<value>(value{{"b64Tgz", to_base64(*bytes)}}) : bytes.error();
}

result<value> model_definition(const call& c) {
  auto experiment = c.parts->storage->experiment(parse_id<experiment_id>(c.named("experimentId")));
  if (!experiment)
    return experiment.error().code == errc::not_found
             ? error{errc::not_found, "experiment '" + std::string(c.named("experimentId")) + "' not found"}
             : experiment.error();
  if (experiment->context.empty())
    return value{{"b64Tgz", ""}};
  auto bytes = c.parts->storage->blob(experiment->context);
  return bytes ? result<value>(value{{"b64Tgz", to_base64(*bytes)}}) : bytes.error();
}

/// Accepts the devices that a task reports and keeps nothing, because the placement tells the devices of an
/// allocation.
result<value> accelerators(const call& c) {
  auto body = parse_object(c.body);
  return body ? result<value>(value::object()) : body.error();
}

result<value> run_prepare(const call& c) {
  auto body = parse_object(c.body);
  if (!body)
    return body.error();
  fields f{*body};
  f.need("runId");
  const auto run = f.number("runId");
  if (f.bad())
    return *f.bad();
  const trial_id trial{static_cast<std::uint64_t>(std::max<std::int64_t>(run, 0))};
  if (c.by.is_task() ? trial != c.by.allocation.trial() : !of_unmanaged(c, trial))
    return error{errc::denied, "run " + std::to_string(run) + " is not this task's"};
  // Without storageId: the configuration of the experiment tells where checkpoints are.
  return value::object();
}

void preemption(const call_ptr& c, const reply& back) {
  auto seconds = c->query.number("timeoutSeconds", 60);
  if (!seconds)
    return back(failure(seconds.error()));
  auto with = from<commands::allocation_preemption>(*c);
  with.timeout_ms = std::clamp<std::int64_t>(*seconds, 0, most_poll_seconds) * 1000;
  command(c, back, std::move(with), [](value got) -> result<value> {
    return value{{"preempt", got.at("preempt").get<bool>()}};
  });
}

/// The ports that the agent of each gang's chief has claimed. The chief sends them with its call before any
/// rank is answered. After a restart of the master the chief calls again, unless all ranks had met before.
class gang_ports {
public:
  /// Takes the ports of a gang from `said`, as "1,2,3,4". A zero means that the ports were not claimed; then
  /// nothing is kept.
  void hear(allocation_id gang, std::string_view said) {
    value ports = value::array();
    for (std::size_t begin = 0; begin <= said.size();) {
      const auto end = std::min(said.find(',', begin), said.size());
      int port = 0;
      std::from_chars(said.data() + begin, said.data() + end, port);
      if (port <= 0 || port > 65'535)
        return;
      ports.push_back(port);
      begin = end + 1;
    }
    std::lock_guard lock(mutex_);
    if (ports_.size() >= most && !ports_.contains(gang))
      ports_.erase(ports_.begin()); // drops the oldest gang, because ids of trials grow
    ports_[gang] = std::move(ports);
  }
  result<value> of(allocation_id gang) {
    std::lock_guard lock(mutex_);
    const auto it = ports_.find(gang);
    if (it == ports_.end())
      return error{errc::busy, "the ports of the gang's chief are not known: the chief has to call again"};
    return it->second;
  }

private:
  static constexpr std::size_t most = 10'000;
  std::mutex mutex_;
  std::map<allocation_id, value> ports_;
};

handler rendezvous() {
  return [held = std::make_shared<gang_ports>()](const call_ptr& c, const reply& back) {
    auto with = from<commands::allocation_rendezvous>(*c);
    with.resources = c->named("resourcesId");
    const auto gang = c->by.allocation;
    const std::string said(c->query.first("ports")); // the stock client sends no ports and gets none
    if (!said.empty() && named_part(with.resources).node_rank == 0)
      held->hear(gang, said);
    command(c, back, std::move(with), [held, gang, wanted = !said.empty()](value got) -> result<value> {
      value info = {{"addresses", got.at("addresses")}, {"slots", got.at("slots")}, {"rank", got.at("rank")}};
      if (wanted) {
        auto ports = held->of(gang);
        if (!ports)
          return ports.error();
        info["ports"] = std::move(*ports);
      }
      return value{{"rendezvousInfo", std::move(info)}};
    });
  };
}

handler all_gather() {
  return [held = std::make_shared<gathering>()](const call_ptr& c, const reply& back) {
    auto body = parse_object(c->body);
    if (!body)
      return back(failure(body.error()));
    fields f{*body};
    const auto request = f.text("requestUuid");
    const auto peers = f.number("numPeers");
    auto data = f.object("data");
    if (f.bad())
      return back(failure(*f.bad()));
    held->add(c->by.allocation, request, static_cast<std::size_t>(std::max<std::int64_t>(peers, 0)),
              std::move(data), c->now, back);
  };
}

/// Microseconds since 1970 for "2025-03-19T12:34:56.123456+00:00" or the same with Z; `otherwise` for other
/// texts.
std::int64_t micros_of(const std::string& text, std::int64_t otherwise) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, used = 0;
  double seconds = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%lf%n", &year, &month, &day, &hour, &minute, &seconds,
                  &used) != 6)
    return otherwise;
  const auto zone = std::string_view(text).substr(static_cast<std::size_t>(used));
  const auto date = std::chrono::year{year} / month / day;
  if ((zone != "Z" && zone != "+00:00") || !date.ok() || !(seconds >= 0 && seconds < 61))
    return otherwise;
  const time_point at = std::chrono::sys_days{date} + std::chrono::hours{hour} + std::chrono::minutes{minute};
  return at.time_since_epoch().count() + static_cast<std::int64_t>(seconds * 1e6);
}

/// Replaces texts by the numbers that they stand for: the client sends numbers that JSON cannot express as
/// text.
value with_numbers(value x) {
  if (x.is_structured()) {
    for (auto& one : x)
      one = with_numbers(std::move(one));
    return x;
  }
  if (!x.is_string())
    return x;
  const auto& text = x.get_ref<const std::string&>();
  if (text == "NaN" || text == "Nan")
    return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity" || text == "-Infinity")
    return text[0] == '-' ? -std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::infinity();
  return x;
}

std::int64_t steps_in(fields& f, const char* name) {
  const auto steps = f.number(name);
  if (steps < 0 || steps > std::numeric_limits<std::int32_t>::max())
    f.fault(name, steps < 0 ? "has to be 0 or more" : "has to be 2147483647 or less");
  return steps;
}

/// Reads the message TrialMetrics: {trialId, trialRunId, stepsCompleted?, metrics: {avgMetrics,
/// batchMetrics?}}.
void fill_report(const call& c, fields& f, const std::string& group, commands::trial_report& with) {
  const auto run = f.number("trialRunId", static_cast<std::int64_t>(c.by.allocation.run.value));
  if (static_cast<std::uint64_t>(run) != c.by.allocation.run.value)
    f.fault("trialRunId", "invalid run id, " + std::to_string(run) +
                            " (reported) != " + to_string(c.by.allocation.run) + " (expected)");
  if (group.empty() || group.find('.') != group.npos || group.size() > 100)
    f.fault("group", "expected 1 to 100 characters without a point");
  fields metrics{f.object("metrics"), "metrics"};
  f.need("metrics");
  with.group = group;
  with.steps = steps_in(f, "stepsCompleted");
  with.metrics = with_numbers(metrics.object("avgMetrics"));
  for (const char* axis : {"epoch", "epochs"})
    if (const auto at = with.metrics.find(axis);
        at != with.metrics.end() && !at->is_null() && !number_in(*at))
      metrics.fault("avgMetrics", std::string(axis) + " has to be a number");
  if (f.has("reportTime"))
    with.at = micros_of(f.text("reportTime"), c.now.time_since_epoch().count());
  if (const auto& batches = metrics.list("batchMetrics"); !batches.empty())
    with.batch_metrics = with_numbers(batches);
  if (metrics.bad())
    f.fault("metrics", metrics.bad()->what);
}

handler report_of(const char* group) {
  return task_command<commands::trial_report>(
    [group](const call& c, fields& f, commands::trial_report& with) { fill_report(c, f, group, with); });
}

void report(const call& c, fields& f, commands::trial_report& with) {
  f.need("group");
  const auto group = f.text("group");
  fields inner{f.object("metrics"), "metrics"};
  fill_report(c, inner, group, with);
  if (inner.bad())
    f.fault("metrics", inner.bad()->what);
}

/// The sizes of files by path. The client sends sizes as text, and names of folders end with '/'.
commands::file_sizes sizes(fields& f, const char* name) {
  commands::file_sizes out;
  for (const auto& [path, size] : f.object(name).items()) {
    fields one{f.object(name), name};
    if (auto fine = check_path_of_file(path); !fine) {
      f.fault(name, fine.error().what);
      break;
    }
    out[path] = one.number(path.c_str());
    if (one.bad())
      f.fault(name, one.bad()->what);
    else if (out[path] < 0)
      f.fault(name, "the size of '" + path + "' has to be 0 or more, not " + std::to_string(out[path]));
  }
  return out;
}

void checkpoint_report(const call& c, fields& f, commands::checkpoint_report& with) {
  f.need("uuid");
  const auto allocation = f.text("allocationId");
  if (!allocation.empty() && named_allocation(allocation) != c.by.allocation &&
      named_task(allocation) != c.by.allocation.task) // an unmanaged trial names only its task
    f.fault("allocationId", "is not this task's");
  const auto state = f.text("state", "STATE_COMPLETED");
  if (state != "STATE_COMPLETED" && state != "COMPLETED")
    f.fault("state", "only completed checkpoints are reported");
  const auto uuid = f.text("uuid");
  const bool sound =
    !uuid.empty() && uuid.size() <= 64 && uuid.find_first_not_of("0123456789abcdefABCDEF-") == uuid.npos;
  if (!sound)
    f.fault("uuid", "expected a UUID");
  const auto& metadata = f.object("metadata");
  fields m{metadata, "metadata"};
  m.need("steps_completed");
  with.uuid = stored_uuid(*c.parts->storage, uuid);
  with.steps = steps_in(m, "steps_completed");
  with.files = sizes(f, "resources");
  with.metadata = metadata;
  if (m.bad())
    f.fault("metadata", m.bad()->what);
}

/// Takes {checkpoints: [{uuid, resources?: {resources?: {...}}}]}. A checkpoint without the map keeps its
/// files; an empty map says that the files were deleted.
void patch_checkpoints(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  commands::checkpoint_patch with;
  for (const auto& one : f.list("checkpoints")) {
    fields p{one, "checkpoints[" + std::to_string(with.checkpoints.size()) + "]"};
    p.need("uuid");
    commands::checkpoint_patch::one patch{stored_uuid(*c->parts->storage, p.text("uuid")), {}};
    if (auto row = c->parts->storage->checkpoint(patch.uuid); !row)
      return back(failure(row.error()));
    else if (!allowed(*c, action::change, {thing::checkpoint, to_string(row->experiment)}))
      return back(failure({errc::denied, "checkpoint " + patch.uuid + " is not of this task's experiment"}));
    if (p.has("resources")) {
      fields r{p.object("resources"), "resources"};
      patch.files = sizes(r, "resources");
      if (r.bad())
        p.fault("resources", r.bad()->what);
    }
    if (p.bad())
      return back(failure(*p.bad()));
    with.checkpoints.push_back(std::move(patch));
  }
  if (f.bad())
    return back(failure(*f.bad()));
  command(c, back, std::move(with));
}

/// The log level in the text, in any case and with or without "LOG_LEVEL_"; empty where the text is not a
/// level.
std::string level_of(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  if (text.starts_with("LOG_LEVEL_"))
    text = text.substr(10);
  if (text == "WARN" || text == "FATAL")
    return text == "WARN" ? "WARNING" : "CRITICAL";
  constexpr std::string_view numbered[] = {"", "TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"};
  if (text.size() == 1 && text[0] >= '1' && text[0] <= '6')
    return std::string(numbered[text[0] - '0']);
  return std::find(std::begin(numbered), std::end(numbered), text) != std::end(numbered) ? text : "";
}

/// Reads one line. It never refuses a line for its form, because the shipper would send the batch again for
/// minutes and lose it in the end. The shipper of unmanaged trials calls the rank "rank"; a line without one
/// has rank -1.
commands::task_log::line log_line_of(const call& c, const value& one) {
  fields f{one};
  auto text = f.text("log");
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r'))
    text.pop_back();
  return {micros_of(f.text("timestamp"), c.now.time_since_epoch().count()),
          static_cast<int>(std::clamp<std::int64_t>(f.number("rankId", f.number("rank", -1)), -1, 1'000'000)),
          f.text("stdtype", "stdout"),
          level_of(f.text("level")),
          f.text("agentId"),
          std::move(text)};
}

/// Fails unless the line is of the task that speaks.
result<void> of_the_task(const call& c, const std::string& named) {
  const auto id = named_task(named);
  if (named.empty() || id == c.by.allocation.task)
    return {};
  if (auto known = check_task(c, id, named); !known)
    return known;
  return error{errc::denied, "access denied: lines for the log of task '" + named +
                               "' cannot come from task '" + to_string(c.by.allocation.task) + "'"};
}

/// Takes lines of a log. Where a user sends them, all belong to the unmanaged trial that the first line
/// names. A line for another task refuses the request as a whole.
void take_lines(const call_ptr& from_whom, const reply& back, const value& logs) {
  if (logs.empty() && !from_whom->by.is_task())
    return back(json(value::object(), false));
  auto speaks = speaking(from_whom, logs.empty() ? value::object() : logs.front(), true);
  if (!speaks)
    return back(failure(speaks.error()));
  const auto& c = *speaks;
  auto with = from<commands::task_log>(*c);
  for (const auto& one : logs) {
    fields l{one};
    if (auto fine = of_the_task(*c, l.text("taskId")); !fine)
      return back(failure(fine.error()));
    with.lines.push_back(log_line_of(*c, one));
  }
  command(c, back, std::move(with));
}

void post_logs(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  const auto& logs = f.list("logs");
  if (f.bad())
    return back(failure(*f.bad()));
  take_lines(c, back, logs);
}

/// Takes the older form of the body, a bare list.
void post_bare_logs(const call_ptr& c, const reply& back) {
  auto body = parse_json(c->body);
  if (!body)
    return back(failure({errc::invalid, "the body has to be a JSON list: " + body.error().what}));
  for (const auto& one : *body)
    if (!body->is_array() || !one.is_object())
      return back(failure({errc::invalid, "the body has to be a list of lines, each an object"}));
  take_lines(c, back, body->is_array() ? *body : value::array());
}

/// Reads the progress, a fraction. Older scripts (is_raw false) send it in the unit of searcher.max_length.
void fill_progress(const call& c, fields& f, commands::trial_progress& with) {
  auto progress = f.real("progress");
  if (!progress)
    f.fault("progress", "is missing");
  double whole = 1;
  if (!f.flag("isRaw"))
    if (auto row = c.parts->storage->experiment(c.by.experiment); row && row->config->is_object()) {
      const auto searcher = row->config->value("searcher", value::object());
      auto length = searcher.is_object() ? searcher.value("max_length", value()) : value();
      if (length.is_object() && !length.empty())
        length = length.front();
      whole = number_in(length).value_or(0);
    }
  with.progress = whole > 0 ? std::clamp(progress.value_or(0) / whole, 0.0, 1.0) : 0.0;
}

/// Takes what the runner of a trial is doing. It is for people to read, and a restart of the master forgets
/// it.
result<value> runner_state(const call& c) {
  auto body = parse_object(c.body);
  if (!body)
    return body.error();
  fields f{*body};
  auto state = f.text("state").substr(0, 100);
  if (f.bad())
    return *f.bad();
  c.parts->runners->set(parse_id<trial_id>(c.named("trialId")), std::move(state));
  return value::object();
}

void fill_exit(const call&, fields& f, commands::trial_early_exit& with) {
  const auto reason = f.text("reason");
  const bool known = reason == "EXITED_REASON_INVALID_HP" || reason == "EXITED_REASON_INIT_INVALID_HP";
  if (!known)
    f.fault("reason", "expected EXITED_REASON_INVALID_HP or EXITED_REASON_INIT_INVALID_HP");
  with.reason = "invalid_hp";
}

/// Reads or sets the metadata of a trial, which the client calls a run.
void metadata(const call_ptr& c, const reply& back, bool set) {
  const auto id = parse_id<trial_id>(c->named("trialId"));
  auto row = c->parts->storage->trial(id);
  if (!row)
    return back(failure(row.error().code == errc::not_found
                          ? error{errc::not_found, "run '" + std::string(c->named("trialId")) + "' not found"}
                          : row.error()));
  const auto shape = [](value got) -> result<value> {
    return value{{"metadata", got.value("metadata", value::object())}};
  };
  if (set) {
    auto body = parse_object(c->body);
    if (!body)
      return back(failure(body.error()));
    fields f{*body};
    f.need("metadata");
    commands::trial_set_metadata with{id, f.object("metadata")};
    if (f.bad())
      return back(failure(*f.bad()));
    if (auto fine = check_run_metadata(with.metadata); !fine)
      return back(failure(fine.error()));
    return command(c, back, std::move(with), shape);
  }
  command(c, back, commands::trial_metadata{id}, shape);
}

route held(route row) {
  row.patience = std::chrono::hours{1};
  return row;
}

route slow(route row) { // the body may be 127 MB of text
  row.slow = true;
  return row;
}

route sized(route row, std::size_t bytes) {
  row.body_bytes = bytes;
  return row;
}

route asks_again(route row, std::size_t bytes) {
  row.asks_again = true;
  return sized(std::move(row), bytes);
}

} // namespace

std::vector<route> task_routes() {
  const std::string a = "/api/v1/allocations/{allocationId}", t = "/api/v1/trials/{trialId}";
  return {
    slow({"GET",
          "/api/v1/tasks/{taskId}/context_directory",
          {action::view, thing::task},
          answer_with(context_directory),
          "",
          "v1GetTaskContextDirectoryResponse",
          "The files of the task, or of its experiment, as a tar.gz."}),
    slow({"GET",
          "/api/v1/experiments/{experimentId}/model_def",
          {action::view, thing::files},
          answer_with(model_definition),
          "",
          "v1GetModelDefResponse",
          "The experiment's files as a tar.gz."}),
    {"POST",
     a + "/acceleratorData",
     {action::report, thing::allocation},
     answer_with(accelerators),
     "v1PostAllocationAcceleratorDataRequest",
     "Empty",
     "What devices the task sees."},
    held({"GET",
          a + "/resources/{resourcesId}/rendezvous",
          {action::report, thing::allocation},
          rendezvous(),
          "",
          "v1AllocationRendezvousInfoResponse",
          "Waits until all parts of the gang run; answers their addresses. With `ports` in the query, four "
          "with commas in between "
          "and zeros but for the chief, the chief's too."}),
    {"POST",
     a + "/resources/{resourcesId}/daemon",
     {action::report, thing::allocation},
     task_command<commands::allocation_daemon>([](const call& c, fields&, commands::allocation_daemon& with) {
       with.resources = c.named("resourcesId");
     }),
     "v1MarkAllocationResourcesDaemonRequest",
     "Empty",
     "The end of this part does not count."},
    held({"POST",
          a + "/all_gather",
          {action::report, thing::allocation},
          all_gather(),
          "v1AllocationAllGatherRequest",
          "v1AllocationAllGatherResponse",
          "Waits until all peers brought their data; answers all of it."}),
    held({"GET",
          a + "/signals/preemption",
          {action::report, thing::allocation},
          preemption,
          "",
          "v1AllocationPreemptionSignalResponse",
          "Answers when the task has to stop, or after timeout_seconds."}),
    {"POST",
     a + "/signals/ack_preemption",
     {action::report, thing::allocation},
     task_command<commands::allocation_ack_preemption>(),
     "v1AckAllocationPreemptionSignalRequest",
     "Empty",
     "The task stops because it was asked to."},
    {"POST",
     a + "/signals/pending_preemption",
     {action::report, thing::allocation},
     task_command<commands::allocation_pending_preemption>(),
     "v1AllocationPendingPreemptionSignalRequest",
     "Empty",
     "The task was told from outside to stop."},
    asks_again({"POST",
                "/api/v1/runs/start",
                {action::report, thing::task},
                answer_with(run_prepare),
                "v1RunPrepareForReportingRequest",
                "v1RunPrepareForReportingResponse",
                "Begins reporting."},
               1 << 20),
    {"POST",
     t + "/metrics",
     {action::report, thing::trial},
     task_command<commands::trial_report>(report),
     "v1ReportTrialMetricsRequest",
     "Empty",
     "One report; durable once answered."},
    {"POST",
     t + "/training_metrics",
     {action::report, thing::trial},
     report_of("training"),
     "v1TrialMetrics",
     "Empty",
     "One training report."},
    {"POST",
     t + "/validation_metrics",
     {action::report, thing::trial},
     report_of("validation"),
     "v1TrialMetrics",
     "Empty",
     "One validation report."},
    {"POST",
     t + "/progress",
     {action::report, thing::trial},
     task_command<commands::trial_progress>(fill_progress),
     "v1ReportTrialProgressRequest",
     "Empty",
     "How far the trial is."},
    {"POST",
     t + "/runner/metadata",
     {action::report, thing::trial},
     answer_with(runner_state),
     "v1TrialRunnerMetadata",
     "Empty",
     "What the trial's runner does."},
    {"POST",
     t + "/early_exit",
     {action::report, thing::trial},
     task_command<commands::trial_early_exit>(fill_exit),
     "v1TrialEarlyExit",
     "Empty",
     "The trial ends because its hyperparameters cannot be trained."},
    asks_again({"POST",
                "/api/v1/checkpoints",
                {action::report, thing::checkpoint},
                task_command<commands::checkpoint_report>(checkpoint_report),
                "v1Checkpoint",
                "Empty",
                "One checkpoint; durable once answered."},
               8 << 20),
    asks_again({"PATCH",
                "/api/v1/checkpoints",
                {action::change, thing::checkpoint},
                patch_checkpoints,
                "v1PatchCheckpointsRequest",
                "Empty",
                "What is left of checkpoints' files."},
               8 << 20),
    asks_again({"POST",
                "/api/v1/task/logs",
                {action::report, thing::log},
                post_logs,
                "v1PostTaskLogsRequest",
                "Empty",
                "Lines of the task's log."},
               16 << 20),
    asks_again({"POST",
                "/task-logs",
                {action::report, thing::log},
                post_bare_logs,
                "TaskLogLines",
                "Empty",
                "Lines of the task's log, as a list."},
               16 << 20),
    {"GET",
     "/api/v1/runs/{trialId}/metadata",
     {action::view, thing::trial},
     [](const call_ptr& c, const reply& back) { metadata(c, back, false); },
     "",
     "v1GetRunMetadataResponse",
     "The trial's metadata."},
    {"POST",
     "/api/v1/runs/{trialId}/metadata",
     {action::change, thing::trial},
     [](const call_ptr& c, const reply& back) { metadata(c, back, true); },
     "v1PostRunMetadataRequest",
     "v1PostRunMetadataResponse",
     "Replaces the trial's metadata."},
  };
}

} // namespace troupe::api
