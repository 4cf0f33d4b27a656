#pragma once
// The folder of one task on disk: its spec, its exit record, its troupe-task, its remains.

#include "workers/owned_fd.hpp"
#include "workers/task_spec.hpp"

#include <filesystem>
#include <string_view>

namespace troupe::workers {

/// Settings that every task's spec carries besides the task itself.
struct sandbox_settings {
  std::chrono::milliseconds lease{30'000};               ///< 0: none
  std::chrono::milliseconds frozen_limit{24 * 3600'000}; ///< a task frozen by its lease is killed after this
  std::chrono::milliseconds adopt{200};                  ///< a task waits so long for a new agent
  std::chrono::milliseconds linger{10 * 60'000};         ///< troupe-task waits so long to be dismissed
  std::uint64_t spool_file_bytes = 4 << 20;
  int spool_files = 16;
};

/// The bytes of the spec file.
std::string encode(const task_spec& spec, const sandbox_settings& settings);

/// Makes or fills a file in `folder`; not synced.
result<void> write_file(int folder, const char* name, std::string_view bytes);
/// The same at once or not at all, and synced.
result<void> write_durable(int folder, const char* name, std::string_view bytes);

/// The whole of a small file (at most 1 MiB); not_found where there is none.
result<std::string> read_file(int folder, const char* name);

/// What an exit record says: the end of a task, or that it was lost.
using task_end = std::variant<task_exited, task_lost>;
result<task_end> decode_end(std::string_view record);
std::string encode(const task_end& end);

/// A pidfd of the troupe-task that was started in `folder`, if that process still exists: it becomes readable
/// when the last process of a sandbox with namespaces is dead.
owned_fd open_helper(int folder);
/// Its pid; 0 where it does not exist any more.
int helper_of(int folder);

/// Kills every process whose environment carries the mark of the sandbox in `folder`, and says whether one
/// was found. For sandboxes without a pid namespace, whose troupe-task is dead; to repeat until it finds
/// none.
bool kill_marked(int folder);

/// Begin of the name of the folder in which a task's files are prepared; no task's id begins so.
inline constexpr char stage_prefix[] = ".stage-";

/// Moves every entry of the folder `stage`, and of its `run`, into the task's folder and its `run`; removes
/// what is left of the stage. not_found where there is no stage: nothing was prepared.
result<void> move_stage(int root, const std::string& stage, int folder);

/// Removes the tree `name` in `folder`, whatever its modes, and never leaves its file system.
/// True if nothing is left.
bool remove_tree(int folder, const char* name);

/// Leaves in a dead task's folder what a next one can have: the files of troupe-task, and what `keep` names
/// (see process_runtime_options::reuse), as far as it is as it was made: a folder, a plain file with one
/// name, a link. What the task was told, its secrets too, is overwritten with zeros. False where something
/// else could not be removed: the folder is of no use.
bool make_reusable(int folder, const std::vector<std::string>& keep);

/// Removes everything in a task's folder but its spool, the exit record last. True if nothing else is left.
bool remove_remains(int folder);

} // namespace troupe::workers
