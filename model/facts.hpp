#pragma once
// What the journal holds. A fact is an event's durable consequence, outcome included, with its time.
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
  value config; ///< complete
  std::string name, owner;
  std::string context;     ///< names the blob with the files of the experiment (a tar), or empty
  std::string source;      ///< the text that was submitted
  std::string key;         ///< key of the submission: the same key creates once; empty: none
  experiment_id parent;    ///< experiment that this one was forked from; 0: none
  project_id project{1};   ///< where it is until it is moved
  bool unmanaged = false;  ///< its trials are processes outside of the cluster, which report by themselves
  std::string external_id; ///< of an unmanaged one: name by which its owner finds it again; empty: none
  MSGPACK_DEFINE_ARRAY(at, id, config, name, owner, context, source, key, parent, project, unmanaged,
                       external_id)
};

struct agent_joined { ///< a new agent, or a known one with other slots or another address
  static constexpr const char* tag = "agent_joined";
  time_point at;
  std::string agent; ///< name of the agent
  std::string id;    ///< random, lives in its data directory
  int slots = 0;
  std::string host;
  std::string pool; ///< that it asked for; empty: none
  MSGPACK_DEFINE_ARRAY(at, agent, id, slots, host, pool)
};

struct experiment_swept { ///< it has ended, and the checkpoints that its policy does not keep are gone, with
                          ///< their files
  static constexpr const char* tag = "experiment_swept";
  time_point at;
  experiment_id id;
  MSGPACK_DEFINE_ARRAY(at, id)
};

struct agent_changed { ///< by an operator: what may be placed on an agent from now on
  static constexpr const char* tag = "agent_changed";
  time_point at;
  std::string agent;         ///< its name
  bool draining = false;     ///< nothing new is placed on it
  std::vector<int> disabled; ///< slots on which nothing new is placed, ascending
  std::string by;            ///< the user who ordered it
  bool ends = false;         ///< what runs on it is killed, and runs elsewhere
  std::vector<int> ended;    ///< of `disabled`, the slots of which the same is true
  MSGPACK_DEFINE_ARRAY(at, agent, draining, disabled, by, ends, ended)
};

struct agent_left { ///< by an operator: the agent is gone for good, and forgotten
  static constexpr const char* tag = "agent_left";
  time_point at;
  std::string agent; ///< its name
  std::string id;    ///< as in agent_joined
  std::string by;    ///< the user who ordered it
  MSGPACK_DEFINE_ARRAY(at, agent, id, by)
};

struct unix_account { ///< an account of a host that tasks run as
  std::int64_t uid = 0, gid = 0;
  std::string user, group;
  MSGPACK_DEFINE_ARRAY(uid, gid, user, group)
};
/// What a user is from now on, all fields, whether it is made or changed. Hashes of passwords stay outside of
/// the journal.
struct user_changed {
  static constexpr const char* tag = "user_changed";
  time_point at;
  std::string by; ///< name of the user who did it; "troupe": the first users, and those of an older directory
  user_id id;
  std::string name, display_name;
  bool admin = false, active = true;
  std::string password;         ///< names the hash that DIR/master/passwords holds; empty: a blank password
  std::uint64_t generation = 1; ///< tokens of an earlier one are void
  std::vector<unix_account> runs_as; ///< none or one
  bool remote = false;               ///< is known elsewhere: has no password here
  std::vector<std::string>
    former; ///< names that the user had, case folded: owner of what was made under them
  MSGPACK_DEFINE_ARRAY(at, by, id, name, display_name, admin, active, password, generation, runs_as, remote,
                       former)
};
enum class deletion_step : int { none = 0, ordered, failed, done };

