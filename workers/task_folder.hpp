#pragma once
// The folder of one task on disk: its spec, its exit record, its troupe-task and what it leaves behind.

#include "workers/owned_fd.hpp"
#include "workers/task_spec.hpp"

#include <filesystem>
#include <string_view>

namespace troupe::workers {

/// Settings of every task's spec besides those of the task.
struct sandbox_settings {
  std::chrono::milliseconds lease{30'000};               ///< 0: no lease
  std::chrono::milliseconds frozen_limit{24 * 3600'000}; ///< a task frozen by its lease is killed after this
  std::chrono::milliseconds adopt{200};                  ///< a task waits this long for a new agent
  std::chrono::milliseconds linger{10 * 60'000};         ///< troupe-task waits this long to be dismissed
  std::uint64_t spool_file_bytes = 4 << 20;
  int spool_files = 16;
};

/// The bytes of the spec file.
std::string encode(const task_spec& spec, const sandbox_settings& settings);

/// Makes or fills a file in `folder`, without a sync.
result<void> write_file(int folder, const char* name, std::string_view bytes);
/// Does the same, synced: after a crash the file holds the old bytes or the new ones.
result<void> write_durable(int folder, const char* name, std::string_view bytes);

/// The whole of a small file (at most 1 MiB). Fails with not_found where there is none.
result<std::string> read_file(int folder, const char* name);

/// What an exit record says: the end of a task, or that it was lost.
using task_end = std::variant<task_exited, task_lost>;
result<task_end> decode_end(std::string_view record);
std::string encode(const task_end& end);

/// A pidfd of the troupe-task that was started in `folder`, if that process still exists. It becomes readable
/// when the last process of a sandbox with namespaces is dead.
owned_fd open_helper(int folder);
/// The pid of that troupe-task; 0 where it does not exist any more.
int helper_of(int folder);

/// Kills every process whose environment carries the mark of the sandbox in `folder`, and returns whether
/// there was one. For sandboxes without a pid namespace whose troupe-task is dead; to be repeated until it
/// finds none.
bool kill_marked(int folder);

/// How names of folders begin in which a task's files are prepared; no task's id begins so.
inline constexpr char stage_prefix[] = ".stage-";

/// Moves every entry of the folder `stage`, and of its `run`, into the task's folder and its `run`; removes
/// what is left of the stage. Fails with not_found where there is no stage: nothing was prepared.
result<void> move_stage(int root, const std::string& stage, int folder);

/// Removes the tree `name` in `folder`, whatever its modes, and never leaves its file system. True if nothing
/// is left.
bool remove_tree(int folder, const char* name);

/// Leaves in a dead task's folder what the next task can use: the files of troupe-task, and what `keep` names
/// (see process_runtime_options::reuse), where it still is a folder, a plain file with one name, or a link.
/// What the task was told, and its secrets, are overwritten with zeros; not so files whose content is the
/// same in all tasks, which are found as the task left them. False where something else could not
/// be removed: the folder cannot be used again.
bool make_reusable(int folder, const std::vector<std::string>& keep);

/// Removes everything in a task's folder except its spool; removes the exit record last. True if nothing else
/// is left.
bool remove_remains(int folder);

} // namespace troupe::workers
