#pragma once
// Runs tasks as processes of this host, each in the sandbox of a troupe-task, which outlives this object.
// The agent only ever talks to the socket in a task's folder, so a first start and an adoption are one code
// path.
//
// Folder of the runtime:  ROOT/ID/{spec,sock,helper,exit,log/,tmp/,run/}, and ROOT/spare-* for sandboxes in
// waiting.
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
  std::filesystem::path root;    ///< made if it is not there; one runtime at a time
  std::filesystem::path program; ///< troupe-task
  sandbox_settings sandbox;
  int spares = 0;         ///< sandboxes kept ready, so that a start costs one exec; none for process groups
  bool namespaces = true; ///< false: process groups even where namespaces are allowed
  /// What may stay in the folder of a dropped task for the next one there, by path in it, a folder's with "/"
  /// behind, a link's with "@"; `*` as in fnmatch(3). Its maker writes it anew. All else is removed. Empty:
  /// no folder is used again.
  std::vector<std::string> reuse;
  std::chrono::milliseconds kill_patience{
    3000}; ///< then troupe-task itself is killed, and with it all of its sandbox
};

enum class task_phase { starting, running, frozen, exited, lost };
const char* name(task_phase phase);

struct task_summary {
  std::string id;
  task_phase phase = task_phase::starting;
  int pid = 0; ///< pid of rank 0; 0: unknown
};

/// Every call only queues an order for the runtime's own thread and returns at once; `busy` when 4096 wait.
/// Safe from any thread, the event callback included. Owns no signal handler and no process but its own
/// starts.
class process_runtime {
public:
  /// Called from the runtime's thread; must not block.
  using listener = std::function<void(const task_event&)>;

  /// Fails where the root cannot be made or troupe-task cannot be run. Adopts nothing yet.
  static result<std::unique_ptr<process_runtime>> start(const process_runtime_options& options,
                                                        listener tell);

  /// Tasks go on without it, until their lease freezes them; spares end.
  ~process_runtime();

  /// Reports task_started, or task_exited with `failed`, or task_lost. `conflict` where the id is known: a
  /// repeat starts nothing. Uses the files that were prepared for the id. `zygote`, of
  /// zygote_keeper::attach(): a warmed parent that rank 0 is forked from where its spec says so and that is
  /// possible; else it is started as any command.
  result<void> launch(const task_spec& spec, owned_fd zygote = {});

  /// A folder for the caller to fill before the launch: it becomes the task's, and its `run`, which is there,
  /// the task's /run/determined. Where a spare sandbox is ready it is that one's, so that the launch has
  /// nothing to move.
  result<std::filesystem::path> prepare(const std::string& id);
  /// Removes what was prepared for a task that will not be launched.
  void discard(const std::string& id);

  /// Takes over what a predecessor left in the root: each task is reported as started (adopted), frozen,
  /// exited or lost, then inventory_taken. To call once, before the first launch.
  result<void> adopt_all();

  /// The lease ends `lease` from now; 0 is none. Changes nothing on a frozen task: that needs thaw().
  result<void> renew(const std::string& id, std::chrono::milliseconds lease);
  /// For tasks that are launched from now on, in place of those of the options. A lease of 0 leaves it as it
  /// is.
  void set_leases(std::chrono::milliseconds lease, std::chrono::milliseconds adopt);
  /// Every task that runs, by its lease in force.
  result<void> renew_all();

  result<void> freeze(const std::string& id);
  /// Goes on, with a lease that ends `lease` from now; 0 is none.
  result<void> thaw(const std::string& id, std::chrono::milliseconds lease);

  /// To the process group of each rank.
  result<void> signal(const std::string& id, int number);
  result<void> terminate(const std::string& id); ///< SIGTERM

  /// Certain: task_exited or task_lost follows, and then no process of the sandbox exists. May be repeated.
  result<void> kill(const std::string& id);

  /// Drops a task that has ended, with its folder but for the spool; `conflict` while it has not.
  result<void> forget(const std::string& id);
  /// Both at once, for a task that has ended or is not known; `conflict` while it has not.
  result<void> drop(const std::string& id);
  /// Removes the spool too, of a task that was forgotten.
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