/// A session's token got a name or is revoked, or an access token was made or changed. A plain login leaves
/// no fact.
struct token_changed {
  static constexpr const char* tag = "token_changed";
  time_point at;
  std::string by;
  user_id user;     ///< whom the token stands for
  std::string id;   ///< random number that the token carries; useless without the cluster's secret
  std::string name; ///< unique among the user's tokens; empty: of a plain session
  time_point until; ///< the token is void from then on in any case
  bool revoked = false;
  std::uint64_t number = 0; ///< of an access token, counted from 1; 0: of a session
  std::string description;  ///< what an access token is for
  time_point created;       ///< of an access token
  MSGPACK_DEFINE_ARRAY(at, by, user, id, name, until, revoked, number, description, created)
};
struct configuration_changed { ///< the configuration in force, whole
  static constexpr const char* tag = "configuration_changed";
  time_point at;
  std::string by;
  std::uint64_t revision = 0; ///< counts from 1
  value configuration;        ///< completed cluster file, as model/config/cluster_config.hpp reads it
  MSGPACK_DEFINE_ARRAY(at, by, revision, configuration)
};
struct setting_changed { ///< by an operator, in the shell
  static constexpr const char* tag = "setting_changed";
  time_point at;
  std::string by;
  std::string key; ///< "log.level", "trace.rate", "trace.max"
  value to;
  MSGPACK_DEFINE_ARRAY(at, by, key, to)
};

// What follows says what a thing is from now on, all fields, whether it is made or changed; `deleted`: it is
// gone. `owner` and `by` are names of accounts.

struct workspace_changed {
  static constexpr const char* tag = "workspace_changed";
  time_point at;
  std::string by;
  workspace_id id;
  std::string name, owner;
  bool archived = false, deleted = false;
  std::vector<std::string> pinned_by; ///< accounts that have it among their favourites
  std::vector<unix_account>
    runs_as;                ///< none or one: the account of the hosts for tasks that are started there
  value checkpoint_storage; ///< section of a configuration; null: none of its own
  std::string compute_pool, aux_pool;           ///< where tasks go that name none; empty: the cluster's
  deletion_step deletion = deletion_step::none; ///< it is deleted when what it holds is
  std::string error;                            ///< why its deletion failed
  MSGPACK_DEFINE_ARRAY(at, by, id, name, owner, archived, deleted, pinned_by, runs_as, checkpoint_storage,
                       compute_pool, aux_pool, deletion, error)
};
struct project_note {
  std::string name, contents;
  friend bool operator==(const project_note&, const project_note&) = default;
  MSGPACK_DEFINE_ARRAY(name, contents)
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
  deletion_step deletion = deletion_step::none; ///< it is deleted when its experiments are
  std::string error;                            ///< why its deletion failed
  MSGPACK_DEFINE_ARRAY(at, by, id, workspace, name, key, description, owner, notes, archived, deleted,
                       deletion, error)
};
struct template_changed {
  static constexpr const char* tag = "template_changed";
  time_point at;
  std::string by;
  std::string name; ///< unique in the cluster
  workspace_id workspace{1};
  value config; ///< as it was given: it is checked where it is used
  bool deleted = false;
  MSGPACK_DEFINE_ARRAY(at, by, name, workspace, config, deleted)
};
struct model_changed { ///< of the registry
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
  MSGPACK_DEFINE_ARRAY(at, by, id, name, description, notes, owner, labels, metadata, workspace, created,
                       archived, deleted)
};
struct model_version_changed {
  static constexpr const char* tag = "model_version_changed";
  time_point at;
  std::string by;
  model_id model;
  std::uint64_t version = 0; ///< counts from 1; the highest one's number comes again after its deletion
  std::string checkpoint;    ///< uuid
  std::string name, comment, notes, owner;
  std::vector<std::string> labels;
  value metadata; ///< an object
  time_point created;
  bool deleted = false;
  MSGPACK_DEFINE_ARRAY(at, by, model, version, checkpoint, name, comment, notes, owner, labels, metadata,
                       created, deleted)
};
struct experiment_moved {
  static constexpr const char* tag = "experiment_moved";
  time_point at;
  std::string by;
  experiment_id id;
  project_id project;
  MSGPACK_DEFINE_ARRAY(at, by, id, project)
};
/// What people say of an experiment; until there is one, the name and what the configuration says.
struct experiment_described {
  static constexpr const char* tag = "experiment_described";
  time_point at;
  std::string by;
  experiment_id id;
  std::string name, description, notes;
  std::vector<std::string> labels;
  bool archived = false;
  std::int64_t save_experiment_best = -1, save_trial_best = -1,
               save_trial_latest = -1; ///< checkpoints that are kept; -1: as the configuration says
  MSGPACK_DEFINE_ARRAY(at, by, id, name, description, notes, labels, archived, save_experiment_best,
                       save_trial_best, save_trial_latest)
};

