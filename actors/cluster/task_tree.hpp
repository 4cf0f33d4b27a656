#pragma once
// Generic tasks stand in trees: what an order to one of them means for those below it. Pure.

#include "model/facts.hpp"
#include "model/result.hpp"

#include <map>
#include <optional>
#include <vector>

namespace troupe {

/// The task above each; those without one are left out.
using task_parents = std::map<task_id, task_id>;

/// The task that it stands below at last; itself where nothing is above it.
task_id root_of(const task_parents& parents, task_id id);
/// Those of `all` that are `root` or stand below it, whatever lies between; in the order of `all`.
std::vector<task_id> below(const task_parents& parents, const std::vector<task_id>& all, task_id root);

/// A task that lives, as far as an order to one above it concerns it.
struct tree_member {
  task_id id;
  int no_pause = -1; ///< task_created::no_pause
  task_state state = task_state::active;
};
/// Why one of these orders to it makes no sense now; nothing where it does. `name`: as the caller named it.
std::optional<error> refuses_pause(const tree_member& x, const std::string& name);
std::optional<error> refuses_unpause(const tree_member& x, const std::string& name);

/// Of `members`, which are `root` and those below it: who is paused with `root`, and who goes on with it.
/// Those that said that they follow their parent do (no_pause 0), where there is something to be done.
std::vector<task_id> paused_with(const std::vector<tree_member>& members, task_id root);
std::vector<task_id> unpaused_with(const std::vector<tree_member>& members, task_id root);

} // namespace troupe
