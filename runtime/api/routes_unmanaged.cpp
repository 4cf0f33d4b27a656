// Routes for unmanaged trials, whose processes outside of the cluster register, begin, live and end. Their
// reports use the routes of all tasks (routes_task.cpp). Also the older form of the profiler's samples.

#include "model/names.hpp"
#include "model/sight.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/route.hpp"
#include "runtime/api/series_columns.hpp"
#include "runtime/api/shapes.hpp"

#include <algorithm>
#include <set>

namespace troupe::api {
namespace {

constexpr std::size_t batch = 1000;

result<value> shape_of(const call& c, trial_id id) {
  auto row = c.parts->storage->trial(id);
  auto shape = row ? trial_shape(*row, *c.parts->storage, c.now) : result<value>(row.error());
  auto summary = shape ? summary_metrics(*row, *c.parts->columns, *c.parts->storage) : shape;
  if (!summary)
    return summary.error();
  (*shape)["summaryMetrics"] = std::move(*summary);
  return value{{"trial", std::move(*shape)}};
}

// ---- trials

/// Creates a trial from {experimentId, hparams, unmanaged}.
void create(const call_ptr& c, const reply& back, const value& body, const std::string& external_id) {
  fields f{body};
  f.need("experimentId");
  commands::trial_create with;
  with.experiment = f.id<experiment_id>("experimentId");
  if (f.has("hparams"))
    with.hparams = f.object("hparams");
  with.external_id = external_id;
  if (!f.bad() && !f.flag("unmanaged"))
    f.fault("unmanaged", "only trials of unmanaged experiments are created, with true here");
  if (f.bad())
    return back(failure(*f.bad()));
  command(c, back, std::move(with),
          [c](value got) { return shape_of(*c, {got.value("id", std::uint64_t{0})}); });
}

void post_trial(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  return body ? create(c, back, *body, "") : back(failure(body.error()));
}

void put_trial(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  f.need("createTrialRequest");
  f.need("externalTrialId");
  const auto external_id = f.text("externalTrialId");
  const auto& inner = f.object("createTrialRequest");
  if (!f.bad() && external_id.empty())
    f.fault("externalTrialId", "is empty");
  if (f.bad())
    return back(failure(*f.bad()));
  create(c, back, inner, external_id);
}

result<value> by_external_id(const call& c) {
  const std::string experiment(c.named("externalExperimentId")), trial(c.named("externalTrialId"));
  const error none{errc::not_found, "trial '" + trial + "' of experiment '" + experiment +
                                      "' not found: none has these names"};
  const auto named = c.parts->storage->experiments_with_key(external_key(experiment));
  if (!named || named->empty())
    return named ? none : named.error();
  const auto self = c.parts->users->owner(c.by.who.user);
  std::optional<error> fault;
  const auto meant = meant_by_key(*named, [&](experiment_id id) {
    const auto one = c.parts->storage->experiment(id);
    if (!one && one.error().code != errc::not_found)
      fault = one.error();
    if (!one || !self)
      return one ? sight::seen : sight::none;
    const auto owner = c.parts->users->owner(one->owner);
    return owner && owner->id == self->id ? sight::own : sight::seen;
  });
  if (fault)
    return *fault;
  const auto row = c.parts->storage->experiment(meant);
  if (!row || !row->unmanaged)
    return row || row.error().code == errc::not_found ? none : row.error();
  auto trials = c.parts->storage->trials(row->id);
  if (!trials)
    return trials.error();
  for (const auto& one : *trials)
    if (one.key == external_key(trial))
      return shape_of(c, one.id);
  return none;
}

void start(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  auto row = named_trial(*c);
  if (!row)
    return back(failure(row.error()));
  commands::trial_start with{row->id, f.flag("resume")};
  if (f.bad())
    return back(failure(*f.bad()));
  command(
    c, back, std::move(with),
    [](value got) -> result<value> {
      value x{{"trialRunId", got.at("run")}, {"stepsCompleted", got.at("steps")}};
      if (const auto checkpoint = got.value("checkpoint", std::string()); !checkpoint.empty())
        x["latestCheckpoint"] = checkpoint;
      return x;
    },
    [](const error& why) {
      return failure({why.code == errc::conflict ? errc::invalid : why.code, why.what});
    });
}

/// Takes {state?}. A body without a state is a sign of life.
void patch(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  auto row = named_trial(*c);
  if (!row)
    return back(failure(row.error()));
  commands::trial_hear with{row->id};
  auto state = f.text("state");
  if (state.starts_with("STATE_"))
    state = state.substr(6);
  static const std::map<std::string, const char*> known = {
    {"", "alive"},         {"UNSPECIFIED", "alive"},   {"RUNNING", "running"},
    {"ACTIVE", "running"}, {"COMPLETED", "completed"}, {"CANCELED", "canceled"},
    {"ERROR", "error"}};
  const auto at = known.find(state);
  if (at == known.end())
    f.fault("state", "expected STATE_RUNNING, STATE_COMPLETED, STATE_CANCELED or STATE_ERROR");
  else
    with.state = at->second;
  if (f.bad())
    return back(failure(*f.bad()));
  command(c, back, std::move(with), [c, id = row->id](value) { return shape_of(*c, id); });
}

// ---- samples of the profiler, in the form before 0.24: rows of a group of their own

/// Stores {batches: [{values, batches, timestamps, labels: {trialId, name, agentId, gpuUuid, metricType}}]}.
void post_samples(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  value samples = value::array();
  task_id of;
  for (const auto& one : f.list("batches")) {
    fields b{one, "batches[" + std::to_string(samples.size()) + "]"};
    fields labels{b.object("labels"), "labels"};
    const trial_id trial{labels.id<trial_id>("trialId")};
    const auto count = b.list("values").size();
    if (b.list("batches").size() != count || b.list("timestamps").size() != count)
      b.fault("values", "values, batches and timestamps have to be of one length");
    if (!trial || (of && task_id{trial} != of))
      b.fault("labels", "trialId has to name one trial, the same in all batches");
    if (b.bad())
      return back(failure(*b.bad()));
    of = trial;
    samples.push_back({{"values", b.list("values")},
                       {"batches", b.list("batches")},
                       {"timestamps", b.list("timestamps")},
                       {"labels",
                        {{"trialId", trial.value},
                         {"name", labels.text("name")},
                         {"agentId", labels.text("agentId")},
                         {"gpuUuid", labels.text("gpuUuid")},
                         {"metricType", labels.text("metricType", "PROFILER_METRIC_TYPE_UNSPECIFIED")}}}});
    if (labels.bad())
      return back(failure(*labels.bad()));
  }
  if (f.bad())
    return back(failure(*f.bad()));
  if (samples.empty())
    return back(json(value::object(), false));
  auto speaks = c->by.is_task() ? result<call_ptr>(c) : spoken_for(c, of);
  if (!speaks)
    return back(failure(speaks.error()));
  if (of != (*speaks)->by.allocation.task)
    return back(failure({errc::denied, "trial " + to_string(of) + " is not this task's"}));
  commands::trial_report with;
  with.allocation = (*speaks)->by.who.allocation;
  with.experiment = (*speaks)->by.experiment;
  with.group = profiler_group;
  with.metrics = {{"samples", std::move(samples)}};
  command(*speaks, back, std::move(with));
}

/// A newline-delimited body made from rows as they come. `shape` formats the samples of a row that are to be
/// sent.
class sample_stream : public body_stream {
public:
  using shaper = std::function<std::string(const value& samples)>;
  sample_stream(std::shared_ptr<storage::reader> storage, trial_id trial, bool follow, shaper shape)
      : storage_(std::move(storage)), trial_(trial), follow_(follow), shape_(std::move(shape)) {}

