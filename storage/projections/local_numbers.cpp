// Folds facts to the numbers of trials in their projects, to the indexes by which a name such as CAT-12 is
// found, and to what becomes of single trials. No fact holds a number: numbers follow from the order of the
// facts, which a journal keeps, so each folding gives the same ones.

#include "storage/projections/projections.hpp"

#include <algorithm>

namespace troupe::storage::projections {
namespace {

void give_number(trial_id trial, project_id project, tables& rows) {
  auto* row = rows.trial_states.change(trial);
  if (!row)
    return;
  row->number = ++rows.numbered.make(project).newest;
  rows.entries.emplace_back(keys::tagged('I', project.value, row->number), keys::one(trial.value));
}

/// The trials of an experiment that are not deleted, oldest first.
std::vector<trial_id> numbered_trials(const experiment_changing& experiment, tables& rows) {
  std::vector<trial_id> all;
  for (auto id = experiment.newest_trial; id;) {
    const auto* row = rows.trials.find(id);
    if (!row)
      break;
    if (row->id)
      all.push_back(id);
    id = row->before;
  }
  std::reverse(all.begin(), all.end());
  return all;
}

void note(const search_stepped& x, const subject& of, tables& rows) {
  if (x.created.empty())
    return;
  auto* experiment = rows.experiment_states.change(of.experiment);
  if (!experiment)
    return;
  for (const auto& made : x.created) {
    auto* constant = rows.trials.change(made.trial);
    if (!constant)
      continue;
    constant->before = std::exchange(experiment->newest_trial, made.trial);
    give_number(made.trial, experiment->project, rows);
  }
}

void note(const experiment_moved& x, const subject&, tables& rows) {
  const auto* experiment = rows.experiment_states.find(x.id);
  if (!experiment || experiment->project == x.project)
    return;
  for (const auto trial : numbered_trials(*experiment, rows))
    give_number(trial, x.project, rows);
}

/// A name with the project's old key still leads to it: the old entry of the index stays.
void note(const project_changed& x, const subject&, tables& rows) {
  if (!x.key.empty() && !x.deleted)
    rows.entries.emplace_back(keys::tagged('F', x.key), keys::one(x.id.value));
}

void note(const trial_archived& x, const subject&, tables& rows) {
  const auto* constant = rows.trials.find(x.trial);
  if (auto* row = constant && constant->id ? rows.trial_states.change(x.trial) : nullptr)
    row->archived = x.archived;
}

/// The row of a deleted trial stays, as that of an experiment does (fold_deletion), and keeps its place in
/// the chain.
void note(const trial_deleted& x, const subject&, tables& rows) {
  auto* constant = rows.trials.change(x.trial);
  auto* state = constant && constant->id ? rows.trial_states.change(x.trial) : nullptr;
  if (!state)
    return;
  if (x.step != deletion_step::done) {
    state->deletion = x.step;
    state->stuck = x.why;
    return;
  }
  const auto before = constant->before;
  const auto checkpoints = state->checkpoint_count;
  const auto bytes = state->checkpoint_bytes;
  *constant = {};
  constant->before = before;
  *state = {};
  if (auto* task = rows.tasks.change(x.trial))
    *task = {};
  auto* experiment = rows.experiment_states.change(x.experiment);
  if (!experiment)
    return;
  experiment->num_trials -= std::min<std::uint64_t>(experiment->num_trials, 1);
  experiment->checkpoint_count -= std::min<std::uint64_t>(experiment->checkpoint_count, checkpoints);
  experiment->checkpoint_bytes -= bytes;
  choose_best(x.experiment, x.trial, rows);
}

template <class Other>
void note(const Other&, const subject&, tables&) {}

} // namespace

void fold_local_numbers(const fact& x, const subject& of, tables& rows) {
  std::visit([&](const auto& one) { note(one, of, rows); }, x);
}

} // namespace troupe::storage::projections
