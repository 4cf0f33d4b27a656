// Routes that explain a search: how much each hyperparameter matters, and which trials are on which rung.

#include "runtime/api/errors.hpp"
#include "runtime/api/importance.hpp"
#include "runtime/api/past.hpp"
#include "runtime/api/route.hpp"
#include "runtime/api/search_story.hpp"
#include "runtime/api/series_columns.hpp"
#include "runtime/api/shapes.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::api {
namespace {

constexpr std::size_t least_trials = 8;

void flatten(const value& in, const std::string& prefix, std::map<std::string, value>& out) {
  for (const auto& [key, x] : in.items())
    if (x.is_object())
      flatten(x, prefix + key + ".", out);
    else
      out[prefix + key] = x;
}

/// Adds the names of hyperparameters whose range is logarithmic in the configuration.
void logarithmic(const value& section, const std::string& prefix, std::set<std::string>& out) {
  if (!section.is_object())
    return;
  for (const auto& [key, x] : section.items())
    if (x.is_object() && x.contains("type") && x["type"].is_string()) {
      if (x["type"] == "log")
        out.insert(prefix + key);
    } else
      logarithmic(x, prefix + key + ".", out);
}

/// The best value of a trial's metric, with its sign changed where needed so that smaller is better; nullopt
/// where the trial has no finite value.
result<std::optional<double>> loss_of(const call& c, const experiment_row& row, const trial_row& t,
                                      const std::string& metric) {
  double y = std::numeric_limits<double>::quiet_NaN();
  if (metric == row.metric) {
    if (t.best.row != 0)
      y = t.best.metric;
  } else {
    auto known = c.parts->columns->summaries(t, *c.parts->storage);
    if (!known)
      return known.error();
    const auto look = [&](std::string_view group, const std::string& name) {
      auto in = (*known)->find(std::string(group));
      if (in == (*known)->end() || !std::isnan(y))
        return;
      if (auto one = in->second.find(name); one != in->second.end())
        y = row.smaller_is_better ? one->second.min : one->second.max;
    };
    for (const std::string_view group : {"validation", "training"})
      look(group, metric);
    for (const std::string_view group : {"validation", "training"}) // "validation.loss"
      if (metric.starts_with(group) && metric.substr(group.size()).starts_with('.'))
        look(group, metric.substr(group.size() + 1));
  }
  if (!std::isfinite(y))
    return std::optional<double>{};
  return std::optional{row.smaller_is_better ? y : -y};
}

result<response> importance(const call& c) {
  auto row = named_experiment(c);
  if (!row)
    return row.error();
  auto trials =
    c.query.has("trials") ? listed_trials(c, c.query.first("trials")) : c.parts->storage->trials(row->id);
  if (!trials)
    return trials.error();
  for (const auto& t : *trials)
    if (t.experiment != row->id)
      return error{errc::invalid,
                   "trial " + to_string(t.id) + " does not belong to experiment " + to_string(row->id)};
  auto metric = c.query.has("metric") ? std::string(c.query.first("metric")) : row->metric;
  if (!row->metric.empty() && metric == "validation." + row->metric)
    metric = row->metric;
  if (!c.query.has("metric") && metric.empty())
    return failure(failed_precondition, "the search has several metrics: name one by ?metric=");
  std::set<std::string> logs;
  if (row->config->is_object())
    logarithmic(row->config->value("hyperparameters", value::object()), "", logs);
  std::vector<double> loss;
  std::vector<std::map<std::string, value>> flat;
  std::set<std::string> names;
  for (const auto& t : *trials) {
    auto y = loss_of(c, *row, t, metric);
    if (!y)
      return y.error();
    if (!*y)
      continue;
    loss.push_back(**y);
    flatten(t.hparams.is_object() ? t.hparams : value::object(), "", flat.emplace_back());
    for (const auto& [name, x] : flat.back())
      names.insert(name);
  }
  if (loss.size() < least_trials)
    return failure(failed_precondition, "the importance of hyperparameters needs at least 8 trials with '" +
                                          metric + "'; there are " + std::to_string(loss.size()));
  std::vector<importance_input> inputs;
  for (const auto& name : names) {
    auto& one = inputs.emplace_back(importance_input{name, logs.contains(name), {}});
    for (const auto& of : flat) {
      auto found = of.find(name);
      one.values.push_back(found == of.end() ? value() : found->second);
    }
  }
  value list = value::array();
  for (const auto& one : ped_anova(inputs, loss))
    list.push_back({{"name", one.name}, {"importance", one.importance}});
  return json({{"method", "PED-ANOVA"}, {"metric", metric}, {"trials", loss.size()}, {"hparams", list}},
              c.query.has("pretty"));
}

result<value> search(const call& c) {
  auto row = named_experiment(c);
  if (!row)
    return row.error();
  return search_story(*row, *c.parts->storage);
}

} // namespace

std::vector<route> analysis_routes() {
  std::vector<route> rows = {
    {"GET",
     "/troupe/v1/experiments/{experimentId}/importance",
     {action::view, thing::search},
     respond_with(importance),
     "",
     "Importance",
     "How much each hyperparameter matters to a metric, as parts of 1; with `trials=1,2` among these alone."},
    {"GET",
     "/troupe/v1/experiments/{experimentId}/search",
     {action::view, thing::search},
     as_of(answer_with(search)),
     "",
     "SearchStory",
     "Brackets, rungs, and every decision with its reason."},
  };
  rows[0].slow = rows[1].slow = true;
  return rows;
}

} // namespace troupe::api
