// Routes for a search as it is seen from outside: the events that it hears, the orders of a process that
// drives it, and the front of a search with several metrics.

#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/route.hpp"
#include "runtime/api/shapes.hpp"
#include "searchers/nsga2.hpp"

#include <algorithm>

namespace troupe::api {
namespace {

constexpr std::size_t most_events = 10'000;
constexpr std::int64_t longest_wait_s = 50;

const char* reason_name(int reason) {
  constexpr const char* names[] = {"ERRORED", "USER_REQUESTED_STOP", "USER_CANCELED", "INVALID_HP",
                                   "INIT_INVALID_HP"};
  return reason >= 0 && reason < static_cast<int>(std::size(names)) ? names[reason] : "ERRORED";
}

/// An event in the form of `troupe search replay`; null where the outside process caused it itself.
value event_shape(const search_stepped& x, const std::map<trial_id, std::string>& keys) {
  value shaped = value::object();
  if (auto key = keys.find(x.trial); key != keys.end())
    shaped = {{"trial", key->second}, {"trialId", x.trial.value}};
  switch (x.input) {
  case search_input::started:
    shaped["event"] = "started";
    break;
  case search_input::validated:
    shaped["event"] = "validation";
    shaped["steps"] = x.steps;
    shaped["metrics"] = x.metrics;
    break;
  case search_input::exited_early:
    shaped["event"] = "exited_early";
    shaped["reason"] = reason_name(x.reason);
    break;
  case search_input::exited:
    shaped["event"] = "exited";
    break;
  case search_input::checkpointed:
    shaped["event"] = "checkpointed";
    shaped["step"] = x.time;
    shaped["steps"] = x.steps;
    shaped["checkpoint"] = x.checkpoint;
    break;
  case search_input::ordered:
  case search_input::continued: // only searches without an outside process have these
    return nullptr;
  }
  return shaped;
}

/// The events with ids above `after`. Ids are the numbers of facts in the experiment's stream, from 1.
result<value> events_after(const call& c, experiment_id id, std::uint64_t after) {
  auto stored = c.parts->storage->facts_of(entity(id), after);
  auto trials = c.parts->storage->trials(id);
  if (!stored)
    return stored.error();
  if (!trials)
    return trials.error();
  std::map<trial_id, std::string> keys;
  for (const auto& t : *trials)
    keys[t.id] = t.key;
  value list = value::array();
  auto last = after;
  for (const auto& bytes : *stored) {
    if (list.size() == most_events)
      break;
    ++last;
    auto fact = decode_as<experiment_fact>(bytes);
    if (!fact)
      return fact.error();
    auto* step = std::get_if<search_stepped>(&*fact);
    if (!step)
      continue;
    if (auto shaped = event_shape(*step, keys); !shaped.is_null()) {
      shaped["id"] = last;
      list.push_back(std::move(shaped));
    }
  }
  auto row = c.parts->storage->experiment(id);
  return value{{"events", std::move(list)}, {"last", last}, {"state", row ? state_name(row->state) : ""}};
}

void events(const call_ptr& c, const reply& back) {
  auto row = named_experiment(*c);
  if (!row)
    return back(failure(row.error()));
  auto after = c->query.number("after", 0), wait = c->query.number("wait", 0);
  for (const auto* number : {&after, &wait})
    if (!*number)
      return back(failure(number->error()));
  if (*after < 0 || *wait < 0 || *wait > longest_wait_s)
    return back(failure({errc::invalid, "after has to be 0 or more, and wait 0 to 50 seconds"}));
  const auto from = static_cast<std::uint64_t>(*after);
  command(c, back, commands::search_wait{row->id, from, *wait * 1000},
          [c, id = row->id, from](value) { return events_after(*c, id, from); });
}

void orders(const call_ptr& c, const reply& back) {
  auto row = named_experiment(*c);
  if (!row)
    return back(failure(row.error()));
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  command(c, back, commands::search_order{row->id, std::move(*body)}, as_it_is, [](const error& why) {
    return why.code == errc::conflict ? failure(failed_precondition, why.what) : failure(why);
  });
}

// ---- several metrics

struct objective {
  std::string metric;
  bool smaller_is_better = true;
};

std::vector<objective> objectives_of(const experiment_row& row) {
  std::vector<objective> list;
  const auto searcher =
    row.config->is_object() ? row.config->value("searcher", value::object()) : value::object();
  auto names = searcher.value("metrics", value());
  if (!names.is_array() || names.empty())
    names = searcher.value("metric", value());
  if (names.is_string())
    names = value::array({names});
  // Read in the same way as the searcher does.
  auto smaller = searcher.value("smaller_is_better_each", value());
  if (!smaller.is_array() || smaller.empty())
    smaller = searcher.value("smaller_is_better", value(true));
  for (std::size_t i = 0; names.is_array() && i < names.size(); ++i)
    if (names[i].is_string())
      list.push_back(
        {names[i], smaller.is_array() ? i >= smaller.size() || smaller[i] != false : smaller != false});
  return list;
}

/// The metrics of a trial's latest validation that has all of them, with signs changed where needed so that
/// smaller is better.
result<std::optional<std::vector<double>>> point_of(const call& c, const trial_row& t,
                                                    const std::vector<objective>& wanted) {
  if (t.latest.row == 0)
    return std::optional<std::vector<double>>{};
  auto report = c.parts->storage->metric(t.id, t.latest.row);
  if (!report && report.error().code == errc::not_found && !is_leaving(c, t.experiment))
    return std::optional<std::vector<double>>{}; // this trial alone is being deleted
  if (!report)
    return report.error();
  auto metrics = reported(*report);
  std::vector<double> point;
  for (const auto& o : wanted) {
    auto it = metrics.find(o.metric);
    auto x = it == metrics.end() ? std::nullopt : number_in(*it);
    if (!x || !std::isfinite(*x))
      return std::optional<std::vector<double>>{};
    point.push_back(o.smaller_is_better ? *x : -*x);
  }
  return std::optional{std::move(point)};
}

result<value> pareto(const call& c) {
  auto row = named_experiment(c);
  if (!row)
    return row.error();
  auto wanted = objectives_of(*row);
  auto trials = c.parts->storage->trials(row->id);
  if (!trials)
    return trials.error();
  std::vector<std::vector<double>> points;
  std::vector<const trial_row*> of;
  std::size_t left_out = 0;
  for (const auto& t : *trials) {
    auto point = point_of(c, t, wanted);
    if (!point)
      return point.error();
    if (*point) {
      points.push_back(std::move(**point));
      of.push_back(&t);
    } else if (t.latest.row != 0) {
      ++left_out;
    }
  }
  value front = value::array();
  for (auto i : searchers::pareto_front(points)) {
    value metrics = value::object();
    for (std::size_t j = 0; j < wanted.size(); ++j)
      metrics[wanted[j].metric] = wanted[j].smaller_is_better ? points[i][j] : -points[i][j];
    front.push_back({{"trialId", of[i]->id.value},
                     {"hparams", of[i]->hparams},
                     {"metrics", std::move(metrics)},
                     {"totalBatches", of[i]->latest.steps},
                     {"latestCheckpoint", of[i]->latest_checkpoint}});
  }
  value names = value::array();
  for (const auto& o : wanted)
    names.push_back({{"name", o.metric}, {"smallerIsBetter", o.smaller_is_better}});
  return value{
    {"metrics", std::move(names)}, {"trials", of.size()}, {"leftOut", left_out}, {"front", std::move(front)}};
}

} // namespace

std::vector<route> search_routes() {
  return {
    {"GET",
     "/troupe/v1/experiments/{experimentId}/searcher/events",
     {action::view, thing::search},
     events,
     "",
     "SearchEvents",
     "What the search has heard, above the id `after`; waits up to `wait` seconds for more."},
    {"POST",
     "/troupe/v1/experiments/{experimentId}/searcher/orders",
     {action::change, thing::experiment},
     orders,
     "SearchOrders",
     "OrdersTaken",
     "The actions of the process that drives a custom search."},
    {"GET",
     "/troupe/v1/experiments/{experimentId}/pareto",
     {action::view, thing::search},
     answer_with(pareto),
     "",
     "ParetoFront",
     "The trials that no other beats in all metrics."},
  };
}

} // namespace troupe::api
