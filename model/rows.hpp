#pragma once
// What readers see: rows that the projections keep as pure folds of the facts, written in the same commit.

#include "model/facts.hpp"

#include <limits>
#include <optional>

namespace troupe {

struct experiment_row {
  experiment_id id;
  experiment_state state = experiment_state::active;
  std::string name, owner, context, key, source, why;
  shared_value config{value()}; ///< complete; null if it is not known
  time_point created, ended;    ///< `ended` is 0 before the end
  double progress = 0;          ///< 0..1
  std::uint64_t num_trials = 0;
  std::string metric; ///< the searcher's metric
  bool smaller_is_better = true;
  trial_id best_trial;    ///< 0: there is none yet
  double best_metric = 0; ///< as reported, sign unchanged
  experiment_id parent;   ///< the experiment that this one was forked from; 0: none
  project_id project{1};
  bool archived = false;
  std::string description, notes; ///< set by users, otherwise by the configuration
  std::vector<std::string> labels;
  std::uint64_t edits = 0; ///< how often users changed the description or the resources
  std::vector<experiment_resources_changed> resources; ///< resources that a user has set since; none or one
  std::uint32_t continued = 0;                         ///< how often it was continued after its end
  std::vector<trial_id> continued_trials;              ///< trials that the latest continuation runs again
  bool unmanaged = false;             ///< whether the trials are processes outside of the cluster
  std::string external_id;            ///< name that the owner of an unmanaged experiment gave it; empty: none
  std::uint64_t checkpoint_count = 0; ///< number of checkpoints of all trials
  std::int64_t checkpoint_bytes = 0;
  TROUPE_PACKED(id, state, name, owner, context, key, source, why, config, created, ended, progress,
                num_trials, metric, smaller_is_better, best_trial, best_metric, parent, project, archived,
                description, notes, labels, edits, resources, continued, continued_trials, unmanaged,
                external_id, checkpoint_count, checkpoint_bytes)
};

/// The part of an experiment's row that changes during its life; the other fields stay as they were created.
struct experiment_standing {
  experiment_id id;
  experiment_state state = experiment_state::active;
  time_point ended;
  double progress = 0;
  std::uint64_t num_trials = 0;
  trial_id best_trial;
  double best_metric = 0;
  project_id project{1};
  bool archived = false;
  std::uint64_t edits = 0;
  bool unmanaged = false;
  std::uint64_t checkpoint_count = 0;
  std::int64_t checkpoint_bytes = 0;
  friend bool operator==(const experiment_standing&, const experiment_standing&) = default;
};
experiment_standing standing_of(const experiment_row& row);

/// The workspace with number 1, which always exists and belongs to admin: nobody changes, archives or deletes
/// it.
workspace_changed uncategorized_workspace();
project_changed uncategorized_project();

struct validation_row {  ///< the best or latest validation of a trial
  std::uint64_t row = 0; ///< row in the trial's metric series; 0: none
  std::int64_t steps = 0;
  double metric = 0; ///< the searcher's metric
  time_point at;
  run_id run;
  /// Value of the searcher's time metric; NaN if there is none.
  double units = std::numeric_limits<double>::quiet_NaN();
  /// False if the report lacks the searcher's metric, which may happen when the search names several metrics.
  bool judged = true;
  TROUPE_PACKED(row, steps, metric, at, run, units, judged)
};

struct run_row {
  run_id run;
  time_point started, ended; ///< `ended` is 0 while it runs
  std::string from_checkpoint;
  std::int64_t from_steps = 0;
  end why = end::completed; ///< set once it has ended
  std::string detail;
  std::vector<placement> on; ///< set once the run is placed
  std::string pool;          ///< pool in which it was placed
  bool backfilled = false;   ///< placed while a more urgent request waited
  time_point placed;         ///< 0 until it is placed
  time_point saved;          ///< time of the run's newest checkpoint; 0: none
  std::string preempted;     ///< why the pool preempted the run; empty: not preempted
  TROUPE_PACKED(run, started, ended, from_checkpoint, from_steps, why, detail, on, pool, backfilled, placed,
                saved, preempted)
};
/// The cost of preempting a run: its slots times the seconds from its last checkpoint to its end or `now`. If
/// the run saved no checkpoint, the seconds count from its placement. 0 if the run was not preempted.
double preempted_slot_seconds(const run_row& run, time_point now);

/// What every task has, whatever it runs: enough to admit its processes, to fence its runs and to list it.
struct task_row {
  task_id id;
  experiment_id experiment;      ///< the experiment of the task; 0: none
  std::string owner;             ///< name of the account for which the task runs
  std::string workspace;         ///< as the configuration names it; may be empty
  time_point created, ended;     ///< `ended` is 0 before the end
  run_id run;                    ///< the newest run; 0: none yet
  bool open = false;             ///< whether that run has not ended
  std::vector<run_id> continued; ///< for each continuation of its trial, the newest run before it
  TROUPE_PACKED(id, experiment, owner, workspace, created, ended, run, open, continued)
};

/// A task that is not a trial, with everything that its facts say.
struct task_detail {
  task_created made;
  task_state state = task_state::active;
  std::string why;           ///< why the task has ended, or must end
  time_point ended;          ///< 0 until the task has ended
  int exit_code = -1;        ///< exit code of the program, once it has ended; -1: none
  bool ready = false;        ///< whether the service of its newest run has answered
  time_point active;         ///< when it was last used, as far as is known
  int priority = 0;          ///< priority that a user has set since; 0: none
  std::vector<run_row> runs; ///< oldest first
  std::string log_policy;    ///< name of the log policy that matched last; empty: none did
  /// Account under which the newest service said that it runs; none or one.
  std::vector<unix_account> runs_as;
};

/// "CAT-12": the key of a project, and the number of a trial in it.
struct local_name {
  std::string key; ///< upper case
  std::uint64_t number = 0;
  friend bool operator==(const local_name&, const local_name&) = default;
};
std::string to_string(const local_name& name);
/// nullopt if the text is not such a name. Upper and lower case are accepted.
std::optional<local_name> parse_local_name(std::string_view text);

/// For a collection of checkpoints: its experiment, which may have been deleted, as `details` says; 0 for
/// other tasks.
experiment_id collected_experiment(const task_detail& of);

struct trial_row {
  trial_id id;
  experiment_id experiment;
  std::string key;
  trial_state state = trial_state::queued;
  value hparams;
  std::uint32_t seed = 0;
  int restarts = 0;
  time_point created, ended;
  std::string why;
  std::vector<run_row> runs; ///< oldest first
  validation_row best, latest;
  std::string latest_checkpoint; ///< uuid
  std::uint64_t checkpoint_count = 0;
  std::int64_t checkpoint_bytes = 0;
  std::optional<trial_stop_decided> stop() const {
    return stopped.empty() ? std::nullopt : std::optional{stopped.front()};
  }
  std::vector<trial_stop_decided> stopped; ///< none or one
  value metadata;                          ///< metadata from users or the script; null: none
  double progress = 0;                     ///< 0..1, as the script reports it
  std::vector<run_id> continued; ///< as in task_row: the task of each continuation has a name of its own
  std::string log_policy;        ///< name of the log policy that matched last; empty: none did
  time_point heard;              ///< for an unmanaged trial: time of the latest sign of life of its process
  std::uint64_t number = 0;      ///< number in its project, counted from 1 and never given again
  bool archived = false;         ///< this trial's own mark, independent of the experiment's mark
  deletion_step deletion = deletion_step::none;
  std::string stuck;                            ///< why the deletion failed
  trial_state ends_as = trial_state::completed; ///< while it stops: the state in which it will end
  bool killed = false;                          ///< while it stops: at once, without a last checkpoint
  /// Steps of the newest report that is not a sample. A reader adds them, because the row changes only by
  /// facts.
  std::int64_t reported_steps = 0;
  TROUPE_PACKED(id, experiment, key, state, hparams, seed, restarts, created, ended, why, runs, best, latest,
                latest_checkpoint, checkpoint_count, checkpoint_bytes, stopped, metadata, progress, continued,
                log_policy, heard, number, archived, deletion, stuck, ends_as, killed)
};
/// Number of the continuation that a run belongs to; 0 for runs before the first one.
std::uint32_t continuation_of(const std::vector<run_id>& continued, run_id run);

enum class checkpoint_state : int { completed = 0, partially_deleted, deleted };

struct checkpoint_row {
  checkpoint saved; ///< `files` holds only the files that are left
  trial_id trial;
  experiment_id experiment;
  run_id run;
  time_point at;
  checkpoint_state state = checkpoint_state::completed;
  TROUPE_PACKED(saved, trial, experiment, run, at, state)
};

/// The name of the trial's state; while it stops, it says how the trial will end, as that of an experiment.
std::string_view state_of(const trial_row& trial);

/// One report of a trial; rows are in the order of arrival.
struct metric_row {
  std::uint64_t row = 0; ///< counts from 1 within the trial
  std::string group;     ///< "training" or "validation"
  std::int64_t steps = 0;
  run_id run;
  time_point at;
  std::string metrics; ///< a msgpack map, exactly as it was reported
  std::string batches; ///< a msgpack array with a map for each batch; may be empty
  TROUPE_PACKED(row, group, steps, run, at, metrics, batches)
};

/// Whether a report is archived: a later run of the same trial has started from a checkpoint below the
/// report's steps, and trains these steps again.
bool archived(const metric_row& report, const std::vector<run_row>& runs);

struct log_line {
  std::uint64_t number = 0; ///< counts from 1 within the task
  time_point at;
  allocation_id allocation;
  std::string agent;
  int rank = 0;
  std::string stream; ///< "stdout", "stderr", or "troupe" for our own lines
  std::string level;  ///< "DEBUG".."CRITICAL" if the line names a level, otherwise empty
  std::string text;   ///< without the newline
  TROUPE_PACKED(number, at, allocation, agent, rank, stream, level, text)
};

} // namespace troupe

MSGPACK_ADD_ENUM(troupe::checkpoint_state)
