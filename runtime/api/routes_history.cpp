// The route that lists the facts of an experiment, with the numbers that `at` takes.

#include "runtime/api/errors.hpp"
#include "runtime/api/past.hpp"
#include "runtime/api/route.hpp"

namespace troupe::api {
namespace {

result<value> history(const call& c) {
  auto row = named_experiment(c);
  if (!row)
    return row.error();
  auto all = c.parts->past->history(*c.parts, *row);
  if (!all)
    return all.error();
  value list = value::array();
  for (const auto& one : *all) {
    list.push_back({{"sequence", one.sequence}, {"at", to_rfc3339(one.at)}, {"type", one.type}});
    if (one.trial)
      list.back()["trial"] = one.trial.value;
    if (one.run)
      list.back()["run"] = one.run.value;
    if (one.told.is_object())
      list.back().update(one.told);
  }
  return value{{"history", std::move(list)}};
}

} // namespace

std::vector<route> history_routes() {
  std::vector<route> rows = {
    {"GET",
     "/troupe/v1/experiments/{experimentId}/history",
     {action::view, thing::search},
     answer_with(history),
     "",
     "History",
     "The experiment's facts with their numbers: `at` of `trials`, `search`, `series` and `outcome`."},
  };
  rows[0].slow = true;
  return rows;
}

} // namespace troupe::api
