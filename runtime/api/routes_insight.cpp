// Routes for what an experiment has found, in the form that the stock client's page reads: each new best
// value, the metrics and steps that exist, the trials at one step and along their curves, and the trials that
// a search would run.

#include "model/config/experiment_config.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/route.hpp"
#include "runtime/api/series_columns.hpp"
#include "runtime/api/shapes.hpp"
#include "searchers/preview.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>

namespace troupe::api {
namespace {

constexpr std::size_t most_trials = 1000;

using parts_ptr = std::shared_ptr<const services>;

/// Calls `each` with the points of a metric that are not archived.
template <class F>
result<void> each_counted(const parts_ptr& parts, const trial_row& trial, const std::string& group,
                          const std::string& name, F each) {
  auto points = parts->columns->column(trial, group, name, *parts->storage);
  if (!points)
    return points.error();
  auto gone = parts->columns->rollback(trial, *parts->storage);
  if (!gone)
    return gone.error();
  const auto over = (*gone)->limits(group);
  for (const auto& one : **points)
    if (!over({one.run}, one.steps))
      each(one);
  return {};
}

// ---- each new best

result<value> validation_history(const call& c) {
  auto row = named_experiment(c);
  if (!row)
    return row.error();
  auto trials = c.parts->storage->trials(row->id);
  if (!trials)
    return trials.error();
  struct found {
    std::int64_t at;
    trial_id trial;
    double y;
  };
  std::vector<found> all;
  for (const auto& trial : *trials) {
    const auto read = each_counted(c.parts, trial, "validation", row->metric, [&](const series_point& one) {
      if (!std::isnan(one.y))
        all.push_back({one.at, trial.id, one.y});
    });
    if (!read)
      return read.error();
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  value list = value::array();
  std::optional<double> best;
  for (const auto& one : all) {
    if (best && (row->smaller_is_better ? one.y >= *best : one.y <= *best))
      continue;
    best = one.y;
    list.push_back({{"trialId", one.trial.value},
                    {"endTime", to_rfc3339(time_point{duration{one.at}})},
                    {"searcherMetric", one.y}});
  }
  return value{{"validationHistory", std::move(list)}};
}

// ---- streams with one body each period

/// A body of lines {"result": ...}. A new line is made each period, until none of the experiments runs any
/// more. `make` answers null where nothing is new.
class periodic : public body_stream {
public:
  using maker = std::function<result<value>(time_point now)>;
  periodic(std::shared_ptr<storage::reader> storage, std::vector<experiment_id> of, duration period,
           maker make)
      : storage_(std::move(storage)), of_(std::move(of)), period_(period), make_(std::move(make)) {}

  result<piece> next(time_point now) override {
    piece out;
    bool seen = false; // the reader may have lost the right to see them
    bool runs = false; // read before the body is made, so that the last line contains the last changes
    for (const auto id : of_)
      if (auto row = storage_->experiment(id)) {
        seen = true;
        runs = runs || !terminal(row->state);
      }
    if (now < due_) { // a commit ended the pause early, or the rights are looked at
      out.pause = std::min(due_ - now, look_);
      out.last = !seen;
      return out;
    }
    auto body = make_(now);
    if (!body)
      return body.error();
    if (!body->is_null())
      out.bytes = to_json({{"result", std::move(*body)}}) + "\n";
    due_ = now + period_;
    out.last = !runs;
    if (runs && out.bytes.empty())
      out.pause = std::min(period_, look_);
    return out;
  }

private:
  std::shared_ptr<storage::reader> storage_;
  std::vector<experiment_id> of_;
  duration period_;
  maker make_;
  time_point due_{};
  static constexpr duration look_ = std::chrono::seconds(4);
};

result<duration> period_of(const call& c) {
  auto seconds = c.query.number("periodSeconds", 30);
  if (!seconds)
    return seconds.error();
  if (*seconds < 0 || *seconds > 3600)
    return error{errc::invalid, "periodSeconds has to be 0 (30 s) to 3600"};
  return duration{std::chrono::seconds{*seconds ? *seconds : 30}};
}

result<response> streamed(const call& c, std::vector<experiment_id> of, periodic::maker make) {
  auto period = period_of(c);
  if (!period)
    return period.error();
  response out;
  out.stream = std::make_unique<periodic>(c.parts->storage, std::move(of), *period, std::move(make));
  return out;
}

result<response> names_of_metrics(const call& c) {
  std::vector<experiment_id> ids;
  for (const auto text : c.query.every("ids"))
    ids.push_back(parse_id<experiment_id>(text));
  if (ids.empty())
    return error{errc::invalid, "must specify at least one experiment id"};
  if (ids.size() > most_trials)
    return error{errc::invalid, "at most 1000 experiments at once"};
  for (const auto id : ids)
    if (auto row = c.parts->storage->experiment(id); !row)
      return error{errc::not_found, "experiment '" + to_string(id) + "' not found"};
  struct seen {
    std::set<std::string> searcher, training, validation;
    std::set<std::pair<std::string, std::string>> all;
  };
  auto before = std::make_shared<seen>();
  return streamed(c, ids, [ids, before, parts = c.parts](time_point) -> result<value> {
    value searcher = value::array(), training = value::array(), validation = value::array(),
          all = value::array();
    for (const auto id : ids) {
      auto row = parts->storage->experiment(id);
      auto trials = parts->storage->trials(id);
      if (!row && row.error().code == errc::not_found)
        continue; // the experiment was deleted meanwhile
      if (!row || !trials)
        return row ? trials.error() : row.error();
      if (!row->metric.empty() && before->searcher.insert(row->metric).second)
        searcher.push_back(row->metric);
      for (const auto& trial : *trials) {
        auto known = parts->columns->summaries(trial, *parts->storage);
        if (!known)
          return known.error();
        for (const auto& [group, metrics] : **known)
          for (const auto& [name, one] : metrics) {
            if (group == "training" && before->training.insert(name).second)
              training.push_back(name);
            if (group == "validation" && before->validation.insert(name).second)
              validation.push_back(name);
            if (before->all.emplace(group, name).second)
              all.push_back({{"group", group}, {"name", name}});
          }
      }
    }
    return value{{"searcherMetrics", std::move(searcher)},
                 {"trainingMetrics", std::move(training)},
                 {"validationMetrics", std::move(validation)},
                 {"metricNames", std::move(all)}};
  });
}

struct wanted_metric {
  experiment_row experiment;
  std::string group, name;
};

result<wanted_metric> metric_of(const call& c) {
  auto row = named_experiment(c);
  if (!row)
    return row.error();
  wanted_metric out{std::move(*row), std::string(c.query.first("group")),
                    std::string(c.query.first("metricName"))};
  const auto type = c.query.first("metricType");
  const bool legacy = !type.empty() && type != "METRIC_TYPE_UNSPECIFIED";
  if (legacy && !out.group.empty())
    return error{errc::invalid, "cannot specify both legacy and new metric group"};
  if (legacy)
    out.group = type == "METRIC_TYPE_VALIDATION" ? "validation"
                : type == "METRIC_TYPE_TRAINING" ? "training"
                                                 : "";
  if (out.name.empty())
    return error{errc::invalid, "must specify a metric name"};
  if (out.group.empty())
    return error{errc::invalid, "must specify a metric group"};
  return out;
}

result<response> batches(const call& c) {
  auto what = metric_of(c);
  if (!what)
    return what.error();
  auto before = std::make_shared<std::set<std::int64_t>>();
  return streamed(
    c, {what->experiment.id}, [what = *what, before, parts = c.parts](time_point) -> result<value> {
      auto trials = parts->storage->trials(what.experiment.id);
      if (!trials)
        return trials.error();
      value fresh = value::array();
      for (const auto& trial : *trials) {
        const auto read = each_counted(parts, trial, what.group, what.name, [&](const series_point& one) {
          if (before->insert(one.steps).second)
            fresh.push_back(one.steps);
        });
        if (!read)
          return read.error();
      }
      return value{{"batches", std::move(fresh)}};
    });
}

value finite(double y) {
  return std::isnan(y) ? value("NaN") : std::isinf(y) ? value(y > 0 ? "Infinity" : "-Infinity") : value(y);
}

result<response> snapshot(const call& c) {
  auto what = metric_of(c);
  if (!what)
    return what.error();
  auto at = c.query.number("batchesProcessed", 0), margin = c.query.number("batchesMargin", 0);
  if (!at)
    return at.error();
  if (!margin)
    return margin.error();
  if (*margin > 100 || *margin < 0)
    return error{errc::invalid, "margin must be <= 100"};
  if (*at < 0)
    return error{errc::invalid, "batchesProcessed has to be 0 or more"};
  return streamed(
    c, {what->experiment.id},
    [what = *what, at = *at, margin = *margin, parts = c.parts](time_point) -> result<value> {
      auto trials = parts->storage->trials(what.experiment.id);
      if (!trials)
        return trials.error();
      value list = value::array();
      for (const auto& trial : *trials) {
        std::optional<series_point> last;
        const auto read = each_counted(parts, trial, what.group, what.name, [&](const series_point& one) {
          if ((one.steps < at ? at - one.steps : one.steps - at) <= margin)
            last = one;
        });
        if (!read)
          return read.error();
        if (last)
          list.push_back({{"trialId", trial.id.value},
                          {"hparams", trial.hparams.is_null() ? value::object() : trial.hparams},
                          {"metric", finite(last->y)},
                          {"batchesProcessed", last->steps}});
      }
      return value{{"trials", std::move(list)}};
    });
}

struct window {
  std::int64_t from = 0, until = std::numeric_limits<std::int64_t>::max();
  std::size_t most = 0;
};

result<window> window_of(const call& c, std::int64_t usual) {
  auto from = c.query.number("startBatches", 0), until = c.query.number("endBatches", 0),
       most = c.query.number("maxDatapoints", usual);
  for (const auto* one : {&from, &until, &most})
    if (!*one)
      return one->error();
  if (*most < 0 || *most > 10'000)
    return error{errc::invalid, "maxDatapoints has to be 0 to 10000"};
  window out;
  out.from = *from;
  if (*until > 0)
    out.until = *until;
  out.most = static_cast<std::size_t>(std::max<std::int64_t>(2, *most ? *most : usual));
  return out;
}

using point_predicate = std::function<bool(const series_point&)>;

/// The points of a metric that lie within the window and that `fits` accepts, thinned to the window's number
/// of points.
result<std::vector<series_point>> thinned(const parts_ptr& parts, const trial_row& trial,
                                          const std::string& group, const std::string& name,
                                          const window& within, const point_predicate& fits = nullptr) {
  std::vector<series_point> kept;
  std::vector<double> y;
  const auto read = each_counted(parts, trial, group, name, [&](const series_point& one) {
    if (one.steps >= within.from && one.steps <= within.until && (!fits || fits(one))) {
      kept.push_back(one);
      y.push_back(one.y);
    }
  });
  if (!read)
    return read.error();
  std::vector<series_point> out;
  for (const auto i : chosen_points(y, within.most))
    out.push_back(kept[i]);
  return out;
}

result<response> sample(const call& c) {
  auto what = metric_of(c);
  if (!what)
    return what.error();
  auto within = window_of(c, 1000);
  if (!within)
    return within.error();
  auto most = c.query.number("maxTrials", 25);
  if (!most)
    return most.error();
  if (*most < 0 || *most > static_cast<std::int64_t>(most_trials))
    return error{errc::invalid, "maxTrials has to be 0 (25) to 1000"};
  const auto name =
    what->experiment.config->is_object() ? what->experiment.config->value("searcher", value()) : value();
  const std::string searcher = name.is_object() ? name.value("name", std::string()) : std::string();
  if (searcher == "single")
    return error{errc::invalid, "a sample of trials needs a search, not a single trial"};
  const bool by_length = searcher != "random" && searcher != "grid";
  const auto count = static_cast<std::size_t>(*most ? *most : 25);
  // The last report that was sent of each trial. A later one may be of an earlier step, after a restart.
  auto shown = std::make_shared<std::map<trial_id, std::uint64_t>>();
  return streamed(
    c, {what->experiment.id},
    [what = *what, within = *within, by_length, count, shown, parts = c.parts](time_point) -> result<value> {
      auto trials = parts->storage->trials(what.experiment.id);
      if (!trials)
        return trials.error();
      std::erase_if(*trials, [](const auto& one) { return one.best.row == 0; });
      std::stable_sort(trials->begin(), trials->end(), [&](const auto& a, const auto& b) {
        if (by_length)
          return steps_processed(a) > steps_processed(b);
        return what.experiment.smaller_is_better ? a.best.metric < b.best.metric
                                                 : a.best.metric > b.best.metric;
      });
      if (trials->size() > count)
        trials->resize(count);
      value list = value::array(), promoted = value::array(), demoted = value::array();
      std::map<trial_id, std::uint64_t> now;
      for (const auto& trial : *trials) {
        const auto before = shown->find(trial.id);
        auto points = thinned(parts, trial, what.group, what.name, within);
        if (!points)
          return points.error();
        value data = value::array();
        auto& last = now[trial.id];
        const auto sent = last = before == shown->end() ? 0 : before->second;
        for (const auto& one : *points)
          if (one.row > sent) {
            data.push_back({{"batches", one.steps},
                            {"values", {{what.name, finite(one.y)}}},
                            {"time", to_rfc3339(time_point{duration{one.at}})}});
            last = std::max(last, one.row);
          }
        value shape = {{"trialId", trial.id.value}, {"data", std::move(data)}, {"hparams", value::object()}};
        if (before == shown->end()) {
          promoted.push_back(trial.id.value);
          if (trial.hparams.is_object())
            shape["hparams"] = trial.hparams;
        }
        list.push_back(std::move(shape));
      }
      for (const auto& [id, last] : *shown)
        if (!now.contains(id))
          demoted.push_back(id.value);
      *shown = std::move(now);
      return value{{"trials", std::move(list)},
                   {"promotedTrials", std::move(promoted)},
                   {"demotedTrials", std::move(demoted)}};
    });
}

// ---- curves of some trials

/// The range that timeSeriesFilter gives, for the steps of a point, its time, or another metric of its
/// report.
class point_range {
public:
  static result<point_range> read(const query_list& query) {
    point_range out;
    out.name_ = query.first("timeSeriesFilter.name");
    for (const char* kind : {"integerRange", "doubleRange", "timeRange"})
      for (const char* how : {"gt", "gte", "lt", "lte", "incl", "notIn"}) {
        const auto key = std::string("timeSeriesFilter.") + kind + "." + how;
        for (const auto text : query.every(key)) {
          const auto x = number_of(text, kind == std::string_view("timeRange"));
          if (!x)
            return error{errc::invalid, key + " cannot be '" + std::string(text.substr(0, 50)) + "'"};
          out.bounds_[how].push_back(*x);
        }
      }
    return out;
  }
  bool empty() const { return bounds_.empty(); }
  bool of_steps() const { return name_.empty() || name_ == "batches"; }
  bool of_times() const { return name_ == "time"; }
  const std::string& metric() const { return name_; }
  bool has(double x) const {
    const auto holds = [&](const char* how, const auto& fits) {
      const auto at = bounds_.find(how);
      return at == bounds_.end() ||
             std::all_of(at->second.begin(), at->second.end(), [&](double bound) { return fits(bound); });
    };
    const auto among = bounds_.find("incl");
    return holds("gt", [&](double y) { return x > y; }) && holds("gte", [&](double y) { return x >= y; }) &&
           holds("lt", [&](double y) { return x < y; }) && holds("lte", [&](double y) { return x <= y; }) &&
           holds("notIn", [&](double y) { return x != y; }) &&
           (among == bounds_.end() ||
            std::find(among->second.begin(), among->second.end(), x) != among->second.end());
  }

private:
  /// Reads a bound; times become microseconds since 1970.
  static std::optional<double> number_of(std::string_view text, bool time) {
    if (time) {
      const auto at = from_rfc3339(text);
      return at ? std::optional(static_cast<double>(at->time_since_epoch().count())) : std::nullopt;
    }
    double x = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), x);
    return fault == std::errc{} && end == text.data() + text.size() ? std::optional(x) : std::nullopt;
  }

  std::string name_;
  std::map<std::string, std::vector<double>> bounds_;
};

/// The predicate for the points of one metric; empty where the range accepts all points.
result<point_predicate> fitting(const parts_ptr& parts, const trial_row& trial, const std::string& group,
                                const point_range& range) {
  if (range.empty())
    return point_predicate{};
  if (range.of_steps())
    return point_predicate{
      [range](const series_point& one) { return range.has(static_cast<double>(one.steps)); }};
  if (range.of_times())
    return point_predicate{
      [range](const series_point& one) { return range.has(static_cast<double>(one.at)); }};
  auto others = parts->columns->column(trial, group, range.metric(), *parts->storage);
  if (!others)
    return others.error();
  std::set<std::uint64_t> rows;
  for (const auto& one : **others)
    if (range.has(one.y))
      rows.insert(one.row);
  return point_predicate{
    [rows = std::move(rows)](const series_point& one) { return rows.contains(one.row); }};
}

result<value> time_series(const call& c) {
  auto within = window_of(c, 200);
  if (!within)
    return within.error();
  std::vector<std::pair<std::string, std::string>> wanted; // group and name of each metric
  const std::string group(c.query.first("group"));
  for (const auto name : c.query.every("metricNames"))
    for (const std::string& one :
         group.empty() ? std::vector<std::string>{"training", "validation"} : std::vector<std::string>{group})
      wanted.emplace_back(one, std::string(name));
  for (const auto id : c.query.every("metricIds")) {
    const auto dot = id.find('.');
    if (dot == id.npos)
      return error{errc::invalid, "metricIds: '" + std::string(id.substr(0, 100)) + "' is not group.name"};
    wanted.emplace_back(std::string(id.substr(0, dot)), std::string(id.substr(dot + 1)));
  }
  if (c.query.has("metricNames") && c.query.has("metricIds"))
    return error{errc::invalid, "metricNames and metricIds exclude each other"};
  auto range = point_range::read(c.query);
  if (!range)
    return range.error();
  const auto ids = c.query.every("trialIds");
  if (ids.size() > most_trials || wanted.size() > 100)
    return error{errc::invalid, "at most 1000 trials and 100 metrics at once"};
  value list = value::array();
  for (const auto text : ids) {
    const auto id = parse_id<trial_id>(text);
    auto trial = id ? c.parts->storage->trial(id) : result<trial_row>(error{errc::not_found, ""});
    if (!trial)
      return trial.error().code == errc::not_found
               ? error{errc::not_found, "trial '" + std::string(text.substr(0, 30)) + "' not found"}
               : trial.error();
    auto shape = trial_shape(*trial, *c.parts->storage, c.now);
    if (!shape)
      return shape.error();
    // Points of one group in the same report become one point with several values.
    std::map<std::string, std::map<std::uint64_t, value>> by_group;
    for (const auto& [of, name] : wanted) {
      auto fits = fitting(c.parts, *trial, of, *range);
      if (!fits)
        return fits.error();
      auto points = thinned(c.parts, *trial, of, name, *within, *fits);
      if (!points)
        return points.error();
      for (const auto& one : *points) {
        auto& at = by_group[of]
                     .try_emplace(one.row, value{{"batches", one.steps},
                                                 {"values", value::object()},
                                                 {"time", to_rfc3339(time_point{duration{one.at}})}})
                     .first->second;
        at["values"][name] = finite(one.y);
      }
    }
    value metrics = value::array();
    for (auto& [of, points] : by_group) {
      value data = value::array();
      for (auto& [row, point] : points)
        data.push_back(std::move(point));
      metrics.push_back({{"group", of},
                         {"type", of == "training"     ? "METRIC_TYPE_TRAINING"
                                  : of == "validation" ? "METRIC_TYPE_VALIDATION"
                                                       : "METRIC_TYPE_UNSPECIFIED"},
                         {"data", std::move(data)}});
    }
    list.push_back({{"trial", std::move(*shape)}, {"metrics", std::move(metrics)}});
  }
  return value{{"trials", std::move(list)}};
}

// ---- a preview of a search

result<value> preview_search(const call& c) {
  auto body = parse_object(c.body);
  if (!body)
    return body.error();
  fields f{*body};
  f.need("config");
  const auto& given = f.object("config");
  f.number("seed"); // the plan does not depend on the seed
  if (f.bad())
    return *f.bad();
  const auto text = to_json(given);
  auto checked = config::load_experiment(text, "<config>", config::level::complete);
  if (!checked.ok())
    return error{errc::invalid, config::render(checked.faults.front(), text)};
  auto plan = searchers::preview_search(checked.config.value("searcher", value::object()),
                                        checked.config.value("hyperparameters", value::object()));
  if (!plan)
    return plan.error();
  auto summary = searchers::to_determined(*plan);
  summary["config"] = checked.config.value("searcher", value::object());
  return value{{"summary", std::move(summary)}};
}

} // namespace

std::vector<route> insight_routes() {
  const authority::need view{action::view, thing::experiment};
  const std::string of_one = "/api/v1/experiments/{experimentId}/";
  std::vector<route> rows = {
    {"GET", of_one + "validation-history", view, answer_with(validation_history), "",
     "v1GetExperimentValidationHistoryResponse", "Each validation that was better than all before it."},
    {"GET", "/api/v1/experiments/metrics-stream/metric-names", view, respond_with(names_of_metrics), "",
     "stream of v1ExpMetricNamesResponse",
     "Names of metrics, as they come, until the experiments have ended."},
    {"GET", of_one + "metrics-stream/batches", view, respond_with(batches), "",
     "stream of v1MetricBatchesResponse", "Steps at which a metric was reported, as they come."},
    {"GET", of_one + "metrics-stream/trials-snapshot", view, respond_with(snapshot), "",
     "stream of v1TrialsSnapshotResponse", "A metric of all trials at one step, each period."},
    {"GET", of_one + "metrics-stream/trials-sample", view, respond_with(sample), "",
     "stream of v1TrialsSampleResponse", "Curves of the best trials, as they grow."},
    {"GET",
     "/api/v1/trials/time-series",
     {action::view, thing::search},
     answer_with(time_series),
     "",
     "v1CompareTrialsResponse",
     "Thinned curves of some trials."},
    {"POST",
     "/api/v1/preview-hp-search",
     {action::create, thing::experiment},
     answer_with(preview_search),
     "v1PreviewHPSearchRequest",
     "v1PreviewHPSearchResponse",
     "How many trials of which lengths a search would run."},
  };
  for (auto& row : rows)
    row.slow = true; // reading a million reports for the first time takes seconds
  return rows;
}

} // namespace troupe::api
