#pragma once
// Runs tasks as processes of this host, each in the sandbox of a troupe-task, which outlives this object. The
// agent only ever talks to the socket in a task's folder, so a first start and an adoption take one path in
// the code.
//
// Folders of the runtime: ROOT/ID/{spec,sock,helper,exit,log/,tmp/,run/}, and ROOT/spare-* for spare
// sandboxes.
//
// What a caller prepares for a task lies in a spare sandbox, or in ROOT/.stage-ID until the launch.
//
//   launch --> starting --task_started--> running <--> frozen
//                  |                          |           |
//                  '------> task_lost    task_exited, task_lost     --forget--> gone

#include "workers/task_folder.hpp"

#include <functional>
#include <memory>

namespace troupe::workers {

struct process_runtime_options {
  std::filesystem::path root;    ///< made where it is missing; used by one runtime at a time
  std::filesystem::path program; ///< troupe-task
  sandbox_settings sandbox;
  int spares = 0;         ///< sandboxes kept ready, so that a start costs one exec; none of process groups
  bool namespaces = true; ///< false: process groups even where namespaces are allowed
  /// What may stay in the folder of a dropped task for the next task there, by path in it: a folder's path
  /// ends with "/", a link's with "@", that of a file that tells nothing of its task with "=", and `*` is as
  /// in fnmatch(3). Whoever makes these files writes them anew. Everything else is removed. Empty: no folder
  /// is used again.
  std::vector<std::string> reuse;
  std::chrono::milliseconds kill_patience{
    3000}; ///< after this time a kill also ends troupe-task itself, and so its whole sandbox
};

enum class task_phase { starting, running, frozen, exited, lost };
const char* name(task_phase phase);

struct task_summary {
  std::string id;
  task_phase phase = task_phase::starting;
  int pid = 0; ///< pid of rank 0; 0: unknown
};

/// Every call only queues an order for the runtime's own thread and returns at once; `busy` when 4096 wait.
/// Safe from any thread, also from the event callback. Owns no signal handler, and reaps only processes that
/// it started.
class process_runtime {
public:
  /// To be called from the runtime's thread; must not block.
  using listener = std::function<void(const task_event&)>;

  /// Fails where the root cannot be made or troupe-task cannot be run. Adopts nothing yet.
  static result<std::unique_ptr<process_runtime>> start(const process_runtime_options& options,
                                                        listener tell);

  /// Spares end. Tasks go on without the runtime, until their lease freezes them.
  ~process_runtime();

  /// Reports task_started, or task_exited with `failed`, or task_lost. Fails with `conflict` where the id is
  /// known: a repeat starts nothing. Uses the files that were prepared for the id. `zygote` comes from
  /// zygote_keeper::attach(): rank 0 is forked from that warmed parent where its spec allows it and the fork
  /// succeeds; otherwise rank 0 is started like any command.
  result<void> launch(const task_spec& spec, owned_fd zygote = {});

  /// Makes a folder for the caller to fill before the launch. It becomes the task's folder, and its `run`,
  /// which exists, becomes the task's /run/determined. Where a spare sandbox is ready this is the spare's
  /// folder, so that the launch moves nothing.
  result<std::filesystem::path> prepare(const std::string& id);
  /// Removes what was prepared for a task that will not be launched.
  void discard(const std::string& id);

  /// Takes over what a predecessor left in the root: reports each task as started (adopted), frozen, exited
  /// or lost, then inventory_taken. To be called once, before the first launch.
  result<void> adopt_all();

  /// Makes the lease end `lease` from now; 0: never. A frozen task stays frozen: that needs thaw().
  result<void> renew(const std::string& id, std::chrono::milliseconds lease);
  /// Sets the leases of tasks that are launched from now on, in place of those of the options. A `lease` of 0
  /// leaves that lease as it is.
  void set_leases(std::chrono::milliseconds lease, std::chrono::milliseconds adopt);
  /// Renews the lease of every running task by the lease in force.
  result<void> renew_all();

  result<void> freeze(const std::string& id);
  /// Lets the task go on, with a lease that ends `lease` from now; 0: never.
  result<void> thaw(const std::string& id, std::chrono::milliseconds lease);

  /// Sends a signal to the process group of each rank.
  result<void> signal(const std::string& id, int number);
  result<void> terminate(const std::string& id); ///< sends SIGTERM

  /// Kills for certain: task_exited or task_lost follows, and then no process of the sandbox exists. May be
  /// repeated.
  result<void> kill(const std::string& id);

  /// Drops a task that has ended and removes its folder, except the spool. Fails with `conflict` while it
  /// runs.
  result<void> forget(const std::string& id);
  /// Drops a task that has ended or is not known, together with its spool. Fails with `conflict` while it
  /// runs.
  result<void> drop(const std::string& id);
  /// Removes the spool of a task that was forgotten.
  result<void> drop_spool(const std::string& id);

  std::filesystem::path folder(const std::string& id) const;
  std::filesystem::path spool(const std::string& id) const; ///< folder for log_spool.hpp

  std::vector<task_summary> list() const; ///< sorted by id
  int spares_ready() const;

private:
  class engine;
  explicit process_runtime(std::unique_ptr<engine> inside);
  std::unique_ptr<engine> engine_;
};

} // namespace troupe::workers