  result<piece> next(time_point) override {
    piece out;
    auto trial = storage_->trial(trial_); // read before the rows, so that the last rows are among them
    auto rows = trial ? storage_->metrics(trial_, after_, batch, profiler_group)
                      : result<std::vector<metric_row>>(trial.error());
    if (!rows)
      return rows.error();
    for (const auto& row : *rows) {
      after_ = row.row;
      out.bytes += shape_(reported(row).value("samples", value::array()));
    }
    if (rows->size() == batch)
      return out;
    out.last = !follow_ || terminal(trial->state);
    if (!out.last && out.bytes.empty())
      out.pause = std::chrono::seconds(1);
    return out;
  }

private:
  std::shared_ptr<storage::reader> storage_;
  trial_id trial_;
  bool follow_;
  shaper shape_;
  std::uint64_t after_ = 0;
};

std::string result_line(value body) { return to_json({{"result", std::move(body)}}) + "\n"; }

result<response> samples_of(const call& c, const char* trial, sample_stream::shaper shape) {
  auto row = trial_of(c, c.named(trial));
  if (!row)
    return row.error();
  response out;
  out.stream =
    std::make_unique<sample_stream>(c.parts->storage, row->id, c.query.flag("follow"), std::move(shape));
  return out;
}

result<response> samples(const call& c) {
  value wanted = value::object();
  for (const char* name : {"name", "agentId", "gpuUuid", "metricType"})
    if (const std::string text(c.query.first(std::string("labels.") + name)); !text.empty())
      wanted[name] = text;
  return samples_of(c, "labels_trialId", [wanted](const value& all) {
    std::string lines;
    for (const auto& one : all) {
      const auto& labels = one.at("labels");
      if (std::all_of(wanted.items().begin(), wanted.items().end(), [&](const auto& label) {
            return labels.value(label.key(), std::string()) == label.value();
          }))
        lines += result_line({{"batch", one}});
    }
    return lines;
  });
}

/// Sends all labels so far, again whenever there are new ones.
result<response> sample_labels(const call& c) {
  struct seen {
    std::set<std::string> known;
    value labels = value::array();
  };
  return samples_of(c, "trialId", [before = std::make_shared<seen>()](const value& all) {
    const auto count = before->labels.size();
    for (const auto& one : all)
      if (before->known.insert(to_json(one.at("labels"))).second)
        before->labels.push_back(one.at("labels"));
    return before->labels.size() > count ? result_line({{"labels", before->labels}}) : std::string();
  });
}

} // namespace

std::vector<route> unmanaged_routes() {
  const std::string t = "/api/v1/trials";
  return {
    {"POST",
     t,
     {action::create, thing::trial},
     post_trial,
     "v1CreateTrialRequest",
     "v1CreateTrialResponse",
     "A trial of an unmanaged experiment."},
    {"PUT",
     t,
     {action::create, thing::trial},
     put_trial,
     "v1PutTrialRequest",
     "v1PutTrialResponse",
     "A trial of an unmanaged experiment with a name of its own, or finds it again."},
    {"GET",
     t + "/by-external-id/{externalExperimentId}/{externalTrialId}",
     {action::view, thing::trial},
     answer_with(by_external_id),
     "",
     "v1GetTrialByExternalIDResponse",
     "The unmanaged trial with these names."},
    {"POST",
     t + "/{trialId}/start",
     {action::report, thing::trial},
     start,
     "v1StartTrialRequest",
     "v1StartTrialResponse",
     "The next run of an unmanaged trial begins."},
    {"PATCH",
     t + "/{trialId}",
     {action::report, thing::trial},
     patch,
     "v1PatchTrialRequest",
     "v1PatchTrialResponse",
     "An unmanaged trial lives, or has ended. Not heard of for 5 minutes it ends as ERROR."},
    asks_again({"POST",
                t + "/profiler/metrics",
                {action::report, thing::trial},
                post_samples,
                "v1PostTrialProfilerMetricsBatchRequest",
                "Empty",
                "Samples of the profiler, in its older form."}),
    {"GET",
     t + "/{labels_trialId}/profiler/metrics",
     {action::view, thing::trial},
     respond_with(samples),
     "",
     "stream of v1GetTrialProfilerMetricsResponse",
     "Samples of the profiler by their labels; with `follow` until the trial has ended."},
    {"GET",
     t + "/{trialId}/profiler/available_series",
     {action::view, thing::trial},
     respond_with(sample_labels),
     "",
     "stream of v1GetTrialProfilerAvailableSeriesResponse",
     "Labels of these samples, again where there are new ones."},
  };
}

} // namespace troupe::api
