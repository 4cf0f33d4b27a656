#include "model/rows.hpp"

#include <algorithm>

namespace troupe {

experiment_standing standing_of(const experiment_row& row) {
  return {row.id,         row.state,       row.ended,   row.progress, row.num_trials,
          row.best_trial, row.best_metric, row.project, row.archived, row.edits};
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

bool archived(const metric_row& report, const std::vector<run_row>& runs) {
  return std::any_of(runs.begin(), runs.end(),
                     [&](const run_row& r) { return r.run > report.run && report.steps > r.from_steps; });
}

} // namespace troupe
