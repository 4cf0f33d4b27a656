#include "model/rows.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

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
  x.key = "UNCAT";
  x.owner = "admin";
  return x;
}

std::string to_string(const local_name& name) { return name.key + "-" + std::to_string(name.number); }

std::optional<local_name> parse_local_name(std::string_view text) {
  const auto dash = text.rfind('-');
  if (dash == text.npos || dash == 0 || dash > 64)
    return std::nullopt;
  local_name out;
  for (const unsigned char c : text.substr(0, dash)) {
    if (c >= 0x80 || !std::isalnum(c))
      return std::nullopt;
    out.key += static_cast<char>(std::toupper(c));
  }
  const auto digits = text.substr(dash + 1);
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), out.number);
  if (fault != std::errc{} || end != digits.data() + digits.size() || out.number == 0 ||
      digits.front() == '0')
    return std::nullopt;
  return out;
}

experiment_id collected_experiment(const task_detail& of) {
  if (of.made.id.kind() != task_kind::checkpoint_gc || !of.made.details.is_object())
    return {};
  const auto at = of.made.details.find("experiment");
  return {at != of.made.details.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0};
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

std::string_view state_of(const trial_row& trial) {
  if (trial.state != trial_state::stopping)
    return name(trial.state);
  switch (trial.ends_as) {
  case trial_state::canceled:
    return name(trial.killed ? experiment_state::stopping_killed : experiment_state::stopping_canceled);
  case trial_state::error:
    return name(experiment_state::stopping_error);
  default:
    return name(experiment_state::stopping_completed);
  }
}

bool archived(const metric_row& report, const std::vector<run_row>& runs) {
  return std::any_of(runs.begin(), runs.end(), [&](const run_row& r) {
    return r.run > report.run && r.from_steps > 0 && report.steps > r.from_steps;
  });
}

} // namespace troupe
