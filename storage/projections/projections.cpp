#include "storage/projections/projections.hpp"

#include "model/described.hpp"

#include <cmath>
#include <cstdio>

namespace troupe::storage::projections {

experiment_standing standing_of(experiment_id id, const experiment_changing& s) {
  return {id,
          s.state,
          s.ended,
          s.progress,
          s.num_trials,
          s.best_trial,
          s.best_metric,
          s.project,
          s.archived,
          s.edits + s.resource_edits,
          s.unmanaged,
          s.checkpoint_count,
          s.checkpoint_bytes};
}

experiment_row join(experiment_constant c, experiment_changing s, const experiment_described* described) {
  experiment_row row;
  row.id = c.id;
  row.state = s.state;
  row.name = std::move(c.name);
  row.owner = std::move(c.owner);
  row.context = std::move(c.context);
  row.key = std::move(c.key);
  row.source = std::move(c.source);
  row.why = std::move(s.why);
  row.config = std::move(c.config);
  row.created = c.created;
  row.ended = s.ended;
  row.progress = s.progress;
  row.num_trials = s.num_trials;
  row.metric = std::move(c.metric);
  row.smaller_is_better = c.smaller_is_better;
  row.best_trial = s.best_trial;
  row.best_metric = s.best_metric;
  row.parent = c.parent;
  row.project = s.project;
  row.archived = s.archived;
  row.edits = s.edits + s.resource_edits;
  row.resources = std::move(s.resources);
  row.continued = s.continued;
  row.continued_trials = std::move(s.continued_trials);
  row.unmanaged = c.unmanaged;
  row.external_id = std::move(c.external_id);
  row.checkpoint_count = s.checkpoint_count;
  row.checkpoint_bytes = s.checkpoint_bytes;
  if (described) {
    lay_over(row, *described);
    return row;
  }
  row.description = std::move(c.description);
  row.labels = std::move(c.labels);
  return row;
}

trial_row join(trial_constant c, trial_changing s) {
  trial_row row;
  row.id = c.id;
  row.experiment = c.experiment;
  row.key = std::move(c.key);
  row.state = s.state;
  row.hparams = std::move(c.hparams);
  row.seed = c.seed;
  row.restarts = s.restarts;
  row.created = c.created;
  row.ended = s.ended;
  row.why = std::move(s.why);
  row.runs = std::move(s.runs);
  row.best = std::move(s.best);
  row.latest = std::move(s.latest);
  row.latest_checkpoint = std::move(s.latest_checkpoint);
  row.checkpoint_count = s.checkpoint_count;
  row.checkpoint_bytes = s.checkpoint_bytes;
  row.stopped = std::move(s.stopped);
  row.metadata = std::move(s.metadata);
  row.progress = s.progress;
  row.continued = std::move(s.continued);
  row.log_policy = std::move(s.log_policy);
  row.heard = s.heard;
  row.number = s.number;
  row.archived = s.archived;
  row.deletion = s.deletion;
  row.stuck = std::move(s.stuck);
  row.ends_as = s.ends_as;
  row.killed = s.killed;
  return row;
}

task_detail join(task_created made, task_changing changing) {
  const auto newest = changing.runs.empty() ? run_id{} : changing.runs.back().run;
  task_detail row;
  row.made = std::move(made);
  row.state = changing.state;
  row.why = std::move(changing.why);
  row.ended = changing.ended;
  row.exit_code = changing.exit_code;
  row.ready = newest && changing.ready_run == newest;
  row.active = changing.active;
  row.priority = changing.priority;
  row.runs = std::move(changing.runs);
  row.log_policy = std::move(changing.log_policy);
  row.runs_as = std::move(changing.runs_as);
  return row;
}

const value* searcher_setting(const experiment_constant& of, const char* key) {
  if (!of.config->is_object())
    return nullptr;
  auto searcher = of.config->find("searcher");
  if (searcher == of.config->end() || !searcher->is_object())
    return nullptr;
  auto found = searcher->find(key);
  return found == searcher->end() ? nullptr : &*found;
}

subject subject_of(std::string_view entity) {
  auto slash = entity.find('/');
  if (slash == std::string_view::npos)
    return {};
  auto kind = entity.substr(0, slash), name = entity.substr(slash + 1);
  if (kind == "experiment")
    return {parse_id<experiment_id>(name), {}, {}};
  if (kind == "trial" || kind == "task")
    return {{}, parse_task(name), {}};
  if (kind == "allocation") {
    auto id = parse_allocation(name);
    return {{}, id.task, id.run};
  }
  return {};
}

bool better(double metric, double best, bool none_yet, bool smaller_is_better) {
  if (std::isnan(metric))
    return false;
  return none_yet || (smaller_is_better ? metric < best : metric > best);
}

tables::tables(row_source from)
    : source(std::move(from)), experiments('C', source), experiment_states('E', source), trials('H', source),
      trial_states('T', source), former('G', source), checkpoints('P', source), tasks('A', source),
      made_tasks('B', source), task_states('Y', source), users('U', source), tokens('R', source),
      configurations('O', source), settings('S', source), workspaces('W', source), projects('J', source),
      numbered('N', source), templates('Q', source), models('M', source), versions('V', source),
      described('D', source), records('Z', source) {}

std::string version_key(model_id model, std::uint64_t version) {
  char key[34];
  std::snprintf(key, sizeof key, "%016llx/%016llx", static_cast<unsigned long long>(model.value),
                static_cast<unsigned long long>(version));
  return key;
}

void tables::write(batch& into) {
  experiments.write(into);
  experiment_states.write(into);
  trials.write(into);
  trial_states.write(into);
  former.write(into);
  checkpoints.write(into);
  tasks.write(into);
  made_tasks.write(into);
  task_states.write(into);
  users.write(into);
  tokens.write(into);
  configurations.write(into);
  settings.write(into);
  workspaces.write(into);
  projects.write(into);
  numbered.write(into);
  templates.write(into);
  models.write(into);
  versions.write(into);
  described.write(into);
  records.write(into);
  for (const auto& [key, data] : entries)
    into.put(family::rows, key, data);
}

void tables::settle() {
  experiments.settle();
  experiment_states.settle();
  trials.settle();
  trial_states.settle();
  former.settle();
  checkpoints.settle();
  tasks.settle();
  made_tasks.settle();
  task_states.settle();
  users.settle();
  tokens.settle();
  configurations.settle();
  settings.settle();
  workspaces.settle();
  projects.settle();
  numbered.settle();
  templates.settle();
  models.settle();
  versions.settle();
  described.settle();
  records.settle();
  entries.clear();
}

void tables::forget(std::size_t limit) {
  experiments.forget(limit);
  experiment_states.forget(limit);
  trials.forget(limit);
  trial_states.forget(limit);
  former.forget(limit);
  checkpoints.forget(limit);
  tasks.forget(limit);
  made_tasks.forget(limit);
  task_states.forget(limit);
  users.forget(limit);
  tokens.forget(limit);
  configurations.forget(limit);
  settings.forget(limit);
  records.forget(limit);
}

std::optional<error> tables::fault() const {
  for (const auto* f :
       {&experiments.fault(), &experiment_states.fault(), &trials.fault(), &trial_states.fault(),
        &former.fault(), &checkpoints.fault(), &tasks.fault(), &made_tasks.fault(), &task_states.fault(),
        &users.fault(), &tokens.fault(), &configurations.fault(), &settings.fault(), &numbered.fault()})
    if (*f)
      return *f;
  return std::nullopt;
}

} // namespace troupe::storage::projections