/// An ended experiment is to be deleted; that failed; or it is gone, with its rows, reports, logs and files.
struct experiment_deleted {
  static constexpr const char* tag = "experiment_deleted";
  time_point at;
  std::string by;
  experiment_id id;
  deletion_step step = deletion_step::ordered;
  std::string why;              ///< where it failed
  std::vector<trial_id> trials; ///< when it is done: those that went with it
  MSGPACK_DEFINE_ARRAY(at, by, id, step, why, trials)
};
/// An ended trial is out of lists, or in them again, while its experiment stays.
struct trial_archived {
  static constexpr const char* tag = "trial_archived";
  time_point at;
  std::string by;
  experiment_id experiment;
  trial_id trial;
  bool archived = true;
  MSGPACK_DEFINE_ARRAY(at, by, experiment, trial, archived)
};
/// An ended trial of an ended experiment, which stays, is to be deleted; that failed; or it is gone.
struct trial_deleted {
  static constexpr const char* tag = "trial_deleted";
  time_point at;
  std::string by;
  experiment_id experiment;
  trial_id trial;
  deletion_step step = deletion_step::ordered;
  std::string why; ///< why it failed
  MSGPACK_DEFINE_ARRAY(at, by, experiment, trial, step, why)
};
/// An ended experiment goes on: the trials that did not complete, then what its search has left.
struct experiment_continued {
  static constexpr const char* tag = "experiment_continued";
  time_point at;
  std::string by;
  experiment_id id;
  std::uint32_t number = 0;     ///< counts the continuations of the experiment from 1
  std::vector<trial_id> trials; ///< those that run again, ascending
  value config;                 ///< complete, in place of the one it had; null: as it was
  MSGPACK_DEFINE_ARRAY(at, by, id, number, trials, config)
};
/// How long logs are kept, in place of what the configuration says.
struct log_retention_changed {
  static constexpr const char* tag = "log_retention_changed";
  time_point at;
  std::string by;
  experiment_id experiment;
  trial_id trial; ///< 0: of all its trials
  int days = -1;  ///< after a trial's end; -1: for ever
  MSGPACK_DEFINE_ARRAY(at, by, experiment, trial, days)
};
struct group_changed {
  static constexpr const char* tag = "group_changed";
  time_point at;
  std::string by;
  group_id id;
  std::string name;
  std::vector<user_id> members; ///< ascending
  bool deleted = false;
  MSGPACK_DEFINE_ARRAY(at, by, id, name, members, deleted)
};
/// A role was given to a user or a group, or taken.
struct roles_changed {
  static constexpr const char* tag = "roles_changed";
  time_point at;
  std::string by;
  int role = 0; ///< number as Determined has it
  user_id user; ///< one of these two
  group_id group;
  workspace_id workspace; ///< where it holds; 0: everywhere
  bool deleted = false;
  MSGPACK_DEFINE_ARRAY(at, by, role, user, group, workspace, deleted)
};
/// What configurations of a kind of work have to be.
struct policy_changed {
  static constexpr const char* tag = "policy_changed";
  time_point at;
  std::string by;
  workspace_id workspace; ///< 0: of the cluster
  std::string kind;       ///< "EXPERIMENT" or "NTSC"
  value policies;         ///< {invariant_config, constraints}; null: none
  MSGPACK_DEFINE_ARRAY(at, by, workspace, kind, policies)
};
struct pool_bound {
  static constexpr const char* tag = "pool_bound";
  time_point at;
  std::string by, pool;
  std::vector<workspace_id> workspaces; ///< that alone may use it, ascending; none: all may
  MSGPACK_DEFINE_ARRAY(at, by, pool, workspaces)
};
struct webhook_changed {
  static constexpr const char* tag = "webhook_changed";
  time_point at;
  std::string by;
  webhook_id id;
  std::string name, url;
  bool slack = false;
  workspace_id workspace; ///< 0: all
  bool specific = false;  ///< only for experiments that name it
  value triggers;         ///< a list of {type, condition}
  bool deleted = false;
  MSGPACK_DEFINE_ARRAY(at, by, id, name, url, slack, workspace, specific, triggers, deleted)
};
/// One delivery: queued, and at last delivered or given up.
struct webhook_event {
  static constexpr const char* tag = "webhook_event";
  time_point at;
  std::string id; ///< UUID of the event, which the receiver sees
  webhook_id webhook;
  std::string url;
  bool slack = false;
  std::string body;                            ///< JSON; empty where the delivery has ended
  deletion_step step = deletion_step::ordered; ///< done: delivered; failed: given up
  std::string why;                             ///< where it failed
  std::string about; ///< what it tells of, where that is told once: "log/TASK/TRIGGER"; empty: anything
  MSGPACK_DEFINE_ARRAY(at, id, webhook, url, slack, body, step, why, about)
};
struct cluster_message_changed {
  static constexpr const char* tag = "cluster_message_changed";
  time_point at;
  std::string by;
  std::string message;     ///< empty: none
  std::string from, until; ///< as they were sent; `until` may be empty
  time_point begins, ends; ///< ends: 0: never
  MSGPACK_DEFINE_ARRAY(at, by, message, from, until, begins, ends)
};
/// What a user's page keeps.
struct user_setting_changed {
  static constexpr const char* tag = "user_setting_changed";
  time_point at;
  std::string by;
  user_id user;
  std::string key, path;
  std::string text; ///< empty: it is removed
  MSGPACK_DEFINE_ARRAY(at, by, user, key, path, text)
};
struct project_visited {
  static constexpr const char* tag = "project_visited";
  time_point at;
  user_id user;
  project_id project;
  MSGPACK_DEFINE_ARRAY(at, user, project)
};
/// A trial began with a checkpoint for fine-tuning or inference: its metrics tell of the checkpoint.
struct trial_source_declared {
  static constexpr const char* tag = "trial_source_declared";
  time_point at;
  std::string by;
  trial_id trial;
  std::string checkpoint, kind, description; ///< kind: "INFERENCE" or "FINE_TUNING"
  model_id model;
  std::uint64_t version = 0;
  MSGPACK_DEFINE_ARRAY(at, by, trial, checkpoint, kind, description, model, version)
};

