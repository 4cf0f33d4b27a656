#include "storage/rollback.hpp"

#include <algorithm>

namespace troupe::storage {

bool has_step(std::string_view group, std::int64_t steps) {
  return group == "training" || group == "validation" ||
         (steps > 0 && group != "system" && group != "profiler");
}

bool step_limits::operator()(run_id run, std::int64_t steps) const {
  const auto at = std::lower_bound(limits_.begin(), limits_.end(), run,
                                   [](const auto& one, run_id wanted) { return one.first < wanted; });
  return at != limits_.end() && steps > at->second;
}

std::int64_t rollback::floor::limit(std::string_view group) const {
  const auto at = of_group.find(group);
  return std::min({from, lowest, at == of_group.end() ? none : at->second - 1});
}

void rollback::start(const std::vector<run_row>& runs) {
  for (const auto& run : runs)
    if (run.from_steps > 0) // a run without a checkpoint may still continue what the one before it did
      floors_[run.run].from = run.from_steps;
}

void rollback::report(const metric_row& x) {
  if (!has_step(x.group, x.steps))
    return;
  auto& of_run = floors_[x.run];
  auto& of_group = of_run.of_group.try_emplace(x.group, x.steps).first->second;
  of_group = std::min(of_group, x.steps);
  of_run.lowest = std::min(of_run.lowest, x.steps);
}

bool rollback::archives(const metric_row& x) const {
  return std::any_of(floors_.upper_bound(x.run), floors_.end(), [&](const auto& later) {
    const auto& floor = later.second;
    // The group matters for the lowest step alone, and looking it up costs most.
    return x.steps > std::min(floor.from, floor.lowest) ||
           (x.steps == floor.lowest && x.steps > floor.limit(x.group));
  });
}

step_limits rollback::limits(std::string_view group) const {
  step_limits out;
  std::int64_t least = none;
  for (auto run = floors_.rbegin(); run != floors_.rend(); ++run) {
    least = std::min(least, run->second.limit(group));
    // Up to the run before this one: it is the newest that this run can archive.
    out.limits_.emplace_back(run_id{run->first.value - 1}, least);
  }
  std::reverse(out.limits_.begin(), out.limits_.end());
  return out;
}

result<std::uint64_t> rollback::read(const trial_row& of, std::uint64_t after, const reader& from) {
  constexpr std::size_t batch = 1000;
  start(of.runs);
  for (bool more = of.runs.size() > 1; more;) {
    auto rows = from.metrics(of.id, after, batch);
    if (!rows)
      return rows.error();
    for (const auto& row : *rows)
      if (after = row.row; row.run > of.runs.front().run)
        report(row);
    more = rows->size() == batch;
  }
  return after;
}

result<rollback> rollback_of(const trial_row& of, const reader& from) {
  rollback out;
  auto read = out.read(of, 0, from);
  return read ? result<rollback>(std::move(out)) : read.error();
}

} // namespace troupe::storage
