// Folds facts to the rows of their trials, and to the index of an experiment's trials.
//
//   queued --first allocation placed--> running --> stopping --> completed, canceled, error
//      ^------ paused <------------------'  (activated: running again once it was placed before)

#include "storage/projections/projections.hpp"

#include <algorithm>
#include <limits>

namespace troupe::storage::projections {
namespace {

run_row* find_run(trial_changing& row, run_id run) {
  auto at = std::find_if(row.runs.rbegin(), row.runs.rend(), [&](const run_row& r) { return r.run == run; });
  return at == row.runs.rend() ? nullptr : &*at;
}

bool past_pausing(trial_state s) { return s == trial_state::stopping || terminal(s); }

void create(const search_stepped& step, const trial_created& x, const subject& of, tables& rows) {
  rows.trials.make(x.trial) = {x.trial, of.experiment, x.key, x.hparams, x.seed, step.at};
  rows.trial_states.make(x.trial);
  rows.entries.emplace_back(keys::tagged('X', of.experiment.value, x.trial.value), "");
}

/// The value in a report of the metric that the searcher's configuration names.
std::optional<double> named_metric(const experiment_constant& experiment, const char* key,
                                   const value& metrics) {
  const auto* named = searcher_setting(experiment, key);
  const auto* name = named ? named->get_ptr<const std::string*>() : nullptr;
  if (!name || !metrics.is_object())
    return std::nullopt;
  auto found = metrics.find(*name);
  return found == metrics.end() ? std::nullopt : number_in(*found);
}

/// Whether a later run began below the validation.
bool is_archived(const validation_row& x, const trial_changing& of) {
  metric_row report;
  report.steps = x.steps;
  report.run = x.run;
  return archived(report, of.runs);
}

/// Takes back validations that are archived now. Reports of training are not in facts: what only they archive
/// stays until the run's first validation.
template <class Archived>
void roll_back(trial_changing& row, trial_id trial, tables& rows, const Archived& archived) {
  const auto step_back = [&](validation_row& to, validation_row former_validations::*which) {
    while (to.row != 0 && archived(to)) {
      const auto* before = rows.former.find(keys::two(trial.value, to.row));
      to = before ? before->*which : validation_row{};
    }
  };
  step_back(row.latest, &former_validations::latest);
  step_back(row.best, &former_validations::best);
}

void validated(const search_stepped& x, const subject& of, tables& rows) {
  auto* row = rows.trial_states.change(x.trial);
  const auto* experiment = rows.experiments.find(of.experiment);
  if (!row || !experiment)
    return;
  constexpr auto none = std::numeric_limits<double>::quiet_NaN();
  const auto metric = named_metric(*experiment, "metric", x.metrics);
  const auto by = x.run ? x.run : row->runs.empty() ? run_id{} : row->runs.back().run;
  if (is_archived({.steps = x.steps, .run = by}, *row))
    return; // the search decided on it after a later run had begun below it
  // Within a run, a later value of the same step takes the place of the earlier one.
  roll_back(*row, x.trial, rows, [&](const validation_row& known) {
    return known.run == by ? metric && known.steps == x.steps && known.row < x.row
                           : known.run < by && known.steps >= x.steps;
  });
  if (row->latest.row != 0 && row->latest.row < x.row)
    rows.former.make(keys::two(x.trial.value, x.row)) = {row->latest, row->best};
  row->latest = {x.row,
                 x.steps,
                 metric.value_or(none),
                 x.at,
                 by,
                 named_metric(*experiment, "time_metric", x.metrics).value_or(none),
                 metric.has_value()};
  if (metric && better(*metric, row->best.metric, !row->best.row, experiment->smaller_is_better))
    row->best = row->latest;
  choose_best(of.experiment, x.trial, rows);
}

void on(const search_stepped& x, const subject& of, tables& rows) {
  for (const auto& created : x.created)
    create(x, created, of, rows);
  if (x.input == search_input::validated)
    validated(x, of, rows);
  for (auto id : x.paused)
    if (auto* row = rows.trial_states.change(id); row && !past_pausing(row->state))
      row->why = "paused by the search";
  for (const auto& one : x.resumed)
    if (auto* row = rows.trial_states.change(one.trial); row && !past_pausing(row->state))
      row->why.clear();
  for (const auto& one : x.perturbed)
    if (auto* row = rows.trials.change(one.trial))
      row->hparams = one.hparams;
  for (const auto& decided : x.stopped)
    if (auto* row = rows.trial_states.change(decided.trial); row && row->stopped.empty())
      row->stopped.push_back(decided);
}

void on(const experiment_resumed& x, const subject&, tables& rows) {
  for (const auto id : x.trials)
    if (auto* row = x.hparams.is_null() ? nullptr : rows.trials.change(id))
      row->hparams = x.hparams;
}

void on(const trial_activated&, const subject& of, tables& rows) {
  auto* row = rows.trial_states.change(of.trial());
  if (!row || row->state != trial_state::paused)
    return;
  const auto* newest = row->runs.empty() ? nullptr : &row->runs.back();
  const bool placed = newest && newest->ended == time_point{} && !newest->on.empty();
  row->state = placed ? trial_state::running : trial_state::queued;
}

void on(const trial_paused&, const subject& of, tables& rows) {
  if (auto* row = rows.trial_states.change(of.trial()); row && !past_pausing(row->state))
    row->state = trial_state::paused;
}

void on(const trial_stop_ordered& x, const subject& of, tables& rows) {
  auto* row = rows.trial_states.change(of.trial());
  if (!row || terminal(row->state))
    return;
  row->state = trial_state::stopping;
  row->ends_as = x.outcome;
  row->killed = x.kill;
  row->why = x.why;
}

void on(const run_started& x, const subject& of, tables& rows) {
  auto* row = rows.trial_states.change(of.trial());
  if (!row || find_run(*row, x.run))
    return;
  auto& run = row->runs.emplace_back();
  run.run = x.run;
  run.started = x.at;
  run.from_checkpoint = x.from_checkpoint;
  run.from_steps = x.from_steps;
  const auto before = row->best.row;
  roll_back(*row, of.trial(), rows, [&](const validation_row& known) { return is_archived(known, *row); });
  if (const auto* trial = row->best.row == before ? nullptr : rows.trials.find(of.trial()))
    choose_best(trial->experiment, of.trial(), rows);
}

void on(const checkpoint_recorded& x, const subject& of, tables& rows) {
  auto* row = rows.trial_states.change(of.trial());
  if (!row)
    return;
  row->latest_checkpoint = x.saved.uuid;
  if (auto* run = find_run(*row, x.run))
    run->saved = x.at;
}

/// A deleted checkpoint is not the latest any more; the index leads to the one before it.
void on(const checkpoint_changed& x, const subject& of, tables& rows) {
  auto* row = rows.trial_states.change(of.trial());
  if (row && x.files.empty() && row->latest_checkpoint == x.uuid)
    row->latest_checkpoint.clear();
}

void on(const trial_metadata_set& x, const subject& of, tables& rows) {
  if (auto* row = rows.trial_states.change(of.trial()))
    row->metadata = x.metadata;
}

void on(const trial_progressed& x, const subject& of, tables& rows) {
  if (auto* row = rows.trial_states.change(of.trial()))
    row->progress = x.progress;
}

void on(const run_ended& x, const subject& of, tables& rows) {
  auto* row = rows.trial_states.change(of.trial());
  auto* run = row ? find_run(*row, x.run) : nullptr;
  if (!run)
    return;
  run->ended = x.at;
  run->why = x.why;
  run->detail = x.detail;
  row->restarts = x.restarts;
  if (row->state == trial_state::running && !run->on.empty()) // unless it ends, it waits for its next run
    row->state = trial_state::queued;
}

void on(const trial_ended& x, const subject& of, tables& rows) {
  auto* row = rows.trial_states.change(of.trial());
  if (!row)
    return;
  row->state = x.state;
  row->why = x.why;
  row->ended = x.at;
}

void on(const trial_continued& x, const subject& of, tables& rows) {
  auto* row = rows.trial_states.change(of.trial());
  if (!row)
    return;
  row->state = trial_state::paused; // its experiment's next fact activates it
  row->restarts = 0;
  row->ended = {};
  row->why.clear();
  row->stopped.clear();
  row->progress = 0;
  row->log_policy.clear();
  row->continued.push_back(x.run);
}

void on(const trial_heard& x, const subject& of, tables& rows) {
  auto* row = rows.trial_states.change(of.trial());
  if (!row)
    return;
  row->state = trial_state::running;
  row->heard = x.at;
  row->ended = {};
  row->why.clear();
}

void on(const log_policy_matched& x, const subject& of, tables& rows) {
  if (auto* row = rows.trial_states.change(of.trial()); row && !x.policy.empty())
    row->log_policy = x.policy;
}

void on(const allocation_placed& x, const subject& of, tables& rows) {
  auto* row = rows.trial_states.change(of.trial());
  auto* run = row ? find_run(*row, of.run) : nullptr;
  if (!run)
    return;
  run->on = x.on;
  run->pool = x.pool;
  run->backfilled = x.backfilled;
  run->placed = x.on.empty() ? time_point{} : x.at;
  if (row->state == trial_state::queued || row->state == trial_state::running)
    row->state = x.on.empty() ? trial_state::queued : trial_state::running;
}

void on(const allocation_preempted& x, const subject& of, tables& rows) {
  auto* row = rows.trial_states.change(of.trial());
  if (auto* run = row ? find_run(*row, of.run) : nullptr)
    run->preempted = x.reason;
}

template <class Other>
void on(const Other&, const subject&, tables&) {}

} // namespace

void fold_trial(const fact& x, const subject& of, tables& rows) {
  std::visit([&](const auto& one) { on(one, of, rows); }, x);
}

} // namespace troupe::storage::projections