// ---- stream "experiment/N"

struct experiment_changed {
  static constexpr const char* tag = "experiment_changed";
  time_point at;
  experiment_state state = experiment_state::active;
  std::string why;
  MSGPACK_DEFINE_ARRAY(at, state, why)
};

struct trial_created { ///< part of search_stepped
  trial_id trial;
  std::string key; ///< the searcher's name for it
  value hparams;
  std::uint32_t seed = 0;
  std::string source_checkpoint;
  std::int64_t source_steps = 0; ///< steps of that checkpoint, where it is one of this search
  MSGPACK_DEFINE_ARRAY(trial, key, hparams, seed, source_checkpoint, source_steps)
};

struct trial_stop_decided { ///< part of search_stepped; rung is -1 where no rung decided
  trial_id trial;
  std::string why;
  int rung = -1;
  double units = 0, metric = 0, needed = 0;
  MSGPACK_DEFINE_ARRAY(trial, why, rung, units, metric, needed)
};

struct trial_resume_decided { ///< part of search_stepped: a trial that the search had paused goes on
  trial_id trial;
  double until = 0; ///< length to train to, in units of the time metric
  MSGPACK_DEFINE_ARRAY(trial, until)
};

/// Part of search_stepped: the trial goes on with these hyperparameters and the weights of another one's
/// checkpoint.
struct trial_perturb_decided {
  trial_id trial, source;
  std::string checkpoint;
  std::int64_t steps = 0; ///< steps of the checkpoint
  value hparams;
  std::uint32_t number = 0; ///< counts those of the trial from 1
  MSGPACK_DEFINE_ARRAY(trial, source, checkpoint, steps, hparams, number)
};

