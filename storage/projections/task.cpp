// Folds facts to what every task has: its owner, and its open run.

#include "model/names.hpp"
#include "storage/projections/projections.hpp"

#include <algorithm>

namespace troupe::storage::projections {
namespace {

std::string workspace_of(const value& config) {
  if (!config.is_object())
    return {};
  const auto found = config.find("workspace");
  return found != config.end() && found->is_string() ? found->get<std::string>() : std::string();
}

void on(const search_stepped& x, const subject& of, tables& rows) {
  if (x.created.empty())
    return;
  const auto* experiment = rows.experiments.find(of.experiment);
  for (const auto& created : x.created) {
    auto& row = rows.tasks.make(created.trial);
    row.id = created.trial;
    row.experiment = of.experiment;
    row.owner = experiment ? experiment->owner : std::string();
    row.workspace = experiment ? workspace_of(experiment->config) : std::string();
    row.created = x.at;
  }
}

void on(const task_created& x, const subject&, tables& rows) {
  const auto* workspace = rows.workspaces.find(x.workspace);
  auto& row = rows.tasks.make(x.id);
  row.id = x.id;
  if (x.id.kind() == task_kind::checkpoint_gc) { // its token then changes the checkpoints of that experiment
    task_detail whole;
    whole.made = x;
    row.experiment = collected_experiment(whole);
  }
  row.owner = x.owner;
  row.workspace = workspace ? workspace->name : "Uncategorized";
  row.created = x.at;
  rows.made_tasks.make(x.id) = x;
  rows.task_states.make(x.id);
}

run_row* find_run(task_changing* of, run_id run) {
  const auto is = [&](const run_row& one) { return one.run == run; };
  const auto at = of ? std::find_if(of->runs.rbegin(), of->runs.rend(), is) : decltype(of->runs.rbegin())();
  return !of || at == of->runs.rend() ? nullptr : &*at;
}

void on(const run_started& x, const subject& of, tables& rows) {
  auto* row = rows.tasks.change(of.task);
  if (!row || x.run <= row->run)
    return;
  row->run = x.run;
  row->open = true;
  if (auto* state = rows.task_states.change(of.task)) {
    auto& run = state->runs.emplace_back();
    run.run = x.run;
    run.started = x.at;
    state->state = task_state::active;
  }
}

void on(const run_ended& x, const subject& of, tables& rows) {
  if (auto* row = rows.tasks.change(of.task); row && row->run == x.run)
    row->open = false;
  auto* state = rows.task_states.change(of.task);
  auto* run = find_run(state, x.run);
  if (!run)
    return;
  run->ended = x.at;
  run->why = x.why;
  run->detail = x.detail;
  if (state->state == task_state::stopping_paused)
    state->state = task_state::paused;
}

void on(const allocation_placed& x, const subject& of, tables& rows) {
  auto* run = of.task.is_trial() ? nullptr : find_run(rows.task_states.change(of.task), of.run);
  if (!run)
    return;
  run->on = x.on;
  run->pool = x.pool;
  run->backfilled = x.backfilled;
  run->placed = x.on.empty() ? time_point{} : x.at;
}

void on(const allocation_preempted& x, const subject& of, tables& rows) {
  if (auto* run = of.task.is_trial() ? nullptr : find_run(rows.task_states.change(of.task), of.run))
    run->preempted = x.reason;
}

void on(const task_ready& x, const subject& of, tables& rows) {
  if (auto* state = rows.task_states.change(of.task)) {
    state->ready_run = x.run;
    state->active = x.at;
    state->runs_as = x.runs_as;
  }
}

void on(const task_active& x, const subject& of, tables& rows) {
  if (auto* state = rows.task_states.change(of.task))
    state->active = x.at;
}

void on(const task_paused& x, const subject& of, tables& rows) {
  const auto* row = rows.tasks.find(of.task);
  auto* state = row ? rows.task_states.change(of.task) : nullptr;
  if (!state || terminal(state->state) || state->state == task_state::stopping_canceled)
    return;
  state->state = !x.paused   ? task_state::active
                 : row->open ? task_state::stopping_paused
                             : task_state::paused;
}

void on(const task_stop_ordered& x, const subject& of, tables& rows) {
  auto* state = rows.task_states.change(of.task);
  if (!state || terminal(state->state))
    return;
  state->state = task_state::stopping_canceled;
  state->why = x.why;
}

void on(const task_prioritized& x, const subject& of, tables& rows) {
  if (auto* state = rows.task_states.change(of.task))
    state->priority = x.priority;
}

void on(const task_ended& x, const subject& of, tables& rows) {
  if (auto* row = rows.tasks.change(of.task))
    row->ended = x.at;
  auto* state = rows.task_states.change(of.task);
  if (!state)
    return;
  state->state = x.state;
  state->why = x.why;
  state->ended = x.at;
  state->exit_code = x.exit_code;
}

void on(const log_policy_matched& x, const subject& of, tables& rows) {
  if (x.policy.empty())
    return;
  if (auto* state = rows.task_states.change(of.task)) // the state of a trial stands in the trial's own row
    state->log_policy = x.policy;
}

/// A collection of checkpoints is a task with one run, which holds no slots.
void on(const checkpoint_files_removed& x, const subject&, tables& rows) {
  if (x.step == deletion_step::ordered) {
    const auto* workspace = rows.workspaces.find(x.workspace);
    auto& row = rows.tasks.make(x.id);
    row.id = x.id;
    row.experiment = x.experiment;
    row.owner = x.owner;
    row.workspace = workspace ? workspace->name : "Uncategorized";
    row.created = x.at;
    row.run = {1};
    row.open = true;
    auto& made = rows.made_tasks.make(x.id);
    made.at = x.at;
    made.id = x.id;
    made.owner = x.owner;
    made.name = people_name(x.experiment, x.id);
    made.workspace = x.workspace;
    made.config = value::object();
    made.pool = x.pool;
    made.details = {{"experiment", x.experiment.value}, {"cause", x.cause}, {"by", x.by}};
    auto& run = rows.task_states.make(x.id).runs.emplace_back();
    run.run = {1};
    run.started = run.placed = x.at; // in the master itself, at once
    return;
  }
  if (auto* row = rows.tasks.change(x.id)) {
    row->open = false;
    row->ended = x.at;
  }
  auto* state = rows.task_states.change(x.id);
  if (!state || state->runs.empty())
    return;
  const bool done = x.step == deletion_step::done;
  state->state = done ? task_state::completed : task_state::error;
  state->why = x.why;
  state->ended = x.at;
  state->exit_code = done ? 0 : 1;
  auto& run = state->runs.back();
  run.ended = x.at;
  run.why = done ? end::completed : end::failed;
  run.detail = x.why;
}

void on(const trial_ended& x, const subject& of, tables& rows) {
  if (auto* row = rows.tasks.change(of.task))
    row->ended = x.at;
}

void on(const trial_heard&, const subject& of, tables& rows) {
  if (const auto* row = rows.tasks.find(of.task); row && row->ended != time_point{})
    rows.tasks.change(of.task)->ended = {};
}

void on(const trial_continued& x, const subject& of, tables& rows) {
  auto* row = rows.tasks.change(of.task);
  if (!row)
    return;
  row->ended = {};
  row->continued.push_back(x.run);
}

template <class Other>
void on(const Other&, const subject&, tables&) {}

} // namespace

void fold_task(const fact& x, const subject& of, tables& rows) {
  std::visit([&](const auto& one) { on(one, of, rows); }, x);
}

} // namespace troupe::storage::projections
