#pragma once
// What the journal holds. A fact is the durable consequence of an event, outcome included, with its time.
//
// Each fact belongs to the stream of one entity: "cluster", "experiment/7", "trial/12", "task/UUID",
// "allocation/12.3".
// The facts of a stream are numbered from 0 without gaps. Encoded as the msgpack array [tag, version,
// fields...]; tags and the order of fields never change, fields are only added at the end.

#include "model/pack.hpp"
#include "model/states.hpp"

#include <map>
#include <variant>
#include <vector>

namespace troupe {

// ---- stream "cluster"

struct experiment_created {
  static constexpr const char* tag = "experiment_created";
  time_point at;
  experiment_id id;
  value config; ///< the complete configuration
  std::string name, owner;
  std::string context;   ///< name of the blob with the experiment's files (a tar); empty: no files
  std::string source;    ///< the text that was submitted
  std::string key;       ///< key of the submission: the same key creates once; empty: none
  experiment_id parent;  ///< experiment that this one was forked from; 0: none
  project_id project{1}; ///< project in which it is created
  /// Whether its trials are processes outside of the cluster, which report by themselves.
  bool unmanaged = false;
  /// For an unmanaged experiment: the name by which its owner finds it again; empty: none.
  std::string external_id;
  TROUPE_PACKED(at, id, config, name, owner, context, source, key, parent, project, unmanaged, external_id)
};

struct agent_joined { ///< a new agent, or a known one with other slots or another address
  static constexpr const char* tag = "agent_joined";
  time_point at;
  std::string agent; ///< name of the agent
  std::string id;    ///< random text that is kept in the agent's data directory
  int slots = 0;
  std::string host;
  std::string pool; ///< pool that the agent asked for; empty: none
  TROUPE_PACKED(at, agent, id, slots, host, pool)
};

/// The experiment has ended, and the checkpoints that its policy does not keep are deleted, with their files.
struct experiment_swept {
  static constexpr const char* tag = "experiment_swept";
  time_point at;
  experiment_id id;
  TROUPE_PACKED(at, id)
};

struct agent_changed { ///< an operator has set what may be placed on an agent from now on
  static constexpr const char* tag = "agent_changed";
  time_point at;
  std::string agent;         ///< name of the agent
  bool draining = false;     ///< nothing new is placed on the agent
  std::vector<int> disabled; ///< slots on which nothing new is placed, ascending
  std::string by;            ///< the user who ordered it
  bool ends = false;         ///< what runs on the agent is killed
  std::vector<int> ended;    ///< members of `disabled`, on which what runs is killed as well
  TROUPE_PACKED(at, agent, draining, disabled, by, ends, ended)
};

struct agent_left { ///< an operator has removed an agent that will not return: it is forgotten
  static constexpr const char* tag = "agent_left";
  time_point at;
  std::string agent; ///< name of the agent
  std::string id;    ///< random text, as in agent_joined
  std::string by;    ///< the user who ordered it
  TROUPE_PACKED(at, agent, id, by)
};

struct unix_account { ///< account of a host under which tasks run
  std::int64_t uid = 0, gid = 0;
  std::string user, group;
  TROUPE_PACKED(uid, gid, user, group)
};
/// All fields of a user from now on, whether the user is new or changed. Hashes of passwords stay outside of
/// the journal.
struct user_changed {
  static constexpr const char* tag = "user_changed";
  time_point at;
  /// Name of the user who did it; "troupe": the first users, and the users of an older directory.
  std::string by;
  user_id id;
  std::string name, display_name;
  bool admin = false, active = true;
  /// Name of the hash in DIR/master/passwords; empty: a blank password.
  std::string password;
  std::uint64_t generation = 1;      ///< tokens of an earlier generation are void
  std::vector<unix_account> runs_as; ///< account under which the user's tasks run; none or one
  bool remote = false;               ///< whether another system knows the user, who then has no password here
  /// Names that the user had before, case folded: what was made under them belongs to the user.
  std::vector<std::string> former;
  TROUPE_PACKED(at, by, id, name, display_name, admin, active, password, generation, runs_as, remote, former)
};
enum class deletion_step : int { none = 0, ordered, failed, done };

/// The token of a session got a name or is revoked, or an access token was made or changed. A plain login
/// writes no fact.
struct token_changed {
  static constexpr const char* tag = "token_changed";
  time_point at;
  std::string by;
  user_id user;     ///< user for whom the token stands
  std::string id;   ///< random number that the token carries; useless without the cluster's secret
  std::string name; ///< unique among the user's tokens; empty: the token of a plain session
  time_point until; ///< time from which on the token is void in any case
  bool revoked = false;
  std::uint64_t number = 0; ///< number of an access token, counted from 1; 0: the token of a session
  std::string description;  ///< what an access token is for
  time_point created;       ///< when an access token was made
  TROUPE_PACKED(at, by, user, id, name, until, revoked, number, description, created)
};
struct configuration_changed { ///< the whole configuration in force
  static constexpr const char* tag = "configuration_changed";
  time_point at;
  std::string by;
  std::uint64_t revision = 0; ///< counts from 1
  value configuration;        ///< completed cluster file, as model/config/cluster_config.hpp reads it
  TROUPE_PACKED(at, by, revision, configuration)
};
struct setting_changed { ///< an operator has changed a setting in the operators' shell
  static constexpr const char* tag = "setting_changed";
  time_point at;
  std::string by;
  std::string key; ///< "log.level", "trace.rate", "trace.max"
  value to;
  TROUPE_PACKED(at, by, key, to)
};

// The facts below hold all fields of a thing from now on, whether it is new or changed; `deleted`: the thing
// is deleted. `owner` and `by` are names of accounts.

struct workspace_changed {
  static constexpr const char* tag = "workspace_changed";
  time_point at;
  std::string by;
  workspace_id id;
  std::string name, owner;
  bool archived = false, deleted = false;
  std::vector<std::string> pinned_by; ///< accounts that have the workspace among their favourites
  std::vector<unix_account> runs_as;  ///< account for tasks that start in the workspace; none or one
  value checkpoint_storage;           ///< section of a configuration; null: the workspace has none of its own
  /// Pools for tasks that name none; empty: the cluster's pools.
  std::string compute_pool, aux_pool;
  deletion_step deletion = deletion_step::none; ///< the workspace is deleted when its content is deleted
  std::string error;                            ///< why the deletion failed
  TROUPE_PACKED(at, by, id, name, owner, archived, deleted, pinned_by, runs_as, checkpoint_storage,
                compute_pool, aux_pool, deletion, error)
};
struct project_note {
  std::string name, contents;
  friend bool operator==(const project_note&, const project_note&) = default;
  TROUPE_PACKED(name, contents)
};
struct project_changed {
  static constexpr const char* tag = "project_changed";
  time_point at;
  std::string by;
  project_id id;
  workspace_id workspace;
  std::string name, key, description, owner;
  std::vector<project_note> notes;
  bool archived = false, deleted = false;
  deletion_step deletion = deletion_step::none; ///< the project is deleted when its experiments are
  std::string error;                            ///< why the deletion failed
  TROUPE_PACKED(at, by, id, workspace, name, key, description, owner, notes, archived, deleted, deletion,
                error)
};
struct template_changed {
  static constexpr const char* tag = "template_changed";
  time_point at;
  std::string by;
  std::string name; ///< unique in the cluster
  workspace_id workspace{1};
  value config; ///< as it was given: checked where it is used
  bool deleted = false;
  TROUPE_PACKED(at, by, name, workspace, config, deleted)
};
struct model_changed { ///< a model of the registry
  static constexpr const char* tag = "model_changed";
  time_point at;
  std::string by;
  model_id id;
  std::string name, description, notes, owner;
  std::vector<std::string> labels;
  value metadata; ///< an object
  workspace_id workspace{1};
  time_point created;
  bool archived = false, deleted = false;
  TROUPE_PACKED(at, by, id, name, description, notes, owner, labels, metadata, workspace, created, archived,
                deleted)
};
struct model_version_changed {
  static constexpr const char* tag = "model_version_changed";
  time_point at;
  std::string by;
  model_id model;
  /// Counts from 1; after the highest version was deleted, its number is used again.
  std::uint64_t version = 0;
  std::string checkpoint; ///< uuid
  std::string name, comment, notes, owner;
  std::vector<std::string> labels;
  value metadata; ///< an object
  time_point created;
  bool deleted = false;
  TROUPE_PACKED(at, by, model, version, checkpoint, name, comment, notes, owner, labels, metadata, created,
                deleted)
};
struct experiment_moved {
  static constexpr const char* tag = "experiment_moved";
  time_point at;
  std::string by;
  experiment_id id;
  project_id project;
  TROUPE_PACKED(at, by, id, project)
};
/// What users say of an experiment; before the first such fact, the name and the configuration count.
struct experiment_described {
  static constexpr const char* tag = "experiment_described";
  time_point at;
  std::string by;
  experiment_id id;
  std::string name, description, notes;
  std::vector<std::string> labels;
  bool archived = false;
  /// Numbers of checkpoints that are kept; -1: as the configuration says.
  std::int64_t save_experiment_best = -1, save_trial_best = -1, save_trial_latest = -1;
  TROUPE_PACKED(at, by, id, name, description, notes, labels, archived, save_experiment_best, save_trial_best,
                save_trial_latest)
};

/// The deletion of an ended experiment is ordered, has failed, or is done: then its rows, reports, logs and
/// files are deleted.
struct experiment_deleted {
  static constexpr const char* tag = "experiment_deleted";
  time_point at;
  std::string by;
  experiment_id id;
  deletion_step step = deletion_step::ordered;
  std::string why;              ///< why it failed
  std::vector<trial_id> trials; ///< when it is done: the trials that were deleted with it
  TROUPE_PACKED(at, by, id, step, why, trials)
};
/// An ended trial is hidden from lists or shown in them again, while its experiment stays.
struct trial_archived {
  static constexpr const char* tag = "trial_archived";
  time_point at;
  std::string by;
  experiment_id experiment;
  trial_id trial;
  bool archived = true;
  TROUPE_PACKED(at, by, experiment, trial, archived)
};
/// The deletion of an ended trial is ordered, has failed, or is done; the trial's experiment has ended and
/// stays.
struct trial_deleted {
  static constexpr const char* tag = "trial_deleted";
  time_point at;
  std::string by;
  experiment_id experiment;
  trial_id trial;
  deletion_step step = deletion_step::ordered;
  std::string why; ///< why it failed
  TROUPE_PACKED(at, by, experiment, trial, step, why)
};
/// An ended experiment continues: the trials that did not complete run again, then the rest of its search.
struct experiment_continued {
  static constexpr const char* tag = "experiment_continued";
  time_point at;
  std::string by;
  experiment_id id;
  std::uint32_t number = 0;     ///< counts the continuations of the experiment from 1
  std::vector<trial_id> trials; ///< trials that run again, ascending
  value config;                 ///< complete, replaces the earlier configuration; null: unchanged
  TROUPE_PACKED(at, by, id, number, trials, config)
};
/// How long logs are kept; replaces the configuration's value.
struct log_retention_changed {
  static constexpr const char* tag = "log_retention_changed";
  time_point at;
  std::string by;
  experiment_id experiment;
  trial_id trial; ///< trial whose log is meant; 0: all trials of the experiment
  int days = -1;  ///< days after a trial's end; -1: for ever
  TROUPE_PACKED(at, by, experiment, trial, days)
};
struct group_changed {
  static constexpr const char* tag = "group_changed";
  time_point at;
  std::string by;
  group_id id;
  std::string name;
  std::vector<user_id> members; ///< ascending
  bool deleted = false;
  TROUPE_PACKED(at, by, id, name, members, deleted)
};
/// A role was given to a user or a group, or taken from them.
struct roles_changed {
  static constexpr const char* tag = "roles_changed";
  time_point at;
  std::string by;
  int role = 0; ///< number of the role in Determined
  user_id user; ///< the user; 0 if the role is that of a group
  group_id group;
  workspace_id workspace; ///< workspace where the role holds; 0: everywhere
  bool deleted = false;
  TROUPE_PACKED(at, by, role, user, group, workspace, deleted)
};
/// What configurations of one kind of work must satisfy.
struct policy_changed {
  static constexpr const char* tag = "policy_changed";
  time_point at;
  std::string by;
  workspace_id workspace; ///< 0: the whole cluster
  std::string kind;       ///< "EXPERIMENT" or "NTSC"
  value policies;         ///< {invariant_config, constraints}; null: none
  TROUPE_PACKED(at, by, workspace, kind, policies)
};
struct pool_bound {
  static constexpr const char* tag = "pool_bound";
  time_point at;
  std::string by, pool;
  /// The only workspaces that may use the pool, ascending; none: all workspaces may.
  std::vector<workspace_id> workspaces;
  TROUPE_PACKED(at, by, pool, workspaces)
};
struct webhook_changed {
  static constexpr const char* tag = "webhook_changed";
  time_point at;
  std::string by;
  webhook_id id;
  std::string name, url;
  bool slack = false;
  workspace_id workspace; ///< 0: all workspaces
  bool specific = false;  ///< whether only experiments that name the webhook trigger it
  value triggers;         ///< a list of {type, condition}
  bool deleted = false;
  TROUPE_PACKED(at, by, id, name, url, slack, workspace, specific, triggers, deleted)
};
/// One delivery: first queued, at last delivered or given up.
struct webhook_event {
  static constexpr const char* tag = "webhook_event";
  time_point at;
  std::string id; ///< UUID of the event, which the receiver sees
  webhook_id webhook;
  std::string url;
  bool slack = false;
  std::string body;                            ///< JSON; empty if the delivery has ended
  deletion_step step = deletion_step::ordered; ///< done: delivered; failed: given up
  std::string why;                             ///< why it failed
  /// The subject, if the webhook is told of it only once: "log/TASK/TRIGGER"; otherwise empty.
  std::string about;
  TROUPE_PACKED(at, id, webhook, url, slack, body, step, why, about)
};
struct cluster_message_changed {
  static constexpr const char* tag = "cluster_message_changed";
  time_point at;
  std::string by;
  std::string message;     ///< empty: none
  std::string from, until; ///< as they were sent; `until` may be empty
  time_point begins, ends; ///< `ends`: 0: never
  TROUPE_PACKED(at, by, message, from, until, begins, ends)
};
/// A setting that a user's page keeps.
struct user_setting_changed {
  static constexpr const char* tag = "user_setting_changed";
  time_point at;
  std::string by;
  user_id user;
  std::string key, path;
  std::string text; ///< empty: the setting is removed
  TROUPE_PACKED(at, by, user, key, path, text)
};
struct project_visited {
  static constexpr const char* tag = "project_visited";
  time_point at;
  user_id user;
  project_id project;
  TROUPE_PACKED(at, user, project)
};
/// A trial began with a checkpoint for fine-tuning or inference, so that its metrics concern that checkpoint.
struct trial_source_declared {
  static constexpr const char* tag = "trial_source_declared";
  time_point at;
  std::string by;
  trial_id trial;
  std::string checkpoint, kind, description; ///< kind: "INFERENCE" or "FINE_TUNING"
  model_id model;
  std::uint64_t version = 0;
  TROUPE_PACKED(at, by, trial, checkpoint, kind, description, model, version)
};

// ---- stream "experiment/N"

struct experiment_changed {
  static constexpr const char* tag = "experiment_changed";
  time_point at;
  experiment_state state = experiment_state::active;
  std::string why;
  std::string by; ///< user who ordered it; empty: nobody did, as where a search ends by itself
  TROUPE_PACKED(at, state, why, by)
};

struct trial_created { ///< part of search_stepped
  trial_id trial;
  std::string key; ///< the searcher's name for the trial
  value hparams;
  std::uint32_t seed = 0;
  std::string source_checkpoint;
  /// Steps of the source checkpoint, if that is one of this search.
  std::int64_t source_steps = 0;
  TROUPE_PACKED(trial, key, hparams, seed, source_checkpoint, source_steps)
};

struct trial_stop_decided { ///< part of search_stepped; `rung` is -1 if no rung decided
  trial_id trial;
  std::string why;
  int rung = -1;
  double units = 0, metric = 0, needed = 0;
  TROUPE_PACKED(trial, why, rung, units, metric, needed)
};

struct trial_resume_decided { ///< part of search_stepped: a trial that the search had paused runs again
  trial_id trial;
  double until = 0; ///< length to train to, in units of the time metric
  TROUPE_PACKED(trial, until)
};

/// Part of search_stepped: the trial continues with these hyperparameters and with the weights in the
/// checkpoint of trial `source`.
struct trial_perturb_decided {
  trial_id trial, source;
  std::string checkpoint;
  std::int64_t steps = 0; ///< steps of the checkpoint
  value hparams;
  std::uint32_t number = 0; ///< counts the perturbations of the trial from 1
  TROUPE_PACKED(trial, source, checkpoint, steps, hparams, number)
};

/// `ordered`: an external process decides, and these are its orders (a `custom` search). `continued`: trials
/// that had exited run again; `metrics` lists their keys.
enum class search_input : int {
  started = 0,
  validated,
  exited_early,
  exited,
  checkpointed,
  ordered,
  continued
};

/// One step of the search: the input and everything that was decided on it, as one fact.
struct search_stepped {
  static constexpr const char* tag = "search_stepped";
  time_point at;
  search_input input = search_input::started;
  trial_id trial;         ///< trial of the input; 0 when started
  std::uint64_t row = 0;  ///< the validation's row in the metric series of the trial
  std::int64_t steps = 0; ///< steps of the validation
  value metrics;  ///< metrics of the validation: the searcher's and its time metric; when ordered, the orders
  int reason = 0; ///< searchers::exit_reason, when exited early
  std::vector<trial_created> created;
  std::vector<trial_stop_decided> stopped;
  bool shut_down = false, cancel = false, failure = false;
  double progress = 0;
  std::vector<trial_id> paused; ///< trials that wait until the search resumes them
  std::vector<trial_resume_decided> resumed;
  std::vector<trial_perturb_decided> perturbed;
  std::string checkpoint; ///< when checkpointed: the checkpoint's uuid; `steps` are its steps
  double time = 0;        ///< when checkpointed: how far the trial was, in units of the time metric
  run_id run;             ///< run that reported the validation; 0: the newest one, as older builds wrote none
  TROUPE_PACKED(at, input, trial, row, steps, metrics, reason, created, stopped, shut_down, cancel, failure,
                progress, paused, resumed, perturbed, checkpoint, time, run)
};

/// From a user: what the experiment may have of its pool from now on, all fields.
struct experiment_resources_changed {
  static constexpr const char* tag = "experiment_resources_changed";
  time_point at;
  std::string by;
  int priority = 0; ///< 1..99; 0: the pool's default
  double weight = 1;
  int max_slots = -1; ///< below 0: any number
  std::string pool;
  TROUPE_PACKED(at, by, priority, weight, max_slots, pool)
};

/// The experiment has heard of what experiment_continued ordered.
struct experiment_resumed {
  static constexpr const char* tag = "experiment_resumed";
  time_point at;
  std::uint32_t number = 0;     ///< number of the continuation
  std::vector<trial_id> trials; ///< trials that run again
  /// Whether there is another configuration: then what users had set for its pool no longer holds.
  bool configured = false;
  /// Hyperparameters that a search of one trial has from its present configuration; null: unchanged.
  value hparams;
  TROUPE_PACKED(at, number, trials, configured, hparams)
};

// ---- stream "trial/N"

/// Where the files of a checkpoint are: `key` in a store. A store is written KIND:PLACE, without secrets:
/// "directory:/mnt/ck" and "shared_fs:/mnt/ck" are folders that the hosts see (storage/checkpoints/).
struct checkpoint_place {
  std::string store, key;
  friend bool operator==(const checkpoint_place&, const checkpoint_place&) = default;
  TROUPE_PACKED(store, key)
};

struct checkpoint {
  std::string uuid;
  std::int64_t steps = 0;
  std::map<std::string, std::int64_t> files; ///< bytes by path
  value metadata;
  /// Absolute path of the folder; empty if the store is not a folder of the hosts.
  std::string path;
  checkpoint_place place; ///< empty in facts of older builds, which have only the path
  TROUPE_PACKED(uuid, steps, files, metadata, path, place)
};

struct trial_activated {
  static constexpr const char* tag = "trial_activated";
  time_point at;
  TROUPE_PACKED(at)
};
struct trial_paused {
  static constexpr const char* tag = "trial_paused";
  time_point at;
  TROUPE_PACKED(at)
};
struct trial_stop_ordered { ///< ordered by the searcher, a cancel or a kill
  static constexpr const char* tag = "trial_stop_ordered";
  time_point at;
  trial_state outcome = trial_state::completed; ///< state in which the trial will end
  bool kill = false;                            ///< whether it ends at once, without a last checkpoint
  std::string why;
  /// User who stopped this trial alone; empty: its experiment stops it, whose own fact says who ordered that.
  std::string by;
  TROUPE_PACKED(at, outcome, kill, why, by)
};
struct trial_perturbed { ///< trial_perturb_decided ordered this; the runs so far no longer count
  static constexpr const char* tag = "trial_perturbed";
  time_point at;
  std::uint32_t number = 0;
  /// The latest run at this moment: reports and checkpoints of it and of earlier runs no longer count.
  run_id run;
  std::string checkpoint;
  std::int64_t steps = 0;
  value hparams;
  TROUPE_PACKED(at, number, run, checkpoint, steps, hparams)
};
struct run_started {
  static constexpr const char* tag = "run_started";
  time_point at;
  run_id run;
  std::string from_checkpoint; ///< uuid; empty: the run starts without a checkpoint
  std::int64_t from_steps = 0; ///< reports of earlier runs beyond these steps are archived
  TROUPE_PACKED(at, run, from_checkpoint, from_steps)
};
struct checkpoint_recorded {
  static constexpr const char* tag = "checkpoint_recorded";
  time_point at;
  run_id run;
  checkpoint saved;
  TROUPE_PACKED(at, run, saved)
};
struct checkpoint_changed { ///< files of a recorded checkpoint were deleted; also after the trial's end
  static constexpr const char* tag = "checkpoint_changed";
  time_point at;
  std::string uuid;
  /// Bytes by path of the files that remain; none: the checkpoint is deleted.
  std::map<std::string, std::int64_t> files;
  std::string by; ///< user who did it; empty: retention, or the task
  TROUPE_PACKED(at, uuid, files, by)
};
struct checkpoint_described { ///< a user has replaced the metadata; also after the trial's end
  static constexpr const char* tag = "checkpoint_described";
  time_point at;
  std::string by, uuid;
  value metadata;
  TROUPE_PACKED(at, by, uuid, metadata)
};
/// A user or the script has replaced the metadata; also after the trial's end.
struct trial_metadata_set {
  static constexpr const char* tag = "trial_metadata_set";
  time_point at;
  value metadata;
  std::string by; ///< empty: the script
  TROUPE_PACKED(at, metadata, by)
};
struct trial_progressed { ///< progress that the script reported; at most one fact for each whole percent
  static constexpr const char* tag = "trial_progressed";
  time_point at;
  double progress = 0; ///< 0..1
  TROUPE_PACKED(at, progress)
};
struct run_ended {
  static constexpr const char* tag = "run_ended";
  time_point at;
  run_id run;
  end why = end::completed;
  int restarts = 0; ///< restarts of the trial so far
  int losses = 0;   ///< lost runs in a row without a new checkpoint
  time_point retry_at;
  std::string detail; ///< text for people: "exit code 1", "agent a1 lost"
  TROUPE_PACKED(at, run, why, restarts, losses, retry_at, detail)
};
struct trial_ended {
  static constexpr const char* tag = "trial_ended";
  time_point at;
  trial_state state = trial_state::completed;
  std::string why;
  int exit_reason = -1; ///< searchers::exit_reason if the searcher must hear one; otherwise -1
  TROUPE_PACKED(at, state, why, exit_reason)
};

/// The process of an unmanaged trial lives. At most one fact in half a minute. A trial that had ended runs
/// again.
struct trial_heard {
  static constexpr const char* tag = "trial_heard";
  time_point at;
  TROUPE_PACKED(at)
};

/// The experiment was continued: the trial is open again, without restarts, from its newest checkpoint.
struct trial_continued {
  static constexpr const char* tag = "trial_continued";
  time_point at;
  std::uint32_t number = 0; ///< number of the continuation, as in experiment_resumed
  run_id run;               ///< the latest run before; 0: none
  TROUPE_PACKED(at, number, run)
};
/// A line of the task's log matched a pattern of `log_policies`.
struct log_policy_matched {
  static constexpr const char* tag = "log_policy_matched";
  time_point at;
  run_id run;
  std::string policy;          ///< name of the policy; empty: it has none
  std::string pattern, line;   ///< `line` is cut to 1,000 bytes
  std::string exclude_agent;   ///< agent on which no further run of the task is placed; empty: none
  bool cancel_retries = false; ///< the next failure of the task is its last
  TROUPE_PACKED(at, run, policy, pattern, line, exclude_agent, cancel_retries)
};

// ---- stream "task/UUID", with run_started and run_ended

struct task_created {
  static constexpr const char* tag = "task_created";
  time_point at;
  task_id id; ///< tells the kind of the task as well
  std::string owner;
  std::string name; ///< for people: the description in the configuration
  workspace_id workspace{1};
  value config;        ///< complete
  std::string context; ///< name of the blob with the task's files (a tar); empty: no files
  std::string pool;
  /// What the kind of the task has besides: keys of a shell, the sources of a TensorBoard.
  value details;
  task_id parent;      ///< for a generic task; none: it is a root
  task_id forked_from; ///< none: the task is not a fork
  /// 1: the task is never paused; 0: it is paused with its parent; -1: not specified.
  int no_pause = -1;
  std::string source; ///< the text that was submitted
  TROUPE_PACKED(at, id, owner, name, workspace, config, context, pool, details, parent, forked_from, no_pause,
                source)
};
struct task_ready { ///< the task's service answers
  static constexpr const char* tag = "task_ready";
  time_point at;
  run_id run;
  /// The account under which the service says that it runs; none or one.
  std::vector<unix_account> runs_as;
  TROUPE_PACKED(at, run, runs_as)
};
struct task_active { ///< somebody uses the task; at most one fact a minute
  static constexpr const char* tag = "task_active";
  time_point at;
  TROUPE_PACKED(at)
};
struct task_paused { ///< if `paused` is false: the task is unpaused
  static constexpr const char* tag = "task_paused";
  time_point at;
  bool paused = true;
  std::string by;
  TROUPE_PACKED(at, paused, by)
};
struct task_stop_ordered { ///< the task has to end at once
  static constexpr const char* tag = "task_stop_ordered";
  time_point at;
  std::string why; ///< "killed by eve", "idle for more than 5m0s"
  std::string by;  ///< user who ordered it; empty: nobody did
  TROUPE_PACKED(at, why, by)
};
struct task_prioritized {
  static constexpr const char* tag = "task_prioritized";
  time_point at;
  std::string by;
  int priority = 0; ///< 1..99
  TROUPE_PACKED(at, by, priority)
};
struct task_ended {
  static constexpr const char* tag = "task_ended";
  time_point at;
  task_state state = task_state::completed;
  int exit_code = 0; ///< exit code of the task's program; -1: none
  std::string why;
  TROUPE_PACKED(at, state, exit_code, why)
};

// ---- stream "task/UUID" of a collection of checkpoints, which has no other facts

/// The removal of files of an experiment's checkpoints is ordered (`step` ordered) or has ended: done, or
/// failed with the first reason. Both facts have the fields of the order.
struct checkpoint_files_removed {
  static constexpr const char* tag = "checkpoint_files_removed";
  time_point at;
  /// User who asked for the removal; empty: the experiment's policy asked for it.
  std::string by;
  task_id id; ///< a task of kind checkpoint_gc
  deletion_step step = deletion_step::ordered;
  experiment_id experiment;
  std::string cause;         ///< "policy", "experiment" (it is deleted), "trial", "tensorboards" or "files"
  std::string owner;         ///< owner of the experiment
  workspace_id workspace{1}; ///< workspace of the experiment
  std::string pool;          ///< the cluster's default pool, for clients that want to show one
  /// With cause "files": UUIDs, and patterns of the files that are removed from these checkpoints.
  std::vector<std::string> checkpoints, globs;
  std::uint64_t removed = 0; ///< number of checkpoints of which files were removed
  std::uint64_t failed = 0;  ///< number of checkpoints of which a file could not be removed
  std::string why;           ///< the first reason of a failure
  trial_id trial;            ///< with cause "trial": the only trial that is deleted
  TROUPE_PACKED(at, by, id, step, experiment, cause, owner, workspace, pool, checkpoints, globs, removed,
                failed, why, trial)
};

// ---- stream "allocation/N.R"

struct placement { ///< the ranks of a gang on one agent
  std::string agent;
  std::vector<int> slots;
  TROUPE_PACKED(agent, slots)
};
struct allocation_placed { ///< committed before the start order leaves
  static constexpr const char* tag = "allocation_placed";
  time_point at;
  std::vector<placement> on;
  std::string pool;        ///< empty in facts of older builds
  bool backfilled = false; ///< whether a more urgent request waited at that time
  std::string home;        ///< pool in which there was no place, so that this pool was used; empty: none
  TROUPE_PACKED(at, on, pool, backfilled, home)
};
struct allocation_preempted { ///< the pool wants the slots back: the script is asked to save and exit
  static constexpr const char* tag = "allocation_preempted";
  time_point at;
  allocation_id wanted_by; ///< allocation that gets the slots; none: no particular one
  std::string reason;      ///< "priority", "fair_share", "max_slots", "quota", "disabled" or "pool"
  std::string detail;      ///< with "disabled", for people: "agent gpu01 was disabled by ada"
  TROUPE_PACKED(at, wanted_by, reason, detail)
};
/// The task's processes on every agent have called, so that each may be told the addresses of all.
struct allocation_ready {
  static constexpr const char* tag = "allocation_ready";
  time_point at;
  TROUPE_PACKED(at)
};
/// The script agreed to stop: its exit does not end the training, whatever the exit code.
struct allocation_yielded {
  static constexpr const char* tag = "allocation_yielded";
  time_point at;
  /// Whether nothing in the cluster had asked for the stop, but something outside did.
  bool outside = false;
  TROUPE_PACKED(at, outside)
};
struct allocation_gave_up { ///< the script says that its hyperparameters cannot be trained
  static constexpr const char* tag = "allocation_gave_up";
  time_point at;
  TROUPE_PACKED(at)
};
struct part_made_daemon { ///< the end of the ranks on this agent does not count
  static constexpr const char* tag = "part_made_daemon";
  time_point at;
  std::string agent;
  TROUPE_PACKED(at, agent)
};
/// A rank of the gang was lost while the run was open, or all ranks on an agent that was lost. The
/// consequence is another fact: the end of the run, or allocation_resized.
struct member_lost {
  static constexpr const char* tag = "member_lost";
  time_point at;
  std::string agent;
  int rank = -1;   ///< rank in the gang; -1: every rank on the agent
  std::string why; ///< text for people: "signal 9", "silent for 20 s"
  TROUPE_PACKED(at, agent, rank, why)
};
/// The gang continues with another number of ranks. Without `later`, the ranks that are left continue at once
/// and go back to the last checkpoint; with `later`, the next run continues, because slots are free again.
struct allocation_resized {
  static constexpr const char* tag = "allocation_resized";
  time_point at;
  std::uint32_t generation = 0; ///< number of the group of ranks; counts the changes within the run
  /// Members that are left of the ranks that the run started with, in the order of their new ranks.
  std::vector<int> members;
  int ranks = 0; ///< number of ranks from then on
  bool later = false;
  std::string why;
  TROUPE_PACKED(at, generation, members, ranks, later, why)
};
struct allocation_closed {
  static constexpr const char* tag = "allocation_closed";
  time_point at;
  end why = end::completed;
  int exit_code = 0;
  std::string detail;
  /// Whether the run completed although it was asked to stop and did not agree to: its training has ended.
  bool finished = false;
  /// The run failed before it was placed: log policies exclude all agents that could hold it.
  bool unplaceable = false;
  bool unbegun = false; ///< the run was lost before any part of it had begun
  TROUPE_PACKED(at, why, exit_code, detail, finished, unplaceable, unbegun)
};

// ---- stream "provider/POOL"

/// Instances of an elastic pool. `ordered` is committed before the provider is called.
struct instance_changed {
  static constexpr const char* tag = "instance_changed";
  time_point at;
  std::string pool;
  std::string what; ///< "ordered", "launched", "failed", "adopted", "ended" or "gone"
  /// Number of the launch, counted from 1; 0: the instances belong to no launch.
  std::uint64_t order = 0;
  int count = 0; ///< number of instances that are ordered
  /// Ids of the instances; "gone" without ids: no instance of that provider is left.
  std::vector<std::string> ids;
  /// Why it failed or ended, text for people; with "ordered", the type of the provider.
  std::string why;
  TROUPE_PACKED(at, pool, what, order, count, ids, why)
};

using provider_fact = std::variant<instance_changed>;
/// Facts of stream "task/UUID" of a collection.
using collection_fact = std::variant<checkpoint_files_removed>;
/// Facts of stream "cluster".
using catalogue_fact = std::variant<user_changed, token_changed, configuration_changed, setting_changed>;
using place_fact = std::variant<workspace_changed, project_changed, experiment_moved,
                                experiment_described>; ///< facts of stream "cluster"
using registry_fact =
  std::variant<template_changed, model_changed, model_version_changed>; ///< facts of stream "cluster"
/// On stream "cluster": groups and roles of users, and what each user keeps.
using people_fact = std::variant<group_changed, roles_changed, user_setting_changed, project_visited>;
/// On stream "cluster": rules for work that others submit, and who is told of it.
using rule_fact = std::variant<policy_changed, pool_bound, webhook_changed, webhook_event,
                               cluster_message_changed, log_retention_changed, trial_source_declared>;
using cluster_fact =
  std::variant<experiment_created, agent_joined, experiment_swept, agent_changed, agent_left, user_changed,
               token_changed, configuration_changed, setting_changed, workspace_changed, project_changed,
               template_changed, model_changed, model_version_changed, experiment_moved, experiment_described,
               experiment_deleted, log_retention_changed, group_changed, roles_changed, policy_changed,
               pool_bound, webhook_changed, webhook_event, cluster_message_changed, user_setting_changed,
               project_visited, trial_source_declared, experiment_continued, trial_archived, trial_deleted>;
using experiment_fact =
  std::variant<experiment_changed, search_stepped, experiment_resources_changed, experiment_resumed>;
using trial_fact =
  std::variant<trial_activated, trial_paused, trial_stop_ordered, run_started, checkpoint_recorded, run_ended,
               trial_ended, trial_perturbed, checkpoint_changed, trial_metadata_set, trial_progressed,
               checkpoint_described, trial_continued, log_policy_matched, trial_heard>;
using task_fact = std::variant<task_created, task_ready, task_active, task_paused, task_stop_ordered,
                               task_prioritized, task_ended, run_started, run_ended, log_policy_matched>;
using allocation_fact =
  std::variant<allocation_placed, allocation_closed, allocation_ready, allocation_yielded, allocation_gave_up,
               part_made_daemon, member_lost, allocation_resized, allocation_preempted>;
using fact = std::variant<
  experiment_created, agent_joined, experiment_changed, search_stepped, trial_activated, trial_paused,
  trial_stop_ordered, run_started, checkpoint_recorded, run_ended, trial_ended, trial_perturbed,
  allocation_placed, allocation_closed, checkpoint_changed, trial_metadata_set, trial_progressed,
  allocation_ready, allocation_yielded, allocation_gave_up, part_made_daemon, experiment_swept, member_lost,
  allocation_resized, agent_changed, agent_left, user_changed, token_changed, configuration_changed,
  setting_changed, workspace_changed, project_changed, template_changed, model_changed, model_version_changed,
  experiment_moved, experiment_described, experiment_resources_changed, allocation_preempted,
  experiment_deleted, log_retention_changed, group_changed, roles_changed, policy_changed, pool_bound,
  webhook_changed, webhook_event, cluster_message_changed, user_setting_changed, project_visited,
  trial_source_declared, checkpoint_described, instance_changed, experiment_continued, experiment_resumed,
  trial_continued, log_policy_matched, task_created, task_ready, task_active, task_paused, task_stop_ordered,
  task_prioritized, task_ended, trial_heard, trial_archived, trial_deleted, checkpoint_files_removed>;

/// [tag, version, fields...]; the version is 1 for every fact so far.
std::string encode(const fact& x);
/// Fails with errc::corrupt if the bytes are not a fact, with errc::unsupported if this build does not know
/// the tag or the version.
result<fact> decode(std::string_view bytes);

/// A fact as the type of one stream; errc::corrupt if the fact belongs to another stream.
template <class Narrow>
result<Narrow> decode_as(std::string_view bytes) {
  auto wide = decode(bytes);
  if (!wide)
    return wide.error();
  return std::visit(
    [](auto& x) -> result<Narrow> {
      if constexpr (std::is_constructible_v<Narrow, decltype(x)>)
        return Narrow{std::move(x)};
      else
        return error{errc::corrupt, std::string(x.tag) + " does not belong to this stream"};
    },
    *wide);
}
template <class Narrow>
std::string encode_as(const Narrow& x) {
  return std::visit([](const auto& one) { return encode(fact{one}); }, x);
}

std::string entity(experiment_id id);
std::string entity(trial_id id);
std::string entity(task_id id); ///< "trial/12", or "task/UUID"
std::string entity(allocation_id id);
inline constexpr const char* cluster_entity = "cluster";

} // namespace troupe

MSGPACK_ADD_ENUM(troupe::search_input)
MSGPACK_ADD_ENUM(troupe::deletion_step)