/// `ordered`: a process outside decides, and these are its orders (a `custom` search). `continued`: trials
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

/// One step of the search: what came in and all that was decided on it, as one fact.
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
  std::string checkpoint; ///< when checkpointed: its uuid; `steps` are its steps
  double time = 0;        ///< when checkpointed: how far the trial was, in units of the time metric
  MSGPACK_DEFINE_ARRAY(at, input, trial, row, steps, metrics, reason, created, stopped, shut_down, cancel,
                       failure, progress, paused, resumed, perturbed, checkpoint, time)
};

/// By a user: what the experiment may have of its pool from now on, all fields.
struct experiment_resources_changed {
  static constexpr const char* tag = "experiment_resources_changed";
  time_point at;
  std::string by;
  int priority = 0; ///< 1..99; 0: the pool's default
  double weight = 1;
  int max_slots = -1; ///< below 0: any number
  std::string pool;
  MSGPACK_DEFINE_ARRAY(at, by, priority, weight, max_slots, pool)
};

/// What experiment_continued ordered has reached the experiment.
struct experiment_resumed {
  static constexpr const char* tag = "experiment_resumed";
  time_point at;
  std::uint32_t number = 0;     ///< of the continuation
  std::vector<trial_id> trials; ///< those that run again
  bool configured = false;      ///< with another configuration: what users had set of its pool is over
  value hparams;                ///< of a search of one trial, by its configuration now; null: as before
  MSGPACK_DEFINE_ARRAY(at, number, trials, configured, hparams)
};

// ---- stream "trial/N"

/// Where the files of a checkpoint are: `key` within a store. A store is written KIND:PLACE, without secrets:
/// "directory:/mnt/ck" and "shared_fs:/mnt/ck" are folders that the hosts see (storage/checkpoints/).
struct checkpoint_place {
  std::string store, key;
  friend bool operator==(const checkpoint_place&, const checkpoint_place&) = default;
  MSGPACK_DEFINE_ARRAY(store, key)
};

struct checkpoint {
  std::string uuid;
  std::int64_t steps = 0;
  std::map<std::string, std::int64_t> files; ///< bytes by path
  value metadata;
  std::string path;       ///< absolute, of its folder; empty where its store is not a folder of the hosts
  checkpoint_place place; ///< empty in facts of older builds, which have the path alone
  MSGPACK_DEFINE_ARRAY(uuid, steps, files, metadata, path, place)
};

