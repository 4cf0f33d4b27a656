#pragma once
// Generic tasks form trees. This file decides what an order to one task means for the tasks below it. Pure.

#include "model/facts.hpp"
#include "model/result.hpp"

#include <map>
#include <optional>
#include <vector>

namespace troupe {

/// The parent of each task; a task without a parent is left out.
using task_parents = std::map<task_id, task_id>;

/// The root of the tree that task `id` is in; `id` itself where it has no parent.
task_id root_of(const task_parents& parents, task_id id);
/// The tasks of `all` that are `root` or stand anywhere below it, in the order of `all`.
std::vector<task_id> below(const task_parents& parents, const std::vector<task_id>& all, task_id root);

/// What has to be known of a live task when a task above it is paused or goes on.
struct tree_member {
  task_id id;
  int no_pause = -1; ///< task_created::no_pause
  task_state state = task_state::active;
};
/// Why the order makes no sense for this task now; nothing where it does. `name` is how the caller named the
/// task.
std::optional<error> refuses_pause(const tree_member& x, const std::string& name);
std::optional<error> refuses_unpause(const tree_member& x, const std::string& name);

/// `members` are `root` and the tasks below it. Returns the tasks that are paused together with `root`, or go
/// on together with it: those that were created to follow their parent (no_pause 0), where the order changes
/// anything.
std::vector<task_id> paused_with(const std::vector<tree_member>& members, task_id root);
std::vector<task_id> unpaused_with(const std::vector<tree_member>& members, task_id root);

} // namespace troupe
