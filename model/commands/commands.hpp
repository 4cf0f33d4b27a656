#pragma once
// Every command between API, shell, embedding, inspector and actors: each is a struct of its fields with what
// the table (table.hpp) says about it. Only these lines check a command, where it is made and where it is
// taken.
//
// To add one: write a struct here, add its name to the list of the actor that takes it, and a member function
// `on` there. `fields` is a template, because otherwise each source that includes a command would instantiate
// the tuple of its fields.

#include "model/commands/about.hpp"

namespace troupe::commands {

using enum taker;
using authority::action;
using authority::thing;

// ---- experiments and searches

struct experiment_create {
  value config; ///< the submitted text, or the object that stands for it
  std::string config_name = "experiment.yaml", name, template_name;
  bool activate = true;
  std::string key;
  bytes context;
  std::string context_blob;
  experiment_id parent;
  project_id project;
  bool unmanaged = false;
  std::string external_id;
  template <class t = experiment_create>
  static constexpr auto fields() {
    return std::tuple{
      need("config", &t::config, "text of the configuration, as submitted"),
      maybe("config_name", &t::config_name, "the file that diagnostics name"),
      maybe("name", &t::name, "replaces the name in the configuration, unless empty"),
      maybe("template", &t::template_name, "name of a template below the configuration"),
      maybe("activate", &t::activate, "false: it begins paused"),
      maybe("key", &t::key, "a second creation with the same key answers the first one's id"),
      maybe("context", &t::context, "the checked files, always a tar.gz"),
      maybe("context_blob", &t::context_blob, "name of a stored blob in place of `context`"),
      maybe("parent", &t::parent, "the experiment that it was forked from"),
      maybe("project", &t::project, "where it belongs; 0: what the configuration names"),
      maybe("unmanaged", &t::unmanaged, "true: its trials are processes outside of the cluster"),
      maybe("external_id", &t::external_id,
            "of an unmanaged one: a second creation with it answers the first one's id")};
  }
  static constexpr about is{
    "experiment.create",
    cluster,
    {action::create, thing::experiment},
    repeat::by_key,
    "Creates an experiment; answered when it is durable, and paused where it was asked "
    "for. `invalid` carries the rendered diagnostics.",
    "{id, warnings}"};
};

struct experiment_validate {
  value config;
  std::string config_name = "experiment.yaml", template_name;
  project_id project;
  bool unmanaged = false;
  template <class t = experiment_validate>
  static constexpr auto fields() {
    return std::tuple{
      need("config", &t::config, "text of the configuration, as submitted"),
      maybe("config_name", &t::config_name, "the file that diagnostics name"),
      maybe("template", &t::template_name, "name of a template below the configuration"),
      maybe("project", &t::project, "where it would belong; 0: what the configuration names"),
      maybe("unmanaged", &t::unmanaged, "whether its trials would run outside of the cluster")};
  }
  static constexpr about is{"experiment.validate",
                            cluster,
                            {action::create, thing::experiment},
                            repeat::question,
                            "Checks a configuration as experiment.create does, and creates nothing."};
};

/// What the four orders to an experiment share.
template <class T>
constexpr auto fields_of_experiment() {
  return std::tuple{need("id", &T::id, "number of the experiment")};
}

struct experiment_activate {
  experiment_id id;
  static constexpr auto fields() { return fields_of_experiment<experiment_activate>(); }
  static constexpr about is{"experiment.activate",
                            cluster,
                            {action::change, thing::experiment},
                            repeat::safe,
                            "Resumes a paused experiment; `conflict` where it has ended.",
                            "{}",
                            {"activate", {"experiment"}, {"id"}}};
};
struct experiment_pause {
  experiment_id id;
  static constexpr auto fields() { return fields_of_experiment<experiment_pause>(); }
  static constexpr about is{"experiment.pause",
                            cluster,
                            {action::change, thing::experiment},
                            repeat::safe,
                            "Pauses an experiment: its trials save a checkpoint and release their slots; "
                            "`conflict` where it has ended.",
                            "{}",
                            {"pause", {"experiment"}, {"id"}}};
};
struct experiment_cancel {
  experiment_id id;
  static constexpr auto fields() { return fields_of_experiment<experiment_cancel>(); }
  static constexpr about is{"experiment.cancel",
                            cluster,
                            {action::change, thing::experiment},
                            repeat::safe,
                            "Ends an experiment; its trials save a checkpoint first.",
                            "{}",
                            {"cancel", {"experiment"}, {"id"}}};
};
struct experiment_kill {
  experiment_id id;
  static constexpr auto fields() { return fields_of_experiment<experiment_kill>(); }
  static constexpr about is{"experiment.kill",
                            cluster,
                            {action::kill, thing::experiment},
                            repeat::safe,
                            "Ends an experiment at once; what its runs have not saved is lost.",
                            "{}",
                            {"kill", {"experiment"}, {"id"}}};
};

struct experiment_continue {
  experiment_id id;
  value config;
  template <class t = experiment_continue>
  static constexpr auto fields() {
    return std::tuple{
      need("id", &t::id, "number of the experiment"),
      maybe("config", &t::config, "text that is laid over its configuration; of a `single` search alone")};
  }
  static constexpr about is{
    "experiment.continue",
    cluster,
    {action::change, thing::experiment},
    repeat::safe,
    "Continues an experiment that has ended: the trial of a `single` search from its newest checkpoint, of "
    "`random` "
    "and `grid` the trials that did not complete, then the rest; `conflict` where it has not ended.",
    "{}"};
};

struct trial_kill {
  trial_id id;
  static constexpr auto fields() { return std::tuple{need("id", &trial_kill::id, "number of the trial")}; }
  static constexpr about is{"trial.kill",
                            cluster,
                            {action::kill, thing::trial},
                            repeat::safe,
                            "Ends one trial of a search at once; what its run has not saved is lost.",
                            "{}",
                            {"kill", {"trial"}, {"id"}}};
};

struct search_order {
  experiment_id id;
  value orders = value::object();
  template <class t = search_order>
  static constexpr auto fields() {
    return std::tuple{need("id", &t::id, "number of the experiment"),
                      need("orders", &t::orders, "what the driver of a custom search decided").an_object()};
  }
  static constexpr about is{"search.order",
                            cluster,
                            {action::change, thing::experiment},
                            repeat::by_key,
                            "Takes the orders of the process that drives a custom search; `invalid` where "
                            "they are not possible. Safe to repeat with `upto`.",
                            "{last, trials: {KEY: id}}"};
};
struct search_wait {
  experiment_id id;
  std::uint64_t after = 0;
  std::int64_t timeout_ms = 0;
  template <class t = search_wait>
  static constexpr auto fields() {
    return std::tuple{
      need("id", &t::id, "number of the experiment"),
      maybe("after", &t::after, "number of the newest fact that the caller knows"),
      maybe("timeout_ms", &t::timeout_ms, "longest wait in milliseconds; 0: answered at once")};
  }
  static constexpr about is{"search.wait",
                            cluster,
                            {action::view, thing::experiment},
                            repeat::question,
                            "Waits until the experiment has a fact above `after`, or the time is over."};
};

struct trial_metadata {
  trial_id id;
  template <class t = trial_metadata>
  static constexpr auto fields() {
    return std::tuple{need("id", &t::id, "number of the trial")};
  }
  static constexpr about is{
    "trial.metadata",           cluster,     {action::view, thing::trial}, repeat::question,
    "The metadata of a trial.", "{metadata}"};
};
struct trial_set_metadata {
  trial_id id;
  value metadata = value::object();
  std::string by;
  template <class t = trial_set_metadata>
  static constexpr auto fields() {
    return std::tuple{need("id", &t::id, "number of the trial"),
                      need("metadata", &t::metadata, "replaces what the trial has").an_object(),
                      maybe("by", &t::by, "name of the user: the cluster says it to the trial")};
  }
  static constexpr about is{"trial.set_metadata",
                            cluster,
                            {action::change, thing::trial},
                            repeat::safe,
                            "Notes metadata of the trial; answered once durable.",
                            "{metadata}",
                            {"set_metadata", {"trial"}, {"id"}}};
};

using file_sizes = std::map<std::string, std::int64_t>; ///< bytes by path; those of folders end with '/'

struct checkpoint_patch {
  struct one {
    std::string uuid;
    std::optional<file_sizes> files;
    template <class t = one>
    static constexpr auto fields() {
      return std::tuple{need("uuid", &t::uuid, "of the checkpoint"),
                        maybe("files", &t::files,
                              "the bytes by path that are left; empty: deleted; missing: stay as they are")};
    }
  };
  std::vector<one> checkpoints;
  template <class t = checkpoint_patch>
  static constexpr auto fields() {
    return std::tuple{need("checkpoints", &t::checkpoints, "what is left of each")};
  }
  static constexpr about is{"checkpoint.patch",
                            cluster,
                            {action::change, thing::checkpoint},
                            repeat::safe,
                            "Notes which files of checkpoints are left; answered once durable. `invalid` "
                            "where a user names one that is registered as a version of a model."};
};
/// To the running trial: the files of one checkpoint.
struct checkpoint_files {
  std::string uuid;
  file_sizes files;
  std::string by;
  template <class t = checkpoint_files>
  static constexpr auto fields() {
    return std::tuple{need("uuid", &t::uuid, "of the checkpoint"),
                      need("files", &t::files, "the bytes by path that are left; empty: deleted"),
                      maybe("by", &t::by, "name of the user; empty: the task")};
  }
  static constexpr about is{
    "checkpoint.files",
    trial,
    {action::change, thing::checkpoint},
    repeat::safe,
    "Hands one checkpoint of checkpoint.patch from the cluster to the trial that owns it."};
};

/// From the cluster to the running trial, or the running task of another kind: a line of its log matched a
/// pattern.
struct log_match {
  run_id run;
  std::string agent, policy, pattern, line;
  bool exclude_agent = false, cancel_retries = false;
  template <class t = log_match>
  static constexpr auto fields() {
    return std::tuple{need("run", &t::run, "number of the run that wrote it"),
                      need("agent", &t::agent, "where it was written"),
                      maybe("policy", &t::policy, "name of the policy"),
                      need("pattern", &t::pattern, "the regular expression"),
                      need("line", &t::line, "the line, cut to 1,000 bytes"),
                      maybe("exclude_agent", &t::exclude_agent, "no further run is placed on the agent"),
                      maybe("cancel_retries", &t::cancel_retries, "no run follows a failure")};
  }
  static constexpr about is{
    "log.match",
    trial,
    {action::report, thing::log},
    repeat::safe,
    "Tells a trial, or a task of another kind, that a line of its log matched one of its "
    "log policies."};
};

// ---- the cluster

template <class T>
struct without_fields {
  static constexpr auto fields() { return std::tuple<>{}; }
};

struct status : without_fields<status> {
  static constexpr about is{"status",
                            cluster,
                            {action::view, thing::cluster},
                            repeat::question,
                            "Slots, agents and running experiments in numbers.",
                            "{slots: {total, used}, agents, waiting, experiments_active}",
                            {"status", {"cluster"}, {}}};
};
struct agent_list : without_fields<agent_list> {
  static constexpr about is{
    "agent.list",
    cluster,
    {action::view, thing::agent},
    repeat::question,
    "The agents with their slots, and with the runs that have none (`aux`). `state` is alive, away or "
    "draining; `since` is the time of the newest registration. What is not enabled takes no new work; what "
    "drains ends by itself.",
    "{agents: [{id, name, host, pool, since, state, enabled, draining, labels, slots: [{id, device, enabled, "
    "draining, brand?, uuid?, usage?, allocation?}], aux: [{allocation}]}]}"};
};
struct queue_list : without_fields<queue_list> {
  static constexpr about is{"queue.list",
                            cluster,
                            {action::view, thing::cluster},
                            repeat::question,
                            "The allocations that wait for slots, by pool and turn.",
                            "{waiting: [{position, allocation, trial, experiment, pool, slots, priority, "
                            "weight, user, since, reason}]}"};
};
struct pool_list : without_fields<pool_list> {
  static constexpr about is{"pool.list",
                            cluster,
                            {action::view, thing::cluster},
                            repeat::question,
                            "The resource pools.",
                            "{pools: [{name, default, scheduler, preemption, slots: {total, used, reserved}, "
                            "agents, waiting, experiments, provider}]}"};
};
struct agent_drain {
  std::string agent;
  bool on = true;
  std::optional<std::int64_t> slot;
  bool ends = false;
  template <class t = agent_drain>
  static constexpr auto fields() {
    return std::tuple{need("agent", &t::agent, "name of the agent"),
                      maybe("on", &t::on, "false takes it back; true unless said"),
                      maybe("slot", &t::slot, "one slot of the agent; the whole agent unless said"),
                      maybe("ends", &t::ends,
                            "what runs there is killed; trials and generic tasks run elsewhere, others end")};
  }
  static constexpr about is{
    "agent.drain",
    cluster,
    {action::change, thing::agent},
    repeat::safe,
    "Drains an agent, or one slot of it: nothing new is placed there, and running tasks "
    "continue, unless they are to end.",
    "{}",
    {"drain", {"agent"}, {"agent"}}};
};
struct agent_remove {
  std::string agent;
  template <class t = agent_remove>
  static constexpr auto fields() {
    return std::tuple{need("agent", &t::agent, "name of the agent")};
  }
  static constexpr about is{
    "agent.remove",
    cluster,
    {action::remove, thing::agent},
    repeat::safe,
    "Forgets an agent that is gone for good. `conflict` while the agent is connected, "
    "and until its runs are given away.",
    "{}",
    {"remove", {"agent"}, {"agent"}}};
};
/// From an agent over the node link; an older agent's message has the same fields.
struct agent_slots {
  std::string agent, token;
  value slots = value::array();
  template <class t = agent_slots>
  static constexpr auto fields() {
    return std::tuple{
      need("agent", &t::agent, "name of the agent"), maybe("token", &t::token, "its fence token"),
      need("slots", &t::slots, "[{device, brand, uuid?, usage}], in the order of their ids").a_list()};
  }
  static constexpr about is{"agent.slots",
                            cluster,
                            {action::report, thing::secret},
                            repeat::safe,
                            "The agent tells the devices and the use of its slots, over the node link. "
                            "`denied` where the token is not the agent's."};
};
struct fence {
  std::string agent, allocation, token;
  bool dead = false;
  template <class t = fence>
  static constexpr auto fields() {
    return std::tuple{need("agent", &t::agent, "name of the agent that closed its socket"),
                      need("allocation", &t::allocation, "of the sandbox, as 12.3"),
                      need("token", &t::token, "fence token of the agent"),
                      maybe("dead", &t::dead, "nothing of the sandbox lives any more")};
  }
  static constexpr about is{"fence",
                            cluster,
                            {action::report, thing::secret},
                            repeat::safe,
                            "The sandbox of an agent that died asks whether to end its task. `denied` where "
                            "the token is not the agent's.",
                            "{kill}"};
};
struct logs_cleanup : without_fields<logs_cleanup> {
  static constexpr about is{"logs.cleanup",
                            cluster,
                            {action::remove, thing::log},
                            repeat::safe,
                            "Erases the logs of ended trials whose log_retention_days are over.",
                            "{removedCount}",
                            {"clean_logs", {"cluster", "retention"}, {}}};
};
struct node_shutdown : without_fields<node_shutdown> {
  static constexpr about is{"node.shutdown",
                            cluster,
                            {action::kill, thing::cluster},
                            repeat::safe,
                            "Ends the master's process; it recovers at the next start."};
};

struct configuration_get : without_fields<configuration_get> {
  static constexpr about is{
    "configuration.get",
    configuration,
    {action::view, thing::configuration},
    repeat::question,
    "The configuration in force, null and revision 0 where none was put; and the users that "
    "no file made.",
    "{configuration, revision, by_hand: {users: [name]}}"};
};
struct configuration_put {
  value configuration = value::object(), secrets = value::object();
  std::vector<std::string> prune;
  std::uint64_t revision = 0;
  template <class t = configuration_put>
  static constexpr auto fields() {
    return std::tuple{
      need("configuration", &t::configuration, "as a cluster file says it, completed").an_object(),
      maybe("secrets", &t::secrets, "{users: {NAME: PASSWORD}}").an_object(),
      maybe("prune", &t::prune, "users that are made inactive though no file made them"),
      maybe("revision", &t::revision, "of the configuration that the caller has seen")};
  }
  static constexpr about is{
    "configuration.put",
    taker::configuration,
    {action::change, thing::configuration},
    repeat::safe,
    "Puts another configuration in force; durable when answered. `conflict` where "
    "`revision` is not the newest, or where experiments run in a pool that it no longer "
    "names. A repeat settles what a crash left.",
    "{revision, tokens: [{user, name, file}]}"};
};
/// From the node that puts a configuration in force, before users and tokens follow.
struct configuration_record {
  value configuration;
  std::uint64_t revision = 0;
  template <class t = configuration_record>
  static constexpr auto fields() {
    return std::tuple{need("configuration", &t::configuration, "the one that is wanted"),
                      need("revision", &t::revision, "of the configuration in force; 0: none is")};
  }
  static constexpr about is{"configuration.record",
                            cluster,
                            {action::change, thing::configuration},
                            repeat::again,
                            "Decides whether the configuration can be in force now, notes it and has pools "
                            "and agents follow. `conflict` where `revision` is not the newest.",
                            "{revision}"};
};
struct setting_change {
  std::string key;
  value to;
  template <class t = setting_change>
  static constexpr auto fields() {
    return std::tuple{need("key", &t::key, "log.level, trace.max, trace.rate"),
                      need("value", &t::to, "what it is set to")};
  }
  static constexpr about is{"setting.change",
                            cluster,
                            {action::change, thing::configuration},
                            repeat::safe,
                            "Notes a setting of an operator; the desk of the shell has checked it."};
};

// ---- users and their tokens

struct host_account {
  std::int64_t uid = 0, gid = 0;
  std::string user, group;
  template <class t = host_account>
  static constexpr auto fields() {
    return std::tuple{
      need("uid", &t::uid, "number of the account"), need("gid", &t::gid, "number of its group"),
      need("user", &t::user, "name of the account"), need("group", &t::group, "name of its group")};
  }
};
/// What is wanted of a user. An absent field stays as it is, or gets the default of a new user.
struct user_wish {
  std::optional<std::string> name, display_name, password;
  std::optional<bool> admin, active, remote;
  std::optional<host_account> runs_as;
};
template <class T>
constexpr auto wish_fields() {
  return std::tuple{
    maybe("display_name", &T::display_name, "what people see"),
    maybe("password", &T::password, "name of the hash that the node keeps; empty: blank"),
    maybe("admin", &T::admin, "whether the user may change the cluster"),
    maybe("active", &T::active, "whether the user may log in"),
    maybe("remote", &T::remote, "whether the user is known elsewhere, and has no password here"),
    maybe("runs_as", &T::runs_as, "account of the hosts for the user's tasks")};
}
struct user_create : user_wish {
  template <class t = user_create>
  static constexpr auto fields() {
    return std::tuple_cat(
      std::tuple{field<t, std::optional<std::string>>({"name", "how the user logs in", true}, &t::name)},
      wish_fields<t>());
  }
  static constexpr about is{"user.create",
                            cluster,
                            {action::create, thing::user},
                            repeat::again,
                            "Creates a user; `invalid` where the name is taken.",
                            "{id}"};
};
struct user_change : user_wish {
  user_id id;
  template <class t = user_change>
  static constexpr auto fields() {
    return std::tuple_cat(
      std::tuple{need("id", &t::id, "number of the user"),
                 field<t, std::optional<std::string>>({"name", "how the user logs in", false}, &t::name)},
      wish_fields<t>());
  }
  static constexpr about is{"user.change",
                            cluster,
                            {action::change, thing::self},
                            repeat::again,
                            "Changes a user. A new password and a deactivation void all tokens of the user."};
};
struct token_name {
  user_id user;
  std::string id;
  std::int64_t until = 0;
  std::string name;
  template <class t = token_name>
  static constexpr auto fields() {
    return std::tuple{need("user", &t::user, "number of the user whom it stands for"),
                      need("id", &t::id, "random number that the token carries"),
                      need("until", &t::until, "when it ends, in microseconds since 1970"),
                      need("name", &t::name, "unique among the user's tokens")};
  }
  static constexpr about is{"token.name",
                            cluster,
                            {action::create, thing::token},
                            repeat::safe,
                            "Gives a session's token a name; an older token of that name is revoked."};
};
struct token_revoke {
  user_id user;
  std::string id;
  std::int64_t until = 0;
  template <class t = token_revoke>
  static constexpr auto fields() {
    return std::tuple{need("user", &t::user, "number of the user whom it stands for"),
                      need("id", &t::id, "random number that the token carries"),
                      need("until", &t::until, "when it ends, in microseconds since 1970")};
  }
  static constexpr about is{
    "token.revoke", cluster, {action::remove, thing::session}, repeat::safe, "Ends a session's token."};
};

// ---- from tasks: `allocation` and `experiment` are the caller's own, known by its token

struct from_task {
  std::string allocation; ///< "12.3"
  experiment_id experiment;
};
template <class T, class... More>
constexpr auto task_fields(More... more) {
  return std::tuple{field<T, std::string>({"allocation", "the caller's own, as 12.3"}, &T::allocation),
                    field<T, experiment_id>({"experiment", "number of its experiment"}, &T::experiment),
                    more...};
}

struct allocation_preemption : from_task {
  std::int64_t timeout_ms = 0;
  template <class t = allocation_preemption>
  static constexpr auto fields() {
    return task_fields<t>(
      maybe("timeout_ms", &t::timeout_ms, "longest wait in milliseconds; 0: answered at once"));
  }
  static constexpr about is{"allocation.preemption",
                            taker::allocation,
                            {action::report, thing::allocation},
                            repeat::question,
                            "Waits until the task has to stop, or the time is over.",
                            "{preempt}",
                            {},
                            std::chrono::seconds(10)};
};
struct allocation_ack_preemption : from_task {
  static constexpr auto fields() { return task_fields<allocation_ack_preemption>(); }
  static constexpr about is{
    "allocation.ack_preemption",
    taker::allocation,
    {action::report, thing::allocation},
    repeat::safe,
    "The task stops because it was asked to: its exit counts as ordered, whatever the "
    "code."};
};
struct allocation_pending_preemption : from_task {
  static constexpr auto fields() { return task_fields<allocation_pending_preemption>(); }
  static constexpr about is{"allocation.pending_preemption",
                            taker::allocation,
                            {action::report, thing::allocation},
                            repeat::safe,
                            "Preempts the run: the script is asked to save and end, as when others need its "
                            "slots; the trial runs again. On a trial: preempts its open run.",
                            "{}",
                            {"preempt", {"allocation", "trial"}, {"allocation", "experiment"}}};
};
struct allocation_rendezvous : from_task {
  std::string resources;
  std::optional<std::map<std::string, std::string>> hosts;
  template <class t = allocation_rendezvous>
  static constexpr auto fields() {
    return task_fields<t>(need("resources", &t::resources, "DET_RESOURCES_ID of the caller's part"),
                          maybe("hosts", &t::hosts, "addresses of agents by name; the cluster fills it in"));
  }
  static constexpr about is{
    "allocation.rendezvous",
    taker::allocation,
    {action::report, thing::allocation},
    repeat::safe,
    "Waits until all parts of the gang run and have called; makes the allocation ready. "
    "`invalid` where the part is unknown.",
    "{addresses: [text], slots: [int], rank}",
    {},
    std::chrono::hours(1)};
};
struct allocation_daemon : from_task {
  std::string resources;
  template <class t = allocation_daemon>
  static constexpr auto fields() {
    return task_fields<t>(need("resources", &t::resources, "DET_RESOURCES_ID of the caller's part"));
  }
  static constexpr about is{"allocation.daemon",
                            taker::allocation,
                            {action::report, thing::allocation},
                            repeat::safe,
                            "The end of this part of the gang does not count."};
};
struct allocation_connect : from_task {
  std::string service, connection, secret;
  template <class t = allocation_connect>
  static constexpr auto fields() {
    return task_fields<t>(
      need("service", &t::service, "a service of the task, as TASK or TASK:PORT"),
      need("connection", &t::connection, "what the agent names the connection by at the master"),
      need("secret", &t::secret, "what the agent proves itself with; good once"));
  }
  static constexpr about is{
    "allocation.connect",
    taker::allocation,
    {action::report, thing::allocation},
    repeat::again,
    "Orders the agent of node rank 0 to open a connection to a service of the task and "
    "to bring it to the master. By the proxy, which checked the caller's right. "
    "`not_found`: no such service; `busy`: the task does not run.",
    "{}",
    {},
    std::chrono::seconds(10)};
};
struct trial_early_exit : from_task {
  std::string reason;
  template <class t = trial_early_exit>
  static constexpr auto fields() {
    return task_fields<t>(need("reason", &t::reason, "why it ends").one_of_these("invalid_hp"));
  }
  static constexpr about is{"trial.early_exit",
                            taker::allocation,
                            {action::report, thing::trial},
                            repeat::safe,
                            "The trial ends because its hyperparameters cannot be trained."};
};
struct worker_validate : without_fields<worker_validate> {
  static constexpr about is{
    "worker.validate",
    taker::allocation,
    {action::change, thing::actor},
    repeat::again,
    "The ranks of a trial in C++ validate after the batch at hand, besides their schedule. "
    "Answers how many were told.",
    "{ranks}",
    {"validate", {"worker", "allocation", "trial"}, {}}};
};
struct worker_checkpoint : without_fields<worker_checkpoint> {
  static constexpr about is{
    "worker.checkpoint",
    taker::allocation,
    {action::change, thing::actor},
    repeat::again,
    "The ranks of a trial in C++ save a checkpoint after the batch at hand, besides their "
    "schedule. Answers how many were told.",
    "{ranks}",
    {"checkpoint", {"worker", "allocation", "trial"}, {}}};
};
struct trial_progress : from_task {
  double progress = 0;
  template <class t = trial_progress>
  static constexpr auto fields() {
    return task_fields<t>(need("progress", &t::progress, "fraction that is done").between(0, 1));
  }
  static constexpr about is{"trial.progress",
                            taker::trial,
                            {action::report, thing::trial},
                            repeat::safe,
                            "Tells the progress of the trial."};
};
struct checkpoint_report : from_task {
  std::string uuid;
  std::int64_t steps = 0;
  file_sizes files;
  value metadata = value::object();
  template <class t = checkpoint_report>
  static constexpr auto fields() {
    return task_fields<t>(need("uuid", &t::uuid, "of the checkpoint"),
                          need("steps", &t::steps, "batches that it holds"),
                          maybe("files", &t::files, "bytes by path; folders end with '/'"),
                          maybe("metadata", &t::metadata, "the script's own").an_object());
  }
  static constexpr about is{
    "checkpoint.report",
    taker::trial,
    {action::report, thing::checkpoint},
    repeat::safe,
    "Reports a saved checkpoint; durable when answered. A second report of a uuid changes nothing."};
};
struct trial_report : from_task {
  std::string group;
  std::int64_t steps = 0;
  value metrics = value::object();
  std::optional<value> batch_metrics;
  std::optional<std::int64_t> at;
  template <class t = trial_report>
  static constexpr auto fields() {
    return task_fields<t>(need("group", &t::group, "training, validation, or a name of its own"),
                          maybe("steps", &t::steps, "batches that were trained"),
                          need("metrics", &t::metrics, "numbers and values by name").an_object(),
                          maybe("batch_metrics", &t::batch_metrics, "of each batch"),
                          maybe("at", &t::at, "microseconds since 1970; missing: now"));
  }
  static constexpr about is{
    "trial.report",
    journal,
    {action::report, thing::trial},
    repeat::safe,
    "One report of metrics; durable when answered, and a validation goes to the search. The "
    "same group, steps and metrics again change nothing."};
};
struct task_log : from_task {
  struct line {
    std::int64_t at = 0;
    int rank = 0;
    std::string stream = "stdout", level, agent, text;
    template <class t = line>
    static constexpr auto fields() {
      return std::tuple{need("at", &t::at, "microseconds since 1970"),
                        maybe("rank", &t::rank, "of the process"),
                        maybe("stream", &t::stream, "stdout, stderr or troupe"),
                        maybe("level", &t::level, "ERROR, WARNING ..., or empty"),
                        maybe("agent", &t::agent, "name of the agent"),
                        need("text", &t::text, "without its end")};
    }
  };
  std::vector<line> lines;
  template <class t = task_log>
  static constexpr auto fields() {
    return task_fields<t>(need("lines", &t::lines, "in their order"));
  }
  static constexpr about is{
    "task.log",
    taker::journal,
    {action::report, thing::log},
    repeat::safe,
    "Lines of the task's log; durable when answered. The same batch again changes nothing."};
};

} // namespace troupe::commands
