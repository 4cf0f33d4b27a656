#include "actors/pool/capacity.hpp"

#include <algorithm>

namespace troupe {

bool empty_agents_hold(const std::map<int, int>& agents, int least, int most, bool single_node,
                       gang_rule gangs) {
  std::vector<agent_room> rooms;
  for (const auto& [slots, count] : agents)
    for (int i = 0; i < std::min(count, most) && slots > 0;
         ++i) // a run is on no more agents than it has slots
      rooms.push_back({std::to_string(rooms.size()), slots, slots, true});
  room_index all;
  for (const auto& room : rooms)
    all.insert(room);
  return all.holds(least, most, single_node, gangs);
}

int slots_launched(int least, int most, int size) {
  if (size <= 0)
    return 0;
  const int count = least <= size ? least : (least + size - 1) / size * size;
  return count <= most ? count : 0;
}

std::int64_t pool_capacity::most() const {
  std::int64_t there = 0;
  for (const auto& [slots, count] : agents)
    there += std::int64_t{slots} * count;
  there = std::max(there, std::int64_t{instance_slots} * max_instances);
  return max_slots < 0 ? there : std::min<std::int64_t>(there, max_slots);
}

value to_value(const pool_capacity& x) {
  auto agents = value::array();
  for (const auto& [slots, count] : x.agents)
    agents.push_back({slots, count});
  return {{"agents", std::move(agents)},        {"instanceSlots", x.instance_slots},
          {"maxInstances", x.max_instances},    {"largest", x.largest},
          {"gangs", static_cast<int>(x.gangs)}, {"maxSlots", x.max_slots},
          {"launchError", x.launch_error}};
}

pool_capacity capacity_of(const value& x) {
  pool_capacity out;
  for (const auto& one : x.at("agents"))
    out.agents[one.at(0).get<int>()] = one.at(1).get<int>();
  out.instance_slots = x.at("instanceSlots").get<int>();
  out.max_instances = x.at("maxInstances").get<int>();
  out.largest = x.at("largest").get<int>();
  out.gangs = static_cast<gang_rule>(x.at("gangs").get<int>());
  out.max_slots = x.at("maxSlots").get<int>();
  out.launch_error = x.at("launchError").get<bool>();
  return out;
}

std::string launch_warning(const pool_capacity& pool, int least, int most, bool single_node) {
  if (least <= 0)
    return {};
  const int size = pool.instance_slots;
  const bool larger = size > 0 && least > size;
  const bool held = empty_agents_hold(pool.agents, least, most, single_node, pool.gangs);
  if (larger && single_node && !held)
    return "LAUNCH_WARNING_LARGER_THAN_INSTANCES";
  if (least > pool.most())
    return "LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED";
  const auto supplied =
    static_cast<int>(std::min<std::int64_t>(most, std::int64_t{size} * pool.max_instances));
  if (held || (slots_launched(least, supplied, size) > 0 &&
               empty_agents_hold({{size, pool.max_instances}}, least, most, single_node, pool.gangs)))
    return {};
  return larger ? "LAUNCH_WARNING_NO_WHOLE_INSTANCES" : "LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED";
}

} // namespace troupe
