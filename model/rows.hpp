#pragma once
// What readers see: rows that the projections keep, pure folds of the facts, written in the same commit.

#include "model/facts.hpp"

#include <limits>
#include <optional>

namespace troupe {

struct experiment_row {
  experiment_id id;
  experiment_state state = experiment_state::active;
  std::string name, owner, context, key, source, why;
  shared_value config{value()}; ///< complete; null where none is known
  time_point created, ended;    ///< ended is 0 while it is not
  double progress = 0;          ///< 0..1
  std::uint64_t num_trials = 0;
  std::string metric; ///< the searcher's
  bool smaller_is_better = true;
  trial_id best_trial;    ///< 0 while there is none
  double best_metric = 0; ///< value as reported, sign unchanged
  experiment_id parent;   ///< experiment that this one was forked from; 0: none
  project_id project{1};
  bool archived = false;
  std::string description, notes; ///< what people say; else what the configuration says
  std::vector<std::string> labels;
  std::uint64_t edits = 0; ///< how often it was described anew, or its resources changed
  std::vector<experiment_resources_changed> resources; ///< none or one: what a user has set since
  std::uint32_t continued = 0;                         ///< how often it was continued after its end
  std::vector<trial_id> continued_trials;              ///< those that the latest continuation runs again
  bool unmanaged = false;                              ///< its trials are processes outside of the cluster
  std::string external_id;            ///< name by which the owner of an unmanaged one finds it; empty: none
  std::uint64_t checkpoint_count = 0; ///< over all trials, as theirs
  std::int64_t checkpoint_bytes = 0;
  MSGPACK_DEFINE_ARRAY(id, state, name, owner, context, key, source, why, config, created, ended, progress,
                       num_trials, metric, smaller_is_better, best_trial, best_metric, parent, project,
                       archived, description, notes, labels, edits, resources, continued, continued_trials,
                       unmanaged, external_id, checkpoint_count, checkpoint_bytes)
};

/// What of an experiment's row changes in its life; all else of it is as it was created.
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

/// What is there from the beginning, number 1, owned by admin: nobody changes, archives or deletes it.
workspace_changed uncategorized_workspace();
project_changed uncategorized_project();

struct validation_row {  ///< the best or latest validation of a trial
  std::uint64_t row = 0; ///< row in the trial's metric series; 0: none
  std::int64_t steps = 0;
  double metric = 0; ///< the searcher's
  time_point at;
  run_id run;
  double units =
    std::numeric_limits<double>::quiet_NaN(); ///< the searcher's time metric; NaN where it has none
  bool judged =
    true; ///< false where the report lacks the searcher's metric, as where the search names several
  MSGPACK_DEFINE_ARRAY(row, steps, metric, at, run, units, judged)
};

struct run_row {
  run_id run;
  time_point started, ended; ///< ended is 0 while it runs
  std::string from_checkpoint;
  std::int64_t from_steps = 0;
  end why = end::completed; ///< once ended
  std::string detail;
  std::vector<placement> on; ///< once placed
  std::string pool;          ///< pool of the placement
  bool backfilled = false;   ///< placed while a more urgent request waited
  time_point placed;         ///< 0 while it is not
  time_point saved;          ///< time of its newest checkpoint; 0: none
  std::string preempted;     ///< why its pool preempted it; empty: it did not
  MSGPACK_DEFINE_ARRAY(run, started, ended, from_checkpoint, from_steps, why, detail, on, pool, backfilled,
                       placed, saved, preempted)
};
/// What the preemption of a run cost: its slots times the seconds from its last checkpoint, else from its
/// placement, to its end or `now`. 0 where it was not preempted.
double preempted_slot_seconds(const run_row& run, time_point now);

/// What every task has, whatever it runs: to let its processes in, to fence its runs and to list it.
struct task_row {
  task_id id;
  experiment_id experiment;      ///< that it belongs to; 0: none
  std::string owner;             ///< name of the account that it runs for
  std::string workspace;         ///< as its configuration names it; may be empty
  time_point created, ended;     ///< ended is 0 while it is not
  run_id run;                    ///< the newest; 0: none yet
  bool open = false;             ///< whether that run has not ended
  std::vector<run_id> continued; ///< of each continuation of its trial the newest run before it
  MSGPACK_DEFINE_ARRAY(id, experiment, owner, workspace, created, ended, run, open, continued)
};

/// A task that is no trial, with all that its facts say.
struct task_detail {
  task_created made;
  task_state state = task_state::active;
  std::string why;                   ///< why it ended, or has to
  time_point ended;                  ///< 0 while it has not
  int exit_code = -1;                ///< of its program, once it has ended; -1: it has none
  bool ready = false;                ///< whether the service of its newest run has answered
  time_point active;                 ///< when it was used last, as far as somebody said
  int priority = 0;                  ///< that a user has set since; 0: none did
  std::vector<run_row> runs;         ///< oldest first
  std::string log_policy;            ///< name of the log policy that matched last; empty: none did
  std::vector<unix_account> runs_as; ///< none or one: the account that its newest service said it runs as
};

/// "CAT-12": the key of a project and the number of a trial in it.
struct local_name {
  std::string key; ///< upper case
  std::uint64_t number = 0;
  friend bool operator==(const local_name&, const local_name&) = default;
};
std::string to_string(const local_name& name);
/// nullopt where the text is no such name. Letters of any case are taken.
std::optional<local_name> parse_local_name(std::string_view text);

/// Of a collection of checkpoints, whose `details` say it: the experiment that they are of, which may be
/// gone; 0 for tasks of other kinds.
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
  double progress = 0;                     ///< 0..1, as the script says
  std::vector<run_id> continued; ///< as in task_row: each continuation has a name of task of its own
  std::string log_policy;        ///< name of the log policy that matched last; empty: none did
  time_point heard;              ///< of an unmanaged one: when its process said last that it lives
  std::uint64_t number = 0;      ///< in its project: counted there from 1, and never given again
  bool archived = false;         ///< it alone, whatever its experiment is
  deletion_step deletion = deletion_step::none;
  std::string stuck; ///< why its deletion failed
  /// Steps of its newest report that is no sample. Not of the row, which changes by facts: a reader adds it.
  std::int64_t reported_steps = 0;
  MSGPACK_DEFINE_ARRAY(id, experiment, key, state, hparams, seed, restarts, created, ended, why, runs, best,
                       latest, latest_checkpoint, checkpoint_count, checkpoint_bytes, stopped, metadata,
                       progress, continued, log_policy, heard, number, archived, deletion, stuck)
};
/// Number of the continuation that a run belongs to: 0 for those before the first.
std::uint32_t continuation_of(const std::vector<run_id>& continued, run_id run);

