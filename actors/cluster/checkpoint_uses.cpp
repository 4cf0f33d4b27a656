#include "actors/cluster/checkpoint_uses.hpp"

namespace troupe {

void checkpoint_uses::begin_with(experiment_id who, const std::set<std::string>& uuids) {
  if (!uuids.empty())
    sources_[who].insert(uuids.begin(), uuids.end());
}

void checkpoint_uses::forget(experiment_id who) { sources_.erase(who); }

experiment_id checkpoint_uses::beginner_with(const std::string& uuid) const {
  for (const auto& [user, all] : sources_)
    if (all.contains(uuid))
      return user;
  return {};
}

bool checkpoint_uses::in_use(const std::string& uuid, const registry& books) const {
  return books.is_registered(uuid) || beginner_with(uuid);
}

void checkpoint_uses::begin_removal(const std::string& name, const std::vector<std::string>& uuids) {
  if (!uuids.empty() && removals_.emplace(name, uuids).second)
    for (const auto& uuid : uuids)
      ++removing_[uuid];
}

void checkpoint_uses::end_removal(const std::string& name) {
  const auto order = removals_.extract(name);
  if (!order)
    return;
  for (const auto& uuid : order.mapped())
    if (const auto at = removing_.find(uuid); --at->second == 0)
      removing_.erase(at);
}

std::string checkpoint_uses::unusable(const checkpoint_row& row, const cluster& ids) const {
  if (row.state == checkpoint_state::deleted)
    return "is deleted";
  if (row.state != checkpoint_state::completed)
    return "is partially deleted";
  if (ids.deleting().contains(row.experiment) || ids.deleting_trials().contains(row.trial))
    return "is being deleted";
  return removing_.contains(row.saved.uuid) ? "has files that are being deleted" : "";
}

} // namespace troupe
