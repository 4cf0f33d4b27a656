#include "storage/usage.hpp"

#include "storage/projections/projections.hpp"

namespace troupe::storage::projections {
namespace {

std::string key_of(task_id task, run_id run) {
  std::string name;
  keys::add_task(name, task);
  keys::add_number(name, run.value);
  return keys::record(usage_record::tag, name);
}

/// When the run asked for slots: its task's row says that already, because it is folded first.
time_point asked_at(const std::vector<run_row>& runs, run_id run) {
  for (const auto& one : runs)
    if (one.run == run)
      return one.started;
  return {};
}

/// Notes the slots of a task that is not a trial.
void placed_other(const allocation_placed& x, const subject& of, tables& rows) {
  const auto* task = rows.made_tasks.find(of.task);
  if (!task)
    return;
  const auto* workspace = rows.workspaces.find(task->workspace);
  usage_record made;
  made.task = of.task;
  made.run = of.run;
  made.user = task->owner;
  made.pool = x.pool;
  made.began = x.at;
  if (const auto* state = rows.task_states.find(of.task))
    made.asked = asked_at(state->runs, of.run);
  for (const auto& part : x.on)
    made.slots += static_cast<std::int64_t>(part.slots.size());
  made.workspace = workspace ? workspace->name : "Uncategorized";
  rows.records.make(key_of(of.task, of.run)) = pack(made);
}

void on(const allocation_placed& x, const subject& of, tables& rows) {
  if (!of.trial())
    return placed_other(x, of, rows);
  const auto* trial = of.trial() ? rows.trials.find(of.trial()) : nullptr;
  const auto* experiment = trial ? rows.experiments.find(trial->experiment) : nullptr;
  const auto* standing = trial ? rows.experiment_states.find(trial->experiment) : nullptr;
  if (!experiment || !standing)
    return;
  usage_record made;
  made.trial = of.trial();
  made.run = of.run;
  made.experiment = trial->experiment;
  made.user = experiment->owner;
  made.pool = x.pool;
  made.began = x.at;
  if (const auto* state = rows.trial_states.find(of.trial()))
    made.asked = asked_at(state->runs, of.run);
  for (const auto& part : x.on)
    made.slots += static_cast<std::int64_t>(part.slots.size());
  const auto* project = rows.projects.find(standing->project);
  const auto* workspace = project ? rows.workspaces.find(project->workspace) : nullptr;
  made.workspace = workspace ? workspace->name : "Uncategorized";
  const auto* said = standing->edits ? rows.described.find(trial->experiment) : nullptr;
  made.labels = said ? said->labels : experiment->labels;
  rows.records.make(key_of(made.trial, made.run)) = pack(made);
}

void on(const run_ended& x, const subject& of, tables& rows) {
  auto* bytes = of.task ? rows.records.change(key_of(of.task, x.run)) : nullptr;
  auto known = bytes ? unpack<usage_record>(*bytes) : result<usage_record>(error{errc::not_found, ""});
  if (!known)
    return;
  known->ended = x.at;
  *bytes = pack(*known);
}

template <class Other>
void on(const Other&, const subject&, tables&) {}

} // namespace

void fold_usage(const fact& x, const subject& of, tables& rows) {
  std::visit([&](const auto& one) { on(one, of, rows); }, x);
}

} // namespace troupe::storage::projections