enum class checkpoint_state : int { completed = 0, partially_deleted, deleted };

struct checkpoint_row {
  checkpoint saved; ///< files: those that are left
  trial_id trial;
  experiment_id experiment;
  run_id run;
  time_point at;
  checkpoint_state state = checkpoint_state::completed;
  MSGPACK_DEFINE_ARRAY(saved, trial, experiment, run, at, state)
};

/// One report of a trial, in the order of arrival.
struct metric_row {
  std::uint64_t row = 0; ///< counts from 1 within the trial
  std::string group;     ///< "training" or "validation"
  std::int64_t steps = 0;
  run_id run;
  time_point at;
  std::string metrics; ///< a msgpack map, exactly as it was reported
  std::string batches; ///< a msgpack array of maps, one a batch, or empty
  MSGPACK_DEFINE_ARRAY(row, group, steps, run, at, metrics, batches)
};

/// A report is archived when a later run of the same trial started from a checkpoint below the report's
/// steps: that run trains those steps again.
bool archived(const metric_row& report, const std::vector<run_row>& runs);

struct log_line {
  std::uint64_t number = 0; ///< from 1 within the task
  time_point at;
  allocation_id allocation;
  std::string agent;
  int rank = 0;
  std::string stream; ///< "stdout", "stderr", or "troupe" for our own lines
  std::string level;  ///< "DEBUG".."CRITICAL" where the line says so, else empty
  std::string text;   ///< line without the newline
  MSGPACK_DEFINE_ARRAY(number, at, allocation, agent, rank, stream, level, text)
};

} // namespace troupe

MSGPACK_ADD_ENUM(troupe::checkpoint_state)
