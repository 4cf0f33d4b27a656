#pragma once
// Commands about people and rules: deletion, groups and roles, access tokens, policies, bindings of pools,
// webhooks, the cluster's message, how long logs are kept. The route, which knows the owner, checks the
// caller's rights.

#include "model/commands/commands.hpp"

namespace troupe::commands {

// ---- deletion

struct experiment_delete {
  experiment_id id;
  static constexpr auto fields() { return fields_of_experiment<experiment_delete>(); }
  static constexpr about is{
    "experiment.delete",
    cluster,
    {action::remove, thing::experiment},
    repeat::safe,
    "Deletes an ended experiment with its checkpoints, reports and logs: answered when "
    "the order is durable, done behind it; `conflict` where it has not ended."};
};
/// Sent only within the node, after the rights of each order were checked. Nobody outside may send it.
struct orders_together {
  struct one {
    std::string name;
    value parameters = value::object();
    template <class t = one>
    static constexpr auto fields() {
      return std::tuple{need("name", &t::name, "of the order"),
                        need("parameters", &t::parameters, "its fields")};
    }
  };
  std::vector<one> orders;
  template <class t = orders_together>
  static constexpr auto fields() {
    return std::tuple{need("orders", &t::orders, "in their turn; none: those before were the last")};
  }
  static constexpr about is{
    "orders.together",
    cluster,
    {action::change, thing::experiment},
    repeat::safe,
    "Carries out several orders, what they lead to becomes durable in one commit, and "
    "answers each: within the node alone.",
    "{answers: [{error?}]}",
    {},
    std::chrono::seconds(600)};
};
struct experiment_erase_tensorboards {
  experiment_id id;
  static constexpr auto fields() { return fields_of_experiment<experiment_erase_tensorboards>(); }
  static constexpr about is{"experiment.erase_tensorboards",
                            cluster,
                            {action::change, thing::experiment},
                            repeat::safe,
                            "Deletes the TensorBoard files of an ended experiment.",
                            "{}",
                            {},
                            std::chrono::seconds(600)};
};
struct trial_delete {
  trial_id id;
  static constexpr auto fields() { return std::tuple{need("id", &trial_delete::id, "number of the trial")}; }
  static constexpr about is{
    "trial.delete",
    cluster,
    {action::remove, thing::trial},
    repeat::safe,
    "Deletes an ended trial of an ended experiment, which stays, with its checkpoints, reports and logs: "
    "answered when the order is durable, done behind it; `conflict` where one of both has not ended."};
};
struct trial_archive {
  trial_id id;
  bool archived = true;
  template <class t = trial_archive>
  static constexpr auto fields() {
    return std::tuple{need("id", &t::id, "number of the trial"),
                      maybe("archived", &t::archived, "false: it is in lists again")};
  }
  static constexpr about is{"trial.archive",
                            cluster,
                            {action::change, thing::trial},
                            repeat::safe,
                            "Takes an ended trial out of lists, while its experiment stays in them; "
                            "`conflict` where it has not ended, or its experiment is archived."};
};
struct checkpoint_remove {
  std::vector<std::string> uuids, globs;
  bool refresh = false;
  std::vector<model_id> models;
  template <class t = checkpoint_remove>
  static constexpr auto fields() {
    return std::tuple{need("uuids", &t::uuids, "the checkpoints"),
                      maybe("globs", &t::globs, "patterns of paths in them; none: all files"),
                      maybe("refresh", &t::refresh, "nothing is deleted: what is there of them is noted"),
                      maybe("models", &t::models, "those that the caller sees: a refusal names no others")};
  }
  static constexpr about is{
    "checkpoint.remove",
    cluster,
    {action::remove, thing::checkpoint},
    repeat::safe,
    "Deletes files of checkpoints behind its answer; `invalid` where one is registered "
    "as a version of a model."};
};
struct checkpoint_describe {
  std::string uuid, by;
  value metadata = value::object();
  template <class t = checkpoint_describe>
  static constexpr auto fields() {
    return std::tuple{need("uuid", &t::uuid, "of the checkpoint"),
                      need("metadata", &t::metadata, "replaces what is there").an_object(),
                      maybe("by", &t::by, "name of the user: the cluster says it to the trial")};
  }
  static constexpr about is{"checkpoint.describe",
                            cluster,
                            {action::change, thing::checkpoint},
                            repeat::safe,
                            "Replaces the metadata of a checkpoint."};
};
struct log_retain {
  experiment_id experiment;
  trial_id trial;
  std::int64_t days = -1;
  template <class t = log_retain>
  static constexpr auto fields() {
    return std::tuple{need("experiment", &t::experiment, "number of the experiment"),
                      maybe("trial", &t::trial, "one of its trials; missing: all"),
                      need("days", &t::days, "after the trial's end; -1: for ever").between(-1, 32767)};
  }
  static constexpr about is{"log.retain",
                            cluster,
                            {action::change, thing::experiment},
                            repeat::safe,
                            "Says how long the logs of an experiment or a trial are kept."};
};
struct trial_source_declare {
  trial_id trial;
  std::string checkpoint, kind = "INFERENCE", description;
  model_id model;
  std::uint64_t version = 0;
  template <class t = trial_source_declare>
  static constexpr auto fields() {
    return std::tuple{need("trial", &t::trial, "number of the trial"),
                      need("checkpoint", &t::checkpoint, "uuid of the checkpoint that it uses"),
                      maybe("kind", &t::kind, "what for").one_of_these("INFERENCE, FINE_TUNING"),
                      maybe("description", &t::description, "text for people"),
                      maybe("model", &t::model, "number of the model that the checkpoint is of"),
                      maybe("version", &t::version, "its version")};
  }
  static constexpr about is{"trial.declare_source",
                            cluster,
                            {action::change, thing::trial},
                            repeat::safe,
                            "Says that a trial uses a checkpoint, whose metrics the trial's then are."};
};

// ---- access tokens and people

struct token_create {
  user_id user;
  std::string id, description;
  std::int64_t until = 0;
  template <class t = token_create>
  static constexpr auto fields() {
    return std::tuple{need("user", &t::user, "number of the user whom it stands for"),
                      need("id", &t::id, "random number that the token carries"),
                      need("until", &t::until, "when it ends, in microseconds since 1970"),
                      maybe("description", &t::description, "what it is for")};
  }
  static constexpr about is{"token.create",
                            cluster,
                            {action::create, thing::token},
                            repeat::again,
                            "Makes an access token, which outlives logouts and new passwords.",
                            "{number}"};
};
struct token_change {
  std::uint64_t number = 0;
  std::optional<std::string> description;
  bool revoked = false;
  template <class t = token_change>
  static constexpr auto fields() {
    return std::tuple{need("number", &t::number, "of the access token"),
                      maybe("description", &t::description, "what it is for"),
                      maybe("revoked", &t::revoked, "it is void from now on")};
  }
  static constexpr about is{
    "token.change",
    cluster,
    {action::remove, thing::token},
    repeat::again,
    "Describes an access token anew, or revokes it; `invalid` where it is void already."};
};
struct user_set {
  struct one {
    std::string key, path, text;
    template <class t = one>
    static constexpr auto fields() {
      return std::tuple{need("key", &t::key, "of the setting"),
                        maybe("path", &t::path, "where the page keeps it"),
                        maybe("text", &t::text, "its value; empty: it is removed")};
    }
  };
  user_id user;
  std::vector<one> settings;
  bool all = false;
  template <class t = user_set>
  static constexpr auto fields() {
    return std::tuple{need("user", &t::user, "number of the user"),
                      maybe("settings", &t::settings, "what becomes different"),
                      maybe("all", &t::all, "all others are removed")};
  }
  static constexpr about is{"user.set",
                            cluster,
                            {action::change, thing::self},
                            repeat::safe,
                            "Changes what the page keeps for a user."};
};
struct project_visit {
  user_id user;
  project_id project;
  template <class t = project_visit>
  static constexpr auto fields() {
    return std::tuple{need("user", &t::user, "number of the user"),
                      need("project", &t::project, "number of the project")};
  }
  static constexpr about is{"project.visit",
                            cluster,
                            {action::view, thing::project},
                            repeat::safe,
                            "Notes that a user has looked at a project."};
};
struct group_wish {
  std::optional<std::string> name;
  std::vector<user_id> add, remove;
};
struct group_create : group_wish {
  template <class t = group_create>
  static constexpr auto fields() {
    return std::tuple{field<t, std::optional<std::string>>({"name", "unique, in any case", true}, &t::name),
                      maybe("add", &t::add, "numbers of users")};
  }
  static constexpr about is{"group.create",
                            cluster,
                            {action::change, thing::group},
                            repeat::again,
                            "Makes a group of users; `conflict` where the name is taken.",
                            "{id}"};
};
struct group_change : group_wish {
  group_id id;
  template <class t = group_change>
  static constexpr auto fields() {
    return std::tuple{
      need("id", &t::id, "number of the group"), maybe("name", &t::name, "unique, in any case"),
      maybe("add", &t::add, "numbers of users"), maybe("remove", &t::remove, "numbers of users")};
  }
  static constexpr about is{
    "group.change", cluster, {action::change, thing::group}, repeat::safe, "Changes a group of users."};
};
struct group_remove {
  group_id id;
  static constexpr auto fields() { return std::tuple{need("id", &group_remove::id, "number of the group")}; }
  static constexpr about is{"group.remove",
                            cluster,
                            {action::change, thing::group},
                            repeat::safe,
                            "Deletes a group, and with it the roles that it gave."};
};
struct role_assign {
  struct one {
    std::int64_t role = 0;
    user_id user;
    group_id group;
    workspace_id workspace;
    template <class t = one>
    static constexpr auto fields() {
      return std::tuple{need("role", &t::role, "number of the role").between(1, 10),
                        maybe("user", &t::user, "whom it is given to"),
                        maybe("group", &t::group, "whom it is given to"),
                        maybe("workspace", &t::workspace, "where it holds; missing: everywhere")};
    }
  };
  std::vector<one> roles;
  bool taken = false;
  template <class t = role_assign>
  static constexpr auto fields() {
    return std::tuple{need("roles", &t::roles, "all are given or none is"),
                      maybe("taken", &t::taken, "they are taken away")};
  }
  static constexpr about is{"role.assign",
                            cluster,
                            {action::change, thing::role},
                            repeat::safe,
                            "Gives roles to users and groups, or takes them."};
};

// ---- rules

struct policy_set {
  workspace_id workspace;
  std::string kind;
  value policies;
  template <class t = policy_set>
  static constexpr auto fields() {
    return std::tuple{maybe("workspace", &t::workspace, "where it holds; missing: everywhere"),
                      need("kind", &t::kind, "of the work").one_of_these("EXPERIMENT, NTSC"),
                      maybe("policies", &t::policies, "{invariant_config, constraints}; null: none")};
  }
  static constexpr about is{"policy.set",
                            cluster,
                            {action::change, thing::policy},
                            repeat::safe,
                            "Says what configurations of a workspace or of all have to be."};
};
struct pool_bind {
  std::string pool;
  std::vector<workspace_id> workspaces;
  std::string how = "all";
  template <class t = pool_bind>
  static constexpr auto fields() {
    return std::tuple{need("pool", &t::pool, "name of the pool"),
                      need("workspaces", &t::workspaces, "that alone may use it; none: all may"),
                      maybe("how", &t::how, "they are all that may, or are added or taken away; missing: all")
                        .one_of_these("all, add, remove")};
  }
  static constexpr about is{
    "pool.bind", cluster, {action::change, thing::pool}, repeat::safe, "Binds a pool to workspaces."};
};
struct webhook_create {
  std::string name, url;
  bool slack = false, specific = false;
  workspace_id workspace;
  value triggers = value::array();
  template <class t = webhook_create>
  static constexpr auto fields() {
    return std::tuple{maybe("name", &t::name, "by which experiments name it"),
                      need("url", &t::url, "of the receiver, http or https"),
                      maybe("slack", &t::slack, "messages have the form that Slack reads"),
                      maybe("specific", &t::specific, "only for experiments that name it"),
                      maybe("workspace", &t::workspace, "where it holds; missing: everywhere"),
                      need("triggers", &t::triggers, "a list of {type, condition}").a_list()};
  }
  static constexpr about is{"webhook.create",
                            cluster,
                            {action::create, thing::webhook},
                            repeat::again,
                            "Adds a receiver of events.",
                            "{id}"};
};
struct webhook_change {
  webhook_id id;
  std::string url;
  template <class t = webhook_change>
  static constexpr auto fields() {
    return std::tuple{need("id", &t::id, "number of the webhook"),
                      need("url", &t::url, "of the receiver, http or https")};
  }
  static constexpr about is{"webhook.change",
                            cluster,
                            {action::change, thing::webhook},
                            repeat::safe,
                            "Gives a webhook another address."};
};
struct webhook_remove {
  webhook_id id;
  template <class t = webhook_remove>
  static constexpr auto fields() {
    return std::tuple{need("id", &t::id, "number of the webhook")};
  }
  static constexpr about is{
    "webhook.remove", cluster, {action::remove, thing::webhook}, repeat::safe, "Deletes a webhook."};
};
struct webhook_alert {
  experiment_id experiment;
  trial_id trial;
  std::string title, description, level;
  template <class t = webhook_alert>
  static constexpr auto fields() {
    return std::tuple{need("experiment", &t::experiment, "number of the experiment"),
                      maybe("trial", &t::trial, "number of the trial; missing: none in particular"),
                      maybe("title", &t::title, "at most 1,000 characters"),
                      maybe("description", &t::description, "at most 10,000 characters"),
                      maybe("level", &t::level, "as Determined names it: INFO, WARNING ...")};
  }
  static constexpr about is{"webhook.alert",
                            cluster,
                            {action::report, thing::webhook},
                            repeat::again,
                            "Tells the receivers that an experiment names of an event of its own."};
};
struct webhook_test {
  webhook_id id;
  template <class t = webhook_test>
  static constexpr auto fields() {
    return std::tuple{need("id", &t::id, "number of the webhook")};
  }
  static constexpr about is{
    "webhook.test",
    cluster,
    {action::change, thing::webhook},
    repeat::again,
    "Sends one event for test, and answers when it has arrived; `invalid` where it did not."};
};
struct cluster_message_set {
  std::string message, from, until;
  template <class t = cluster_message_set>
  static constexpr auto fields() {
    return std::tuple{maybe("message", &t::message, "1 to 250 characters; empty: none any more"),
                      maybe("from", &t::from, "RFC 3339; missing: now"),
                      maybe("until", &t::until, "RFC 3339; missing: for ever")};
  }
  static constexpr about is{"cluster.message",
                            cluster,
                            {action::change, thing::cluster_message},
                            repeat::safe,
                            "Says what everybody is shown, or that there is nothing to say."};
};

} // namespace troupe::commands
