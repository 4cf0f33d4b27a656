#pragma once
// What a wish for a task that is no trial makes: its first fact, and what the client is answered. Pure.

#include "actors/allocation/sandbox_terms.hpp"
#include "model/commands/task_commands.hpp"
#include "model/facts.hpp"

#include <functional>

namespace troupe {

/// What the cluster has now, as far as a creation asks for it.
struct task_world {
  time_point now;
  std::function<task_id(task_kind)> fresh_id;
  /// Null where there is none of this number that takes tasks.
  std::function<const workspace_changed*(workspace_id)> workspace;
  std::function<const template_changed*(const std::string&)> template_named; ///< null where there is none
  std::function<result<task_created>(const std::string& id)> task;           ///< by its UUID
  value cluster;                                                             ///< configuration in force
  std::function<value(workspace_id)> invariant, constraints;                 ///< policies; null: none
  std::function<bool(const std::string& pool, workspace_id)> may_use;
  std::function<int(const std::string& pool)> largest_agent;               ///< slots of it; -1: nobody knows
  std::function<int(const std::string& pool)> slots_in;                    ///< of the agents that are there
  std::function<std::optional<task_account>(const task_created&)> account; ///< that it would run as
};

struct created_task {
  task_created made; ///< without the blob of files that come with the wish
  value answer;      ///< {id, config, pool, warnings}
};

/// task_kind::trial where no kind of task has this name.
task_kind kind_named(const std::string& name);

/// errc::invalid or errc::not_found with the reason.
result<created_task> to_create(const commands::task_create& wish, const std::string& user,
                               const task_world& world);

} // namespace troupe
