#pragma once
// Commands about tasks that are not trials: commands, notebooks, shells, TensorBoards, generic tasks.

#include "model/commands/commands.hpp"

namespace troupe::commands {

struct task_create {
  std::string kind;
  value config; ///< the submitted text, or the object that stands for it
  std::string config_name = "<config>", template_name;
  workspace_id workspace{1};
  bool preview = false;
  bytes context;
  std::string context_blob;
  value details = value::object();
  std::string parent, forked_from;
  bool inherit_context = false;
  std::optional<bool> no_pause;
  std::string key;
  template <class t = task_create>
  static constexpr auto fields() {
    return std::tuple{
      need("kind", &t::kind, "what it is; only retention creates a checkpoint_gc")
        .one_of_these("command, notebook, shell, tensorboard, generic, checkpoint_gc"),
      maybe("config", &t::config, "text of the configuration, or the object; null: that of `forked_from`"),
      maybe("config_name", &t::config_name, "the file that diagnostics name"),
      maybe("template", &t::template_name, "name of a template below the configuration"),
      maybe("workspace", &t::workspace, "number of the workspace; 0: 1"),
      maybe("preview", &t::preview, "true: nothing is created, and the configuration is answered"),
      maybe("context", &t::context, "the checked files, always a tar.gz"),
      maybe("context_blob", &t::context_blob, "name of a stored blob in place of `context`"),
      maybe("details", &t::details, "what its kind needs besides: keys, what a TensorBoard shows")
        .an_object(),
      maybe("parent", &t::parent, "UUID of the generic task above it"),
      maybe("forked_from", &t::forked_from, "UUID of the task whose configuration and files it takes over"),
      maybe("inherit_context", &t::inherit_context, "true: the files are those of `parent`"),
      maybe("no_pause", &t::no_pause, "true: it cannot be paused; false: it is paused with its parent"),
      maybe("key", &t::key, "a second creation with the same key answers the first one's id")};
  }
  static constexpr about is{"task.create",
                            cluster,
                            {action::create, thing::task},
                            repeat::by_key,
                            "Creates a task that is no trial; answered when it is durable. `invalid` carries "
                            "the rendered diagnostics.",
                            "{id, config, pool, warnings}"};
};

struct task_kill {
  std::string id;
  bool tree = false, from_root = false;
  template <class t = task_kill>
  static constexpr auto fields() {
    return std::tuple{
      need("id", &t::id, "UUID of the task"),
      maybe("tree", &t::tree, "true: all tasks below it as well; `invalid` where it has ended"),
      maybe("from_root", &t::from_root, "with `tree`: from the root of its tree down")};
  }
  static constexpr about is{"task.kill",
                            cluster,
                            {action::kill, thing::task},
                            repeat::safe,
                            "Ends a task that is no trial at once; durable when answered.",
                            "{}",
                            {"kill", {"task"}, {"id"}}};
};
struct task_pause {
  std::string id;
  static constexpr auto fields() { return std::tuple{need("id", &task_pause::id, "UUID of the task")}; }
  static constexpr about is{"task.pause",
                            cluster,
                            {action::change, thing::task},
                            repeat::safe,
                            "Pauses a generic task, and those below it that were made for it: they are asked "
                            "to stop, and release their slots. `invalid` where it has ended or is paused.",
                            "{}",
                            {"pause", {"task"}, {"id"}}};
};
struct task_unpause {
  std::string id;
  static constexpr auto fields() { return std::tuple{need("id", &task_unpause::id, "UUID of the task")}; }
  static constexpr about is{"task.unpause",
                            cluster,
                            {action::change, thing::task},
                            repeat::safe,
                            "Lets a paused task run again, as a new run; `invalid` where it is not paused.",
                            "{}",
                            {"unpause", {"task"}, {"id"}}};
};
struct task_set {
  std::string id;
  std::int64_t priority = 0;
  std::string by;
  template <class t = task_set>
  static constexpr auto fields() {
    return std::tuple{need("id", &t::id, "UUID of the task"),
                      need("priority", &t::priority, "1 to 99; a smaller number comes first").between(1, 99),
                      maybe("by", &t::by, "who asks: the caller, whatever is said")};
  }
  static constexpr about is{"task.set",
                            cluster,
                            {action::change, thing::task},
                            repeat::safe,
                            "Changes the priority of a task that is no trial, effective at once; `conflict` "
                            "where it has ended."};
};
/// From the proxy for each connection, and from a notebook about itself.
struct task_use {
  std::string id;
  static constexpr auto fields() { return std::tuple{need("id", &task_use::id, "UUID of the task")}; }
  static constexpr about is{"task.use",
                            cluster,
                            {action::change, thing::task},
                            repeat::safe,
                            "Somebody uses the task now: its idle time begins anew."};
};

// ---- from the cluster to the task, after its checks

struct task_stop {
  std::string why, by;
  template <class t = task_stop>
  static constexpr auto fields() {
    return std::tuple{need("why", &t::why, "for people: killed by eve"), maybe("by", &t::by, "who asked")};
  }
  static constexpr about is{"task.stop",
                            taker::task,
                            {action::kill, thing::task},
                            repeat::safe,
                            "Ends the task at once; durable when answered."};
};
struct task_hold {
  bool on = true;
  std::string by;
  template <class t = task_hold>
  static constexpr auto fields() {
    return std::tuple{need("on", &t::on, "true: it is paused; false: it goes on"),
                      maybe("by", &t::by, "who asked")};
  }
  static constexpr about is{"task.hold",
                            taker::task,
                            {action::change, thing::task},
                            repeat::safe,
                            "Pauses the task, or lets it go on; durable when answered."};
};

// ---- from tasks

struct task_answers : from_task {
  std::optional<host_account> runs_as;
  template <class t = task_answers>
  static constexpr auto fields() {
    return task_fields<t>(maybe("runs_as", &t::runs_as, "account that the service runs as"));
  }
  static constexpr about is{"task.answers",
                            taker::task,
                            {action::change, thing::allocation},
                            repeat::safe,
                            "The service of the task answers; durable when answered."};
};

} // namespace troupe::commands
