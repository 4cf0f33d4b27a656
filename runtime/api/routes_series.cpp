// Routes for curves, each a few hundred points that stand for all points in a chart, and for the metrics that
// an experiment has.

#include "runtime/api/errors.hpp"
#include "runtime/api/past.hpp"
#include "runtime/api/route.hpp"
#include "runtime/api/series_axis.hpp"
#include "runtime/api/series_columns.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

namespace troupe::api {
namespace {

constexpr std::size_t most_trials = 1000;

void write_number(std::string& out, double y) {
  if (std::isnan(y))
    out += "\"NaN\"";
  else if (std::isinf(y))
    out += y > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  else {
    char text[32];
    auto [end, fault] = std::to_chars(text, text + sizeof text, y);
    out.append(text, fault == std::errc{} ? end : text);
  }
}

void write_list(std::string& out, const char* name, const std::vector<double>& all,
                const std::vector<std::size_t>& chosen) {
  out += ",\"";
  out += name;
  out += "\":[";
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (i > 0)
      out += ',';
    write_number(out, all[chosen[i]]);
  }
  out += ']';
}

/// One element of the list `series`.
std::string written(trial_id trial, const series_line& line, std::size_t points) {
  const auto chosen = chosen_points(line.y, points);
  std::string out = "\n{\"trial\":" + to_string(trial) + ",\"row\":" + std::to_string(line.row) +
                    ",\"count\":" + std::to_string(line.y.size());
  write_list(out, "x", line.x, chosen);
  write_list(out, "y", line.y, chosen);
  return out + '}';
}

result<std::vector<trial_row>> wanted_trials(const call& c) {
  const auto list = c.query.first("trials"), experiment = c.query.first("experiment");
  if (list.empty() == experiment.empty())
    return error{errc::invalid, "give either trials=1,2 or experiment=7"};
  if (!experiment.empty()) {
    const auto id = parse_id<experiment_id>(experiment);
    auto row = id ? c.parts->storage->experiment(id)
                  : result<experiment_row>(error{errc::invalid, "experiment has to be an id"});
    if (!row)
      return row.error().code == errc::not_found
               ? error{errc::not_found, "experiment '" + to_string(id) + "' not found"}
               : row.error();
    auto rows = c.parts->storage->trials(id);
    if (!rows || rows->size() <= most_trials)
      return rows;
    const auto worth = [&](const trial_row& t) {
      return t.best.row == 0 || !std::isfinite(t.best.metric) ? std::numeric_limits<double>::infinity()
             : row->smaller_is_better                         ? t.best.metric
                                                              : -t.best.metric;
    };
    std::stable_sort(rows->begin(), rows->end(),
                     [&](const auto& a, const auto& b) { return worth(a) < worth(b); });
    rows->resize(most_trials);
    std::sort(rows->begin(), rows->end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    return rows;
  }
  return listed_trials(c, list);
}

result<std::optional<double>> bound(const call& c, const char* name) {
  const auto text = c.query.first(name);
  if (text.empty())
    return std::optional<double>{};
  double x = 0;
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (fault != std::errc{} || end != text.data() + text.size() || !std::isfinite(x))
    return error{errc::invalid, std::string(name) + " has to be a number"};
  return std::optional{x};
}

result<response> series(const call& c) {
  const auto group = std::string(c.query.first("group")), metric = std::string(c.query.first("metric"));
  if (group.empty() || !c.query.has("metric"))
    return error{errc::invalid, "group and metric have to be given, as group=validation&metric=loss"};
  auto axis = series_axis::read(c.query.has("x") ? c.query.first("x") : "step");
  if (!axis)
    return axis.error();
  auto points = c.query.number("points", 500);
  if (!points)
    return points.error();
  if (*points < 2 || *points > 10'000 || (c.query.has("points") && c.query.first("points").empty()))
    return error{errc::invalid, "points has to be 2 to 10000"};
  auto from = bound(c, "from"), to = bound(c, "to");
  for (const auto* one : {&from, &to})
    if (!*one)
      return one->error();
  const auto sequence = c.parts->storage->sequence();
  auto trials = wanted_trials(c);
  if (!trials)
    return trials.error();
  std::string out = "{\"sequence\":" + std::to_string(sequence) + ",\"group\":" + to_json(group) +
                    ",\"metric\":" + to_json(metric) + ",\"x\":" + to_json(axis->text()) + ",\"series\":[";
  bool some = false;
  for (const auto& trial : *trials) {
    auto source = axis->source(trial, group, metric, *c.parts->columns, *c.parts->storage);
    if (!source)
      return source.error();
    auto& texts = c.parts->columns->texts();
    const curve_texts::name name{trial.id.value, group, metric, axis->text(),
                                 static_cast<std::size_t>(*points)};
    const bool lasts = !*from && !*to && axis->of_source_alone();
    auto text = lasts ? texts.find(name, *source) : nullptr;
    if (!text) {
      auto line = axis->line(trial, group, *source);
      line.keep(*from, *to);
      text = std::make_shared<const std::string>(written(trial.id, line, name.points));
      if (lasts)
        texts.keep(name, *source, text);
    }
    if (std::exchange(some, true))
      out += ',';
    out += *text;
  }
  response answer;
  answer.body = out + "]}";
  return answer;
}

result<value> metrics(const call& c) {
  auto row = named_experiment(c);
  if (!row)
    return row.error();
  auto trials = c.parts->storage->trials(row->id);
  if (!trials)
    return trials.error();
  if (c.query.has("trial")) {
    const auto only = parse_id<trial_id>(c.query.first("trial"));
    std::erase_if(*trials, [&](const trial_row& t) { return t.id != only; });
    if (trials->empty())
      return error{errc::not_found, "experiment " + to_string(row->id) + " has no trial '" +
                                      std::string(c.query.first("trial").substr(0, 100)) + "'"};
  }
  const std::string wanted(c.query.first("group"));
  // Names of arbitrary groups would fill the memory.
  const std::string kept = wanted == "system" ? wanted : "";
  struct seen {
    metric_kind kind;
    std::uint64_t trials = 0, reports = 0;
    time_point newest;
  };
  std::map<std::pair<std::string, std::string>, seen> all;
  for (const auto& trial : *trials) {
    auto known = c.parts->columns->summaries(trial, *c.parts->storage, kept);
    if (!known)
      return known.error();
    for (const auto& [group, names] : **known)
      for (const auto& [name, summary] : names) {
        if (!wanted.empty() && group != wanted)
          continue;
        auto& one = all.try_emplace({group, name}, seen{summary.kind, 0, 0, {}}).first->second;
        ++one.trials;
        one.reports += summary.reports;
        one.newest = std::max(one.newest, summary.newest);
      }
  }
  value list = value::array();
  for (const auto& [name, one] : all)
    list.push_back({{"group", name.first},
                    {"name", name.second},
                    {"kind", api::name(one.kind)},
                    {"trials", one.trials},
                    {"reports", one.reports},
                    {"lastReport", to_rfc3339(one.newest)}});
  return value{{"metrics", std::move(list)}};
}

} // namespace

std::vector<route> series_routes() {
  std::vector<route> rows = {
    {"GET",
     "/troupe/v1/series",
     {action::view, thing::search},
     as_of(respond_with(series)),
     "",
     "Series",
     "One metric of some trials, or of an experiment's, as at most `points` reported points each."},
    {"GET",
     "/troupe/v1/experiments/{experimentId}/metrics",
     {action::view, thing::search},
     answer_with(metrics),
     "",
     "MetricList",
     "The metrics that its trials, or one `trial`, have reported, all or those of one `group`, and what kind "
     "each is. What agents have measured is in the group `system`, which has to be named."},
  };
  for (auto& row : rows)
    row.slow = true; // reading a million reports for the first time takes seconds
  return rows;
}

} // namespace troupe::api
