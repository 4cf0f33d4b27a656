#pragma once
// Turns the wish for a task that is not a trial into the first fact of the task and the answer to the client.
// Pure.

#include "actors/allocation/sandbox_terms.hpp"
#include "actors/pool/capacity.hpp"
#include "model/commands/task_commands.hpp"
#include "model/config/cluster_config.hpp"
#include "model/facts.hpp"

#include <functional>

namespace troupe {

/// What a creation has to know of the cluster as it is now.
struct task_world {
  time_point now;
  std::function<task_id(task_kind)> fresh_id;
  /// Null where no workspace with this number takes tasks.
  std::function<const workspace_changed*(workspace_id)> workspace;
  std::function<const template_changed*(const std::string&)> template_named; ///< null: no such template
  std::function<result<task_created>(const std::string& id)> task;           ///< task with this UUID
  value cluster;                                                             ///< configuration in force
  std::function<value(workspace_id)> invariant, constraints;                 ///< policies; null: none
  std::function<config::pool_choice(workspace_id)> pools; ///< pools that the workspace may use
  std::function<std::optional<task_account>(const task_created&)> account; ///< account of its processes
};

struct created_task {
  task_created made; ///< the blob with the files of the wish is still missing
  value answer;      ///< {id, config, pool, warnings}; the pool is still to be asked for the warnings
};

/// The kind of task with this name; task_kind::trial where there is none.
task_kind kind_named(const std::string& name);

/// Fails with errc::invalid or errc::not_found and the reason.
result<created_task> to_create(const commands::task_create& wish, const std::string& user,
                               const task_world& world);

/// Why no agent of its pool could hold the task, which Determined refuses then; nothing where one could, or
/// the agents are not known.
std::optional<error> unfulfillable(const task_created& made, const pool_capacity& pool);
/// The codes of warnings of the task; an empty list where it waits for nothing but the end of other runs.
value launch_warnings(const task_created& made, const pool_capacity& pool);

} // namespace troupe
