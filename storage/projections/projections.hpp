#pragma once
// Rows as pure folds of the facts. The constant part of a thing is kept apart from the changing part, so that
// a change does not write a whole configuration again.

#include "model/rows.hpp"
#include "storage/projections/table.hpp"

namespace troupe::storage::projections {

/// The version of the folds' meaning. A database that another version has folded is folded anew when it is
/// opened.
inline constexpr std::uint64_t version = 15;

struct experiment_constant {
  experiment_id id;
  std::string name, owner, context, key, source, metric;
  bool smaller_is_better = true;
  shared_value config{value()};
  time_point created;
  experiment_id parent;
  bool unmanaged = false;
  std::string external_id;
  std::string description; ///< the description and the labels that the configuration gives
  std::vector<std::string> labels;
  TROUPE_PACKED(id, name, owner, context, key, source, metric, smaller_is_better, config, created, parent,
                unmanaged, external_id, description, labels)
};
struct experiment_changing {
  experiment_state state = experiment_state::active;
  std::string why;
  time_point ended;
  double progress = 0;
  std::uint64_t num_trials = 0;
  trial_id best_trial;
  double best_metric = 0;
  double searched = 0; ///< the searcher's progress; `progress` adds that of its running trials
  double running = 0;  ///< sum of the progress of all trials that have not ended
  project_id project{1};
  bool archived = false;
  std::uint64_t edits = 0; ///< how often the experiment was described; above 0, `described` has its row
  std::vector<experiment_resources_changed> resources; ///< what a user has set: none or one
  std::uint64_t resource_edits = 0;                    ///< how often a user has set them
  std::uint32_t continued = 0;                         ///< how often the experiment was continued
  std::vector<trial_id> continued_trials;
  bool unmanaged = false;
  trial_id newest_trial; ///< begins the chain of its trials, newest first: trial_constant::before
  std::uint64_t checkpoint_count = 0; ///< of all trials together
  std::int64_t checkpoint_bytes = 0;
  project_id former; ///< of a deleted experiment: the project in which it was last
  TROUPE_PACKED(state, why, ended, progress, num_trials, best_trial, best_metric, searched, running, project,
                archived, edits, resources, resource_edits, continued, continued_trials, unmanaged,
                newest_trial, checkpoint_count, checkpoint_bytes, former)
};
struct trial_constant {
  trial_id id;
  experiment_id experiment;
  std::string key;
  value hparams;
  std::uint32_t seed = 0;
  time_point created;
  trial_id before; ///< the trial that the experiment made before this one; 0: none
  TROUPE_PACKED(id, experiment, key, hparams, seed, created, before)
};
struct trial_changing {
  trial_state state = trial_state::queued;
  int restarts = 0;
  time_point ended;
  std::string why;
  std::vector<run_row> runs;
  validation_row best, latest;
  std::string latest_checkpoint;
  std::uint64_t checkpoint_count = 0;
  std::uint64_t newest_recorded =
    0; ///< 1 + the number of the fact that first recorded its newest checkpoint; 0: it has none
  std::int64_t checkpoint_bytes = 0;
  std::vector<trial_stop_decided> stopped;
  value metadata;
  double progress = 0;
  std::vector<run_id> continued;
  std::string log_policy;
  time_point heard;
  std::uint64_t number = 0;
  bool archived = false;
  deletion_step deletion = deletion_step::none;
  std::string stuck;
  trial_state ends_as = trial_state::completed;
  bool killed = false;
  TROUPE_PACKED(state, restarts, ended, why, runs, best, latest, latest_checkpoint, checkpoint_count,
                newest_recorded, checkpoint_bytes, stopped, metadata, progress, continued, log_policy, heard,
                number, archived, deletion, stuck, ends_as, killed)
};

/// What a trial's best and latest validations were before one of its validations: they are the best and the
/// latest again once a later run trains the steps of that one again.
struct former_validations {
  validation_row latest, best;
  TROUPE_PACKED(latest, best)
};

/// The changing part of a task that is not a trial; its task_created holds the rest.
struct task_changing {
  task_state state = task_state::active;
  std::string why;
  time_point ended;
  int exit_code = -1;
  run_id ready_run; ///< the newest run whose service has answered
  time_point active;
  int priority = 0;
  std::vector<run_row> runs;
  std::string log_policy;
  std::vector<unix_account> runs_as;
  TROUPE_PACKED(state, why, ended, exit_code, ready_run, active, priority, runs, log_policy, runs_as)
};

/// Where a checkpoint's row stands: the row is the fact that recorded it. Checkpoints of a trial are chained,
/// newest first, by the numbers of the facts that first recorded them. So each checkpoint takes one row, and
/// its fact is read in any case.
struct checkpoint_entry {
  trial_id trial;
  experiment_id experiment;
  std::uint64_t number = 0; ///< number of the fact in the trial's stream
  std::int64_t bytes = 0;
  std::uint64_t changed = 0; ///< 1 + the number of the last fact that changed its files; 0: none did
  bool deleted = false;
  std::uint64_t before = 0;    ///< newest_recorded of the trial before this checkpoint was recorded
  std::uint64_t described = 0; ///< 1 + the number of the last fact that described it; 0: none did
  TROUPE_PACKED(trial, experiment, number, bytes, changed, deleted, before, described)
};

/// `described` is null where nobody has described the experiment.
experiment_row join(experiment_constant constant, experiment_changing changing,
                    const experiment_described* described);
trial_row join(trial_constant constant, trial_changing changing);
experiment_standing standing_of(experiment_id id, const experiment_changing& changing);
task_detail join(task_created made, task_changing changing);

struct project_numbers {
  std::uint64_t newest = 0; ///< the greatest number that the project has given to a trial
  TROUPE_PACKED(newest)
};

/// Which stream a fact stands in, and where.
struct subject {
  experiment_id experiment;
  task_id task;
  run_id run;               ///< the run, where the stream is an allocation's; 0 in others
  std::uint64_t number = 0; ///< number of the fact in its stream
  trial_id trial() const { return task.trial(); }
};
/// Reads "experiment/7", "trial/12", "task/UUID" or "allocation/12.3"; any other name gives zeros. The caller
/// sets the number.
subject subject_of(std::string_view entity);

/// Every row, and the index entries that lead to them.
struct tables {
  explicit tables(row_source from);
  tables(const tables&) = delete;