struct trial_activated {
  static constexpr const char* tag = "trial_activated";
  time_point at;
  MSGPACK_DEFINE_ARRAY(at)
};
struct trial_paused {
  static constexpr const char* tag = "trial_paused";
  time_point at;
  MSGPACK_DEFINE_ARRAY(at)
};
struct trial_stop_ordered { ///< ordered by the searcher, a cancel or a kill
  static constexpr const char* tag = "trial_stop_ordered";
  time_point at;
  trial_state outcome = trial_state::completed; ///< state in which the trial will end
  bool kill = false;                            ///< true: at once, without a last checkpoint
  std::string why;
  MSGPACK_DEFINE_ARRAY(at, outcome, kill, why)
};
struct trial_perturbed { ///< what trial_perturb_decided ordered; the runs so far are of no more use
  static constexpr const char* tag = "trial_perturbed";
  time_point at;
  std::uint32_t number = 0;
  run_id run; ///< the latest at this moment: reports and checkpoints of it and of earlier ones count no more
  std::string checkpoint;
  std::int64_t steps = 0;
  value hparams;
  MSGPACK_DEFINE_ARRAY(at, number, run, checkpoint, steps, hparams)
};
struct run_started {
  static constexpr const char* tag = "run_started";
  time_point at;
  run_id run;
  std::string from_checkpoint; ///< uuid, or empty
  std::int64_t from_steps = 0; ///< reports of earlier runs above this are archived
  MSGPACK_DEFINE_ARRAY(at, run, from_checkpoint, from_steps)
};
struct checkpoint_recorded {
  static constexpr const char* tag = "checkpoint_recorded";
  time_point at;
  run_id run;
  checkpoint saved;
  MSGPACK_DEFINE_ARRAY(at, run, saved)
};
struct checkpoint_changed { ///< files of a recorded checkpoint were deleted; also after the trial's end
  static constexpr const char* tag = "checkpoint_changed";
  time_point at;
  std::string uuid;
  std::map<std::string, std::int64_t> files; ///< bytes by path that are left; none: it is deleted
  std::string by;                            ///< who did it; empty: retention, or the task
  MSGPACK_DEFINE_ARRAY(at, uuid, files, by)
};
struct checkpoint_described { ///< by a user; replaces the metadata; also after the trial's end
  static constexpr const char* tag = "checkpoint_described";
  time_point at;
  std::string by, uuid;
  value metadata;
  MSGPACK_DEFINE_ARRAY(at, by, uuid, metadata)
};
struct trial_metadata_set { ///< by a user or the script; replaces the former; also after the trial's end
  static constexpr const char* tag = "trial_metadata_set";
  time_point at;
  value metadata;
  MSGPACK_DEFINE_ARRAY(at, metadata)
};
struct trial_progressed { ///< progress that the script told; at most one fact for each whole percent
  static constexpr const char* tag = "trial_progressed";
  time_point at;
  double progress = 0; ///< 0..1
  MSGPACK_DEFINE_ARRAY(at, progress)
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
  MSGPACK_DEFINE_ARRAY(at, run, why, restarts, losses, retry_at, detail)
};
struct trial_ended {
  static constexpr const char* tag = "trial_ended";
  time_point at;
  trial_state state = trial_state::completed;
  std::string why;
  int exit_reason = -1; ///< searchers::exit_reason where the searcher must hear one, else -1
  MSGPACK_DEFINE_ARRAY(at, state, why, exit_reason)
};

/// Of an unmanaged trial: its process lives. At most one fact in half a minute. One that had ended runs
/// again.
struct trial_heard {
  static constexpr const char* tag = "trial_heard";
  time_point at;
  MSGPACK_DEFINE_ARRAY(at)
};

/// Its experiment was continued: the trial is open again, without restarts, from its newest checkpoint.
struct trial_continued {
  static constexpr const char* tag = "trial_continued";
  time_point at;
  std::uint32_t number = 0; ///< as in experiment_resumed
  run_id run;               ///< the latest before; 0: none
  MSGPACK_DEFINE_ARRAY(at, number, run)
};
/// A line of its log matched a pattern of `log_policies`.
struct log_policy_matched {
  static constexpr const char* tag = "log_policy_matched";
  time_point at;
  run_id run;
  std::string policy;          ///< name of the policy; empty: it has none
  std::string pattern, line;   ///< `line` is cut to 1,000 bytes
  std::string exclude_agent;   ///< agent on which no further run of the task is placed; empty: none
  bool cancel_retries = false; ///< the next failure of the task is its last
  MSGPACK_DEFINE_ARRAY(at, run, policy, pattern, line, exclude_agent, cancel_retries)
};

// ---- stream "task/UUID", with run_started and run_ended

