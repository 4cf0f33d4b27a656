#pragma once
// What is removed from a bucket, which only its own client reaches: the master cannot remove it, so that a
// task on an agent does (workers/python/troupe/services/checkpoint_gc.py). Pure; the shell is
// bucket_removals_part.cpp.

#include "actors/retention/storage_history.hpp"
#include "model/rows.hpp"

#include <string>
#include <vector>

namespace troupe {

struct bucket_order {
  experiment_id experiment;
  trial_id trial;    ///< the only trial that is deleted; 0: the order concerns no single trial
  std::string cause; ///< one of collected_by
  std::string by;    ///< user who asked; empty: the experiment's policy
  std::vector<std::string> checkpoints;
  /// Patterns of the files that are removed; all_files(): all of them; none: the files are only listed.
  std::vector<std::string> globs;
  bool tensorboards = false;   ///< whether the TensorBoard files of the experiment (or trial) go as well
  storage_number storage = {}; ///< the storage of the experiment in which all of it is
};

/// The pattern by which Determined's client removes a whole checkpoint.
std::vector<std::string> all_files();

/// Limit of the checkpoints of one task, whose program gets their names in an environment variable.
constexpr std::size_t most_of_one_task = 500;

/// What the first of the tasks does that the order needs; the other tasks begin when it has ended.
bucket_order first_part(bucket_order of);
/// errc::invalid if the patterns are too long for a task.
result<void> check(const bucket_order& of);

/// Key of the storage_number in `details` of the task's creation. The key is absent where the task is about
/// the storage that the experiment has now.
constexpr const char* storage_of_continuation = "storage_of_continuation";

/// The order as `details` of the task's creation.
value details_of(const bucket_order& of);
/// Whether a task with these details does what the order wants. It may have more checkpoints: those that it
/// has removed by now are not wanted any more.
bool covers(const value& details, const bucket_order& wanted);
/// The checkpoints of which a task with these details removes files; none where it only lists them.
std::vector<std::string> removed_by(const value& details);
/// The command `task.create`.
value creation_of(const bucket_order& of, workspace_id workspace);

/// Why the removal has failed, as the ended task and its last lines (newest first) tell; empty: it has not.
std::string failure_of(const task_detail& ended, const std::vector<log_line>& last);

} // namespace troupe