  void write(batch& into); ///< writes all changes
  void settle();           ///< to be called when the folded facts are durable
  void forget(std::size_t limit);
  std::optional<error> fault() const;

  row_source source;
  table<experiment_id, experiment_constant> experiments;
  table<experiment_id, experiment_changing> experiment_states;
  table<trial_id, trial_constant> trials;
  table<trial_id, trial_changing> trial_states;
  table<std::string, former_validations> former; ///< by the numbers of the trial and of the report
  table<std::string, checkpoint_entry> checkpoints;
  table<task_id, task_row> tasks;
  table<task_id, task_created> made_tasks; ///< only tasks that are not trials
  table<task_id, task_changing> task_states;
  table<user_id, user_changed> users;
  table<std::string, token_changed> tokens;
  table<std::string, configuration_changed> configurations; ///< one row, without a name
  table<std::string, setting_changed> settings;
  table<workspace_id, workspace_changed> workspaces;
  table<project_id, project_changed> projects;
  table<project_id, project_numbers> numbered;
  table<std::string, template_changed> templates;
  table<model_id, model_changed> models;
  table<std::string, model_version_changed> versions; ///< by version_key
  table<experiment_id, experiment_described> described;
  table<std::string, std::string> records;                  ///< encoded facts by the key of keys::record
  std::vector<std::pair<std::string, std::string>> entries; ///< key and data of unwritten index entries
};

// There is one fold for each type of row. A fact about something that has no row changes nothing.
void fold_experiment(const fact& x, const subject& of, tables& rows);
void fold_trial(const fact& x, const subject& of, tables& rows);
void fold_checkpoint(const fact& x, const subject& of, tables& rows);
void fold_task(const fact& x, const subject& of, tables& rows);
void fold_catalogue(const fact& x, tables& rows);
void fold_places(const fact& x, tables& rows);
/// Folds the numbers of trials in projects, and what becomes of single trials (local_numbers.cpp).
void fold_local_numbers(const fact& x, const subject& of, tables& rows);
void fold_records(const fact& x, tables& rows);
/// Folds the slots that each run had, and what was true when it got them (storage/usage.hpp). A deletion
/// leaves these records.
void fold_usage(const fact& x, const subject& of, tables& rows);
/// Empties the rows of a deleted thing: an empty row begins with no id, and readers pass over it.
void fold_deletion(const fact& x, tables& rows);

inline void fold(const fact& x, const subject& of, tables& rows) {
  fold_experiment(x, of, rows);
  fold_checkpoint(x, of, rows); // before the trial: it counts new checkpoints
  fold_trial(x, of, rows);
  fold_task(x, of, rows);
  fold_catalogue(x, rows);
  fold_local_numbers(x, of, rows); // before the places: a move needs the old project here
  fold_places(x, rows);
  fold_records(x, rows);
  fold_usage(x, of, rows);
  fold_deletion(x, rows);
}

/// The value of `key` in the searcher's section of the configuration, or null. Copies nothing, because folds
/// run for every fact.
const value* searcher_setting(const experiment_constant& of, const char* key);

/// Whether `metric` is better than the best so far; NaN never is.
bool better(double metric, double best, bool none_yet, bool smaller_is_better);

/// Keeps the best of an experiment that of its trials, after the best of the trial `changed` was set or taken
/// back. Reads the rows of all its trials where it took back the best of them all.
void choose_best(experiment_id id, trial_id changed, tables& rows);

} // namespace troupe::storage::projections
