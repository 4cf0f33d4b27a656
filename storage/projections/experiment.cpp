// Folds facts to the row of their experiment, and to the index of submitters' keys.

#include "storage/projections/projections.hpp"

#include "model/described.hpp"

#include <algorithm>
#include <limits>

namespace troupe::storage::projections {
namespace {

/// For searchers that only count trials, the progress of running trials is added here; halving searchers
/// judge by rungs alone.
void add_progress(experiment_id id, experiment_changing& row, tables& rows) {
  row.progress = row.searched;
  const auto* constant = rows.experiments.find(id);
  if (!constant)
    return;
  const auto* named = searcher_setting(*constant, "name");
  const auto* name = named ? named->get_ptr<const std::string*>() : nullptr;
  if (!name || (*name != "single" && *name != "random" && *name != "grid"))
    return;
  auto most = static_cast<double>(std::max<std::uint64_t>(row.num_trials, 1));
  if (const auto* given = searcher_setting(*constant, "max_trials");
      *name == "random" && given && given->is_number())
    most = std::max(1.0, given->get<double>());
  row.progress = std::clamp(row.searched + row.running / most, 0.0, 1.0);
}

/// Copies the settings that are asked for without the whole configuration.
void read_config(experiment_constant& row) {
  if (const auto* metric = searcher_setting(row, "metric"); metric && metric->is_string())
    row.metric = metric->get<std::string>();
  if (const auto* smaller = searcher_setting(row, "smaller_is_better"); smaller && smaller->is_boolean())
    row.smaller_is_better = smaller->get<bool>();
  auto words = words_of(row.config.get());
  row.description = std::move(words.description);
  row.labels = std::move(words.labels);
}

void on(const experiment_created& x, const subject&, tables& rows) {
  auto& row = rows.experiments.make(x.id);
  row = {x.id,     x.name, x.owner,  x.context,   x.key,         x.source, {}, true,
         x.config, x.at,   x.parent, x.unmanaged, x.external_id, {},       {}};
  read_config(row);
  auto& state = rows.experiment_states.make(x.id);
  state.project = x.project;
  state.unmanaged = x.unmanaged;
  if (x.unmanaged)
    state.state = experiment_state::paused; // it runs once a trial of it runs
  if (!x.key.empty())
    rows.entries.emplace_back(keys::tagged('K', x.key), keys::one(x.id.value));
}

void on(const experiment_changed& x, const subject& of, tables& rows) {
  auto* row = rows.experiment_states.change(of.experiment);
  if (!row)
    return;
  row->state = x.state;
  if (!terminal(x.state) || !x.why.empty())
    row->why = x.why; // the reason given for the stop stays when the experiment has stopped
  if (terminal(x.state))
    row->ended = x.at;
  else
    row->ended = {}; // an unmanaged experiment runs again
  if (x.state == experiment_state::completed)
    row->progress = 1;
}

void on(const experiment_resources_changed& x, const subject& of, tables& rows) {
  if (auto* row = rows.experiment_states.change(of.experiment)) {
    row->resources = {x};
    ++row->resource_edits;
  }
}

void on(const search_stepped& x, const subject& of, tables& rows) {
  auto* row = rows.experiment_states.change(of.experiment);
  if (!row)
    return;
  row->num_trials += x.created.size();
  row->searched = x.progress;
  if (x.input == search_input::exited)
    if (const auto* trial = rows.trial_states.find(x.trial))
      row->running = std::max(0.0, row->running - trial->progress);
  add_progress(of.experiment, *row, rows);
}

void on(const trial_progressed& x, const subject& of, tables& rows) {
  const auto* trial = rows.trials.find(of.trial());
  const auto* before = rows.trial_states.find(of.trial());
  auto* row = trial && before ? rows.experiment_states.change(trial->experiment) : nullptr;
  if (!row)
    return;
  row->running = std::max(0.0, row->running + x.progress - before->progress);
  add_progress(trial->experiment, *row, rows);
}

/// Values of another metric cannot be compared with those that come now: no trial has a best validation until
/// it reports the metric that the search has from now on.
void forget_best(experiment_changing& row, tables& rows) {
  row.best_trial = {};
  row.best_metric = 0;
  for (auto next = row.newest_trial; next;) {
    if (auto* state = rows.trial_states.change(next)) {
      state->best = {};
      state->latest.metric = std::numeric_limits<double>::quiet_NaN();
      state->latest.judged = false;
    }
    const auto* link = rows.trials.find(next);
    next = link ? link->before : trial_id{};
  }
}

void on(const experiment_continued& x, const subject&, tables& rows) {
  auto* row = rows.experiment_states.change(x.id);
  if (!row)
    return;
  row->state = experiment_state::active;
  row->why.clear();
  row->ended = {};
  row->progress = row->searched = row->running = 0;
  row->continued = x.number;
  row->continued_trials = x.trials;
  if (x.config.is_null())
    return;
  row->resources.clear(); // the configuration says them anew
  ++row->resource_edits;
  if (auto* constant = rows.experiments.change(x.id)) {
    const auto before = words_of(constant->config.get()), now = words_of(x.config);
    constant->config = x.config;
    if (!now.name.empty() && now.name != before.name)
      constant->name = now.name;
    const auto metric = constant->metric;
    const bool smaller = constant->smaller_is_better;
    read_config(*constant);
    if (constant->metric != metric || constant->smaller_is_better != smaller)
      forget_best(*row, rows);
    if (row->edits)
      if (auto* said = rows.described.change(x.id))
        take_continued(*said, before, now);
  }
}

void on(const experiment_deleted& x, const subject&, tables& rows) {
  auto* row = x.step == deletion_step::done ? nullptr : rows.experiment_states.change(x.id);
  if (!row)
    return; // fold_deletion handles a finished deletion
  row->state = x.step == deletion_step::failed ? experiment_state::delete_failed : experiment_state::deleting;
  row->why = x.why;
}

template <class Other>
void on(const Other&, const subject&, tables&) {}

} // namespace

void choose_best(experiment_id id, trial_id changed, tables& rows) {
  const auto* constant = rows.experiments.find(id);
  const auto* trial = rows.trial_states.find(changed);
  const auto* known = rows.experiment_states.find(id);
  if (!constant || !trial || !known)
    return;
  const auto& now = trial->best;
  const bool smaller = constant->smaller_is_better;
  const bool is_better = now.row != 0 && better(now.metric, known->best_metric, !known->best_trial, smaller);
  const bool is_same = now.row != 0 && now.metric == known->best_metric;
  if (!is_better && (known->best_trial != changed || is_same))
    return;
  auto* row = rows.experiment_states.change(id);
  row->best_trial = is_better ? changed : trial_id{};
  row->best_metric = is_better ? now.metric : 0;
  if (is_better)
    return;
  for (auto next = row->newest_trial; next;) {
    const auto* state = rows.trial_states.find(next);
    // Of equal trials the oldest is the best one, and the chain leads from newer to older ones.
    if (state && state->best.row != 0 &&
        (!row->best_trial || !better(row->best_metric, state->best.metric, false, smaller))) {
      row->best_trial = next;
      row->best_metric = state->best.metric;
    }
    const auto* link = rows.trials.find(next);
    next = link ? link->before : trial_id{};
  }
}

void fold_deletion(const fact& x, tables& rows) {
  const auto* gone = std::get_if<experiment_deleted>(&x);
  if (!gone || gone->step != deletion_step::done)
    return;
  rows.experiments.replace(gone->id, {});
  experiment_changing nothing;
  nothing.project = {};
  if (const auto* before = rows.experiment_states.find(gone->id))
    nothing.former = before->project ? before->project : before->former;
  rows.experiment_states.replace(gone->id, nothing);
  rows.described.replace(gone->id, {});
  for (const auto trial : gone->trials) {
    rows.trials.replace(trial, {});
    rows.trial_states.replace(trial, {});
    rows.tasks.replace(trial, {});
  }
}

void fold_experiment(const fact& x, const subject& of, tables& rows) {
  std::visit([&](const auto& one) { on(one, of, rows); }, x);
}

} // namespace troupe::storage::projections