struct task_created {
  static constexpr const char* tag = "task_created";
  time_point at;
  task_id id; ///< says its kind, too
  std::string owner;
  std::string name; ///< for people: the description of its configuration
  workspace_id workspace{1};
  value config;        ///< complete
  std::string context; ///< names the blob with its files (a tar), or empty
  std::string pool;
  value details;       ///< what its kind has besides: keys of a shell, what a TensorBoard shows
  task_id parent;      ///< of a generic task; none: it is a root
  task_id forked_from; ///< none: it is no fork
  int no_pause = -1;   ///< 1: it is never paused; 0: it is paused with its parent; -1: nothing was said
  std::string source;  ///< the text that was submitted
  MSGPACK_DEFINE_ARRAY(at, id, owner, name, workspace, config, context, pool, details, parent, forked_from,
                       no_pause, source)
};
struct task_ready { ///< its service answers
  static constexpr const char* tag = "task_ready";
  time_point at;
  run_id run;
  std::vector<unix_account> runs_as; ///< none or one: the account that its service runs as, by its own word
  MSGPACK_DEFINE_ARRAY(at, run, runs_as)
};
struct task_active { ///< somebody uses it; at most one fact a minute
  static constexpr const char* tag = "task_active";
  time_point at;
  MSGPACK_DEFINE_ARRAY(at)
};
struct task_paused { ///< or, with `paused` false, it is to go on
  static constexpr const char* tag = "task_paused";
  time_point at;
  bool paused = true;
  std::string by;
  MSGPACK_DEFINE_ARRAY(at, paused, by)
};
struct task_stop_ordered { ///< it is to end at once
  static constexpr const char* tag = "task_stop_ordered";
  time_point at;
  std::string why; ///< "killed by eve", "idle for more than 5m0s"
  MSGPACK_DEFINE_ARRAY(at, why)
};
struct task_prioritized {
  static constexpr const char* tag = "task_prioritized";
  time_point at;
  std::string by;
  int priority = 0; ///< 1..99
  MSGPACK_DEFINE_ARRAY(at, by, priority)
};
struct task_ended {
  static constexpr const char* tag = "task_ended";
  time_point at;
  task_state state = task_state::completed;
  int exit_code = 0; ///< of its program; -1: it has none
  std::string why;
  MSGPACK_DEFINE_ARRAY(at, state, exit_code, why)
};

// ---- stream "task/UUID" of a collection of checkpoints, which has no other facts

/// Files of an experiment's checkpoints are to be removed (`step` ordered), and at last that is over: done,
/// or failed with the first reason. Both facts have the fields of the order.
struct checkpoint_files_removed {
  static constexpr const char* tag = "checkpoint_files_removed";
  time_point at;
  std::string by; ///< user who asked for it; empty: what the experiment keeps of its checkpoints said so
  task_id id;     ///< of kind checkpoint_gc
  deletion_step step = deletion_step::ordered;
  experiment_id experiment;
  std::string cause;         ///< "policy", "experiment" (it is deleted), "trial", "tensorboards" or "files"
  std::string owner;         ///< of the experiment
  workspace_id workspace{1}; ///< where the experiment is
  std::string pool;          ///< the cluster's default one, for clients that want to show one
  std::vector<std::string> checkpoints,
    globs;                   ///< with cause "files": UUIDs, and patterns of what goes of these
  std::uint64_t removed = 0; ///< checkpoints of which files were removed
  std::uint64_t failed = 0;  ///< those of which a file could not be removed
  std::string why;           ///< the first reason of a failure
  trial_id trial;            ///< with cause "trial": it alone is deleted
  MSGPACK_DEFINE_ARRAY(at, by, id, step, experiment, cause, owner, workspace, pool, checkpoints, globs,
                       removed, failed, why, trial)
};

// ---- stream "allocation/N.R"

