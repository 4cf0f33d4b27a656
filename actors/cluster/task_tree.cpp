#include "actors/cluster/task_tree.hpp"

namespace troupe {
namespace {

bool is_paused(task_state state) {
  return state == task_state::paused || state == task_state::stopping_paused;
}

error cannot(const char* what, const tree_member& x, const std::string& name_of_it) {
  return {errc::conflict, std::string("cannot ") + what + " task " + name_of_it + " as it is in state " +
                            std::string(name(x.state))};
}

} // namespace

task_id root_of(const task_parents& parents, task_id id) {
  for (std::size_t steps = 0; steps <= parents.size(); ++steps) {
    const auto above = parents.find(id);
    if (above == parents.end())
      break;
    id = above->second;
  }
  return id;
}

std::vector<task_id> below(const task_parents& parents, const std::vector<task_id>& all, task_id root) {
  std::vector<task_id> out;
  for (const auto id : all) {
    auto at = id;
    for (std::size_t steps = 0; at && at != root && steps <= parents.size(); ++steps) {
      const auto above = parents.find(at);
      at = above == parents.end() ? task_id{} : above->second;
    }
    if (at == root)
      out.push_back(id);
  }
  return out;
}

std::optional<error> refuses_pause(const tree_member& x, const std::string& name_of_it) {
  if (x.no_pause == 1)
    return error{errc::conflict, "cannot pause task " + name_of_it + ": it was made with noPause"};
  if (x.id.kind() != task_kind::generic)
    return error{errc::conflict, "cannot pause task " + name_of_it + ": only generic tasks are paused"};
  if (x.state != task_state::active)
    return cannot("pause", x, name_of_it);
  return std::nullopt;
}

std::optional<error> refuses_unpause(const tree_member& x, const std::string& name_of_it) {
  return is_paused(x.state) ? std::nullopt : std::optional{cannot("unpause", x, name_of_it)};
}

std::vector<task_id> paused_with(const std::vector<tree_member>& members, task_id root) {
  std::vector<task_id> out;
  for (const auto& one : members)
    if (one.id == root || (one.no_pause == 0 && one.state == task_state::active))
      out.push_back(one.id);
  return out;
}

std::vector<task_id> unpaused_with(const std::vector<tree_member>& members, task_id root) {
  std::vector<task_id> out;
  for (const auto& one : members)
    if (one.id == root || (one.no_pause == 0 && is_paused(one.state)))
      out.push_back(one.id);
  return out;
}

} // namespace troupe
