// What an elastic pool tells its provider, and for which runs the provider can launch instances.

#include "actors/pool/pool.hpp"

#include <algorithm>

namespace troupe {

/// A run that waits for a quota, or for the limit of the pool, is left out, as it could not use more agents;
/// and so is a run whose constraints no instance meets.
pool_demand pool::demand() const {
  pool_demand out;
  std::map<std::pair<std::uint64_t, int>, int> counts; ///< number of runs by job and slots
  std::map<run_shape, bool> fits;
  auto lists = queues();
  lists.push_back(&aux_waiting_);
  for (const auto* runs : lists)
    for (const auto* run : runs->list()) {
      const auto limits = limits_of(*run);
      if (std::any_of(limits.begin(), limits.end(),
                      [&](const auto& key) { return key.of != run_bar::job && exceeds(*run, key); }))
        continue;
      const auto [known, fresh] = fits.try_emplace(run->shape());
      if (fresh)
        known->second = supply_can_hold(*run);
      if (!known->second)
        continue;
      ++counts[{run->job->terms.job.value, run->slots == 0 ? 0 : run->need()}];
    }
  for (const auto& [key, count] : counts) {
    out.runs.push_back({key.second, key.first, count});
    if (const auto& job = jobs_.at(experiment_id{key.first}); job.terms.max_slots >= 0)
      out.limits[key.first] = {job.terms.max_slots, job.held};
  }
  for (const auto& [name, agent] : agents_)
    if (agent.present || !agent.slots.empty())
      out.agents.push_back({name, agent.present, is_idle(agent), agent.drained});
  return out;
}

/// Whether the provider is asked for instances because of this run, as wanted_instances() counts: a run that
/// is larger than an instance has to fill whole instances.
bool pool::is_launched_for(const pool_run& run) const {
  const int size = supply_.instance_slots;
  return !run.guest && supply_can_hold(run) &&
         (run.slots == 0 || run.need() <= size || (size > 0 && run.need() % size == 0));
}

std::int64_t pool::most_supplied() const {
  return supply_.type.empty() ? 0 : std::int64_t{supply_.max_instances} * supply_.instance_slots;
}

/// Whether the instances that the provider may have, without `blocked` of them, could hold the run under
/// these rules. Traits that are unknown before an instance exists, such as its device, do not count.
bool pool::supply_could_hold(const pool_run& run, placement_rules rules, int blocked) const {
  const int most = supply_.max_instances - blocked;
  if (supply_.type.empty() || most <= 0)
    return false;
  rules.device_types.clear();
  rules.min_memory_bytes = 0;
  rules.agents.clear();
  agent_traits traits;
  traits.labels = supply_.labels;
  if (!refusal(rules, {}, traits).empty())
    return false;
  if (run.slots == 0)
    return true;
  const int size = supply_.instance_slots;
  std::vector<agent_room> rooms(static_cast<std::size_t>(std::min(most, run.need())));
  room_index all(settings_.fitting);
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    rooms[i] = {std::to_string(i), size, size, size > 0};
    all.insert(rooms[i]);
  }
  return !all.fit(run.need(), rules.single_node, settings_.gangs).empty();
}

} // namespace troupe