struct placement { ///< the part of a gang on one agent
  std::string agent;
  std::vector<int> slots;
  MSGPACK_DEFINE_ARRAY(agent, slots)
};
struct allocation_placed { ///< committed before the start order leaves
  static constexpr const char* tag = "allocation_placed";
  time_point at;
  std::vector<placement> on;
  std::string pool;        ///< empty in facts of older builds
  bool backfilled = false; ///< while a more urgent request waited
  std::string home;        ///< the pool that it fell back from; empty: none
  MSGPACK_DEFINE_ARRAY(at, on, pool, backfilled, home)
};
struct allocation_preempted { ///< the pool wants its slots: it is asked to save and exit
  static constexpr const char* tag = "allocation_preempted";
  time_point at;
  allocation_id wanted_by; ///< who gets them; none: no one in particular
  std::string reason;      ///< "priority", "fair_share", "max_slots", "quota", "disabled" or "pool"
  MSGPACK_DEFINE_ARRAY(at, wanted_by, reason)
};
struct allocation_ready { ///< all parts of the gang have called: each may be told the others' addresses
  static constexpr const char* tag = "allocation_ready";
  time_point at;
  MSGPACK_DEFINE_ARRAY(at)
};
struct allocation_yielded { ///< the script agreed to stop: its end is none of training, whatever its exit
                            ///< code
  static constexpr const char* tag = "allocation_yielded";
  time_point at;
  bool outside = false; ///< nobody here had asked it: something outside of the cluster did
  MSGPACK_DEFINE_ARRAY(at, outside)
};
struct allocation_gave_up { ///< the script says that its hyperparameters cannot be trained
  static constexpr const char* tag = "allocation_gave_up";
  time_point at;
  MSGPACK_DEFINE_ARRAY(at)
};
struct part_made_daemon { ///< the end of this part of the gang does not count
  static constexpr const char* tag = "part_made_daemon";
  time_point at;
  std::string agent;
  MSGPACK_DEFINE_ARRAY(at, agent)
};
/// A rank of the gang is gone while the run was open, or all of them on an agent that is. Its consequence is
/// another fact: the end of the run, or allocation_resized.
struct member_lost {
  static constexpr const char* tag = "member_lost";
  time_point at;
  std::string agent;
  int rank = -1;   ///< rank in the gang; -1: every rank on the agent
  std::string why; ///< text for people: "signal 9", "silent for 20 s"
  MSGPACK_DEFINE_ARRAY(at, agent, rank, why)
};
/// The gang goes on with another number of ranks: at once with those that are left, which go back to the last
/// checkpoint, or, where it is `later`, as the next run, since slots are there again.
struct allocation_resized {
  static constexpr const char* tag = "allocation_resized";
  time_point at;
  std::uint32_t generation = 0; ///< number of the group of ranks; counts the changes within the run
  std::vector<int> members;     ///< the ranks it started with that are left, in the order of their new ranks
  int ranks = 0;                ///< how many there will be
  bool later = false;
  std::string why;
  MSGPACK_DEFINE_ARRAY(at, generation, members, ranks, later, why)
};
struct allocation_closed {
  static constexpr const char* tag = "allocation_closed";
  time_point at;
  end why = end::completed;
  int exit_code = 0;
  std::string detail;
  bool finished =
    false; ///< completed although it was asked to stop, and did not agree to: its training is over
  bool unplaceable = false; ///< failed before it was placed: log policies exclude all that could hold it
  bool unbegun = false;     ///< lost before any part of it had begun
  MSGPACK_DEFINE_ARRAY(at, why, exit_code, detail, finished, unplaceable, unbegun)
};

// ---- stream "provider/POOL"

/// Of the instances of an elastic pool. `ordered` is committed before the provider is called.
struct instance_changed {
  static constexpr const char* tag = "instance_changed";
  time_point at;
  std::string pool;
  std::string what;             ///< "ordered", "launched", "failed", "adopted", "ended" or "gone"
  std::uint64_t order = 0;      ///< number of the launch, counts from 1; 0: it belongs to none
  int count = 0;                ///< instances that are ordered
  std::vector<std::string> ids; ///< of the instances; "gone" without ids: nothing is left of that provider
  std::string why; ///< why it failed or ended, text for people; of "ordered" the type of the provider
  MSGPACK_DEFINE_ARRAY(at, pool, what, order, count, ids, why)
};

using provider_fact = std::variant<instance_changed>;
using collection_fact = std::variant<checkpoint_files_removed>; ///< of stream "task/UUID" of a collection
using catalogue_fact =
  std::variant<user_changed, token_changed, configuration_changed, setting_changed>; ///< of stream "cluster"
using place_fact = std::variant<workspace_changed, project_changed, experiment_moved,
                                experiment_described>; ///< of stream "cluster"
using registry_fact =
  std::variant<template_changed, model_changed, model_version_changed>; ///< of stream "cluster"
/// Of stream "cluster": who belongs together and may what, what each person keeps.
using people_fact = std::variant<group_changed, roles_changed, user_setting_changed, project_visited>;
/// Of stream "cluster": what holds for work that others submit, and who is told of it.
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
/// Fails with errc::corrupt on other bytes, errc::unsupported on a tag or version this build does not know.
result<fact> decode(std::string_view bytes);

/// A fact of a smaller variant, as the stream's own type; errc::corrupt where it belongs to another stream.
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
