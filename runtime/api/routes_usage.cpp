// Routes that say how many slots were used, over time and by user.

#include "model/states.hpp"
#include "runtime/api/csv.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/route.hpp"
#include "runtime/api/slot_usage.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::api {
namespace {

constexpr std::int64_t most_steps = 10'000, usual_steps = 300;

struct asked_usage {
  time_point from, until;
  duration step;
  std::size_t steps = 0;
};

result<asked_usage> asked(const call& c) {
  asked_usage out;
  const auto time = [&](const char* name, time_point otherwise) {
    const auto text = c.query.first(name);
    return text.empty() ? std::optional{otherwise} : from_rfc3339(text);
  };
  const auto until = time("to", c.now);
  const auto from = time("from", until ? *until - std::chrono::hours(24) : time_point{});
  if (!from || !until)
    return error{errc::invalid, "from and to have to be times as RFC 3339 writes them"};
  if (*until <= *from)
    return error{errc::invalid, "from has to be before to"};
  out.from = *from;
  const auto span = std::chrono::ceil<std::chrono::seconds>(*until - *from).count();
  auto step = c.query.number("step", std::max<std::int64_t>(1, (span + usual_steps - 1) / usual_steps));
  if (!step)
    return step.error();
  if (*step < 1 || (span + *step - 1) / *step > most_steps)
    return error{errc::invalid, "step has to be seconds, 1 or more, and from to to at most " +
                                  std::to_string(most_steps) + " of them"};
  out.step = std::chrono::seconds(*step);
  out.steps = static_cast<std::size_t>((span + *step - 1) / *step);
  out.until = *until;
  return out;
}

/// Adds the runs that wait now, for which no record exists yet.
result<void> add_waiting(const call& c, step_means& waiting) {
  auto open = c.parts->storage->open_tasks();
  if (!open)
    return open.error();
  std::map<experiment_id, std::int64_t> known;
  for (const auto& task : *open) {
    auto runs = c.parts->storage->runs(task.id);
    if (!runs || runs->empty() || !runs->back().on.empty() || runs->back().ended != time_point{} ||
        !task.id.is_trial())
      continue;
    auto [slots, fresh] = known.try_emplace(task.experiment);
    if (fresh)
      if (auto row = c.parts->storage->experiment(task.experiment))
        slots->second = row->unmanaged ? 0 : slots_of(*row);
    waiting.add(runs->back().started, c.now, static_cast<double>(slots->second));
  }
  return {};
}

value rounded(const std::vector<double>& all) {
  value list = value::array();
  for (const auto x : all)
    list.push_back(std::round(x * 1000) / 1000);
  return list;
}

result<response> usage(const call& c) {
  auto what = asked(c);
  if (!what)
    return what.error();
  const auto end = std::min(what->until, c.now);
  auto all = usage_between(*c.parts->storage, what->from, end, c.now);
  if (!all)
    return all.error();
  std::map<std::pair<std::string, experiment_id>, double> by;
  step_means total(what->from, what->step, what->steps), used = total, waiting = total;
  for (const auto& one : *all) {
    const auto slots = static_cast<double>(one.slots);
    used.add(one.began, std::min(one.ended, end), slots);
    if (one.asked != time_point{})
      waiting.add(one.asked, std::min(one.began, end), slots);
    const auto inside = std::min(one.ended, end) - std::max(one.began, what->from);
    by[{one.user, one.experiment}] += std::chrono::duration<double>(inside).count() * slots / 3600;
  }
  std::vector<std::pair<std::pair<std::string, experiment_id>, double>> sums(by.begin(), by.end());
  std::stable_sort(sums.begin(), sums.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (prefers_csv(c.headers.accept)) {
    std::string text = "user,experiment,slot_hours\n";
    for (const auto& [of, hours] : sums)
      text +=
        csv_cell(of.first) + "," + (of.second ? to_string(of.second) : "") + "," + csv_hours(hours) + "\n";
    return csv_file("usage.csv", std::move(text));
  }
  if (auto ok = add_waiting(c, waiting); !ok)
    return ok.error();
  auto changes = c.parts->slots->changes(*c.parts->storage);
  if (!changes)
    return changes.error();
  for (std::size_t i = 0; i < changes->size(); ++i)
    total.add((*changes)[i].at, i + 1 < changes->size() ? (*changes)[i + 1].at : end,
              static_cast<double>((*changes)[i].slots));
  value times = value::array(), list = value::array();
  for (std::size_t i = 0; i < what->steps; ++i)
    times.push_back(to_rfc3339(what->from + what->step * static_cast<std::int64_t>(i)));
  for (const auto& [of, hours] : sums)
    list.push_back({{"user", of.first},
                    {"experiment", of.second ? value(of.second.value) : value()},
                    {"slotHours", hours}});
  return json({{"slots",
                {{"t", std::move(times)},
                 {"total", rounded(total.means())},
                 {"used", rounded(used.means())},
                 {"waiting", rounded(waiting.means())}}},
               {"by", std::move(list)}},
              c.query.has("pretty"));
}

} // namespace

std::vector<route> usage_routes() {
  std::vector<route> rows = {
    {"GET",
     "/troupe/v1/usage",
     {action::view, thing::cluster},
     respond_with(usage),
     "",
     "Usage",
     "Slots over time: how many there were, were used, and were waited for; and slot-hours by user and "
     "experiment. `Accept: text/csv` gives the latter as CSV."},
  };
  rows[0].slow = true; // the route reads the record of every run
  return rows;
}

} // namespace troupe::api
