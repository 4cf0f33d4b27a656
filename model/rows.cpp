#include "model/rows.hpp"

#include <algorithm>

namespace troupe {

experiment_standing standing_of(const experiment_row& row) {
  return {row.id,
          row.state,
          row.ended,
          row.progress,
          row.num_trials,
          row.best_trial,
          row.best_metric,
          row.project,
          row.archived,
          row.edits,
          row.unmanaged,
          row.checkpoint_count,
          row.checkpoint_bytes};
}

workspace_changed uncategorized_workspace() {
  workspace_changed x;
  x.by = "troupe";
  x.id = {1};
  x.name = "Uncategorized";
  x.owner = "admin";
  return x;
}

project_changed uncategorized_project() {
  project_changed x;
  x.by = "troupe";
  x.id = {1};
  x.workspace = {1};
  x.name = "Uncategorized";
  x.owner = "admin";
  return x;
}

double preempted_slot_seconds(const run_row& run, time_point now) {
  if (run.preempted.empty())
    return 0;
  std::size_t slots = 0;
  for (const auto& part : run.on)
    slots += part.slots.size();
  const auto from = run.saved != time_point{} ? run.saved : run.placed;
  const auto to = run.ended != time_point{} ? run.ended : now;
  const auto lost = std::chrono::duration<double>(std::max(to - from, duration{0}));
  return static_cast<double>(slots) * lost.count();
}

std::uint32_t continuation_of(const std::vector<run_id>& continued, run_id run) {
  return static_cast<std::uint32_t>(
    std::count_if(continued.begin(), continued.end(), [&](const run_id& before) { return before < run; }));
}

bool archived(const metric_row& report, const std::vector<run_row>& runs) {
  return std::any_of(runs.begin(), runs.end(),
                     [&](const run_row& r) { return r.run > report.run && report.steps > r.from_steps; });
}

} // namespace troupe
