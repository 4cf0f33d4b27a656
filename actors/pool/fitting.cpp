#include "actors/pool/fitting.hpp"

#include <algorithm>
#include <cctype>

namespace troupe {

bool viable(int slots, int agent_slots, int used, int aux_most, int aux_used) {
  return slots > 0 ? slots <= agent_slots - used : aux_used < aux_most;
}

double fitting_score(fitting_order order, int slots, int agent_slots, int used, int aux_most, int aux_used) {
  if (slots == 0) {
    if (aux_most == 0 || aux_used >= aux_most)
      return 0;
    const double free = aux_most - aux_used;
    return order == fitting_order::best ? 1 / (1 + free) : free / aux_most;
  }
  const double empty = agent_slots - used;
  if (order == fitting_order::best)
    return 1 / (1 + empty);
  return agent_slots > 0 ? empty / agent_slots : 0;
}

void room_index::insert(const agent_room& agent) {
  if (agent.free == 0) // no question concerns an agent without free slots
    return;
  buckets_[{agent.free, agent.total, agent.idle}].insert(&agent);
  free_ += agent.free;
}

void room_index::erase(const agent_room& agent) {
  if (agent.free == 0)
    return;
  const auto it = buckets_.find({agent.free, agent.total, agent.idle});
  TROUPE_ASSERT(it != buckets_.end());
  auto& agents = it->second;
  if (const auto first = agents.begin(); *first == &agent) // mostly so, as most runs get the best agent
    agents.erase(first);
  else
    TROUPE_ASSERT(agents.erase(&agent) == 1);
  if (it->second.empty())
    buckets_.erase(it);
  free_ -= agent.free;
}

int room_index::most() const { return buckets_.empty() ? 0 : buckets_.rbegin()->first.free; }

std::vector<const agent_room*> room_index::with_room() const {
  std::vector<const agent_room*> all;
  for (const auto& [b, agents] : buckets_)
    all.insert(all.end(), agents.begin(), agents.end());
  std::sort(all.begin(), all.end(), by_name());
  return all;
}

void room_index::take_first(members& to, const members& from, int count) {
  for (auto it = from.begin(); it != from.end() && count > 0; ++it, --count)
    to.insert(*it);
}

/// The `count` best agents that have at least `least_free` free slots, or all such agents where they are
/// fewer. Equal agents are ordered by name.
std::vector<const agent_room*> room_index::choose(int count, int least_free, bool idle) const {
  struct rated {
    double score;
    const members* agents;
  };
  std::vector<rated> order;
  for (auto it = buckets_.lower_bound({least_free, 0, false}); it != buckets_.end(); ++it)
    if (!idle || it->first.idle)
      order.push_back(
        {fitting_score(order_, 1, it->first.total, it->first.total - it->first.free, 0, 0), &it->second});
  std::stable_sort(order.begin(), order.end(),
                   [](const rated& a, const rated& b) { return a.score > b.score; });
  std::vector<const agent_room*> out;
  for (std::size_t from = 0; from < order.size() && static_cast<int>(out.size()) < count;) {
    auto to = from;
    std::vector<members::const_iterator> heads;
    for (; to < order.size() && order[to].score == order[from].score; ++to)
      heads.push_back(order[to].agents->begin());
    while (static_cast<int>(out.size()) < count) { // buckets of one score, merged by name
      std::size_t first = heads.size();
      for (std::size_t i = 0; i < heads.size(); ++i)
        if (heads[i] != order[from + i].agents->end() &&
            (first == heads.size() || by_name()(*heads[i], *heads[first])))
          first = i;
      if (first == heads.size())
        break;
      out.push_back(*heads[first]++);
    }
    from = to;
  }
  return out;
}

/// The best of the agents that have at least `slots` free slots. There must be such an agent.
const agent_room* room_index::best(int slots) const {
  const agent_room* found = nullptr;
  double found_score = 0;
  for (auto it = buckets_.lower_bound({slots, 0, false}); it != buckets_.end(); ++it) {
    if (found && order_ == fitting_order::best && it->first.free > found->free)
      break; // the agents from here on have more free slots and are worse
    const auto* agent = *it->second.begin();
    const double score = fitting_score(order_, 1, it->first.total, it->first.total - it->first.free, 0, 0);
    if (!found || score > found_score || (score == found_score && by_name()(agent, found))) {
      found = agent;
      found_score = score;
    }
  }
  return found;
}

agent_shares room_index::fit(int slots, bool single_node, gang_rule gangs) const {
  if (slots > free_)
    return {};
  if (slots <= most())
    return {share_of_agent{best(slots), slots}};
  if (single_node || slots == 1)
    return {};
  return gangs == gang_rule::any ? spread(slots) : whole(slots, gangs == gang_rule::whole_mixed);
}

bool room_index::better(const agent_shares& a, const agent_shares& b) const {
  if (a.size() != b.size())
    return a.size() < b.size();
  const auto equal = [](const agent_shares& parts) {
    return std::all_of(parts.begin(), parts.end(),
                       [&](const share_of_agent& part) { return part.slots == parts.front().slots; });
  };
  if (const bool first = equal(a), second = equal(b); first != second)
    return first;
  const auto score = [this](const agent_shares& parts) {
    double sum = 0;
    for (const auto& [agent, slots] : parts)
      sum += fitting_score(order_, 1, agent->total, agent->total - agent->free, 0, 0);
    return sum;
  };
  if (const double first = score(a), second = score(b); first != second)
    return first > second;
  return std::lexicographical_compare(
    a.begin(), a.end(), b.begin(), b.end(),
    [](const share_of_agent& x, const share_of_agent& y) { return by_name()(x.agent, y.agent); });
}

/// Takes as few agents as possible, in equal parts where that is possible, or else agents with the most free
/// slots first.
agent_shares room_index::spread(int slots) const {
  int count = 0, left = slots;
  for (auto it = buckets_.rbegin(); it != buckets_.rend() && left > 0; ++it) {
    const int agents = static_cast<int>(it->second.size());
    const int wanted = std::min(agents, (left + it->first.free - 1) / std::max(1, it->first.free));
    count += wanted;
    left -= wanted * it->first.free;
  }
  agent_shares out;
  if (slots % count == 0)
    if (const auto equal = choose(count, slots / count, false); static_cast<int>(equal.size()) == count) {
      for (const auto* agent : equal)
        out.push_back({agent, slots / count});
      return out;
    }
  left = slots;
  for (auto it = buckets_.rbegin(); it != buckets_.rend() && left > 0;) {
    auto to = it; // buckets with as many free slots, merged by name
    members same;
    const int wanted = it->first.free > 0 ? (left + it->first.free - 1) / it->first.free : 0;
    for (; to != buckets_.rend() && to->first.free == it->first.free; ++to)
      take_first(same, to->second, wanted);
    for (const auto* agent : same)
      if (const int part = std::min(left, agent->free); part > 0) {
        out.push_back({agent, part});
        left -= part;
      }
    it = to;
  }
  return out;
}

/// Takes idle agents with all their slots: agents of one size, the largest size that divides `slots`; or
/// else, where sizes may mix, the largest agents first.
agent_shares room_index::whole(int slots, bool mixed) const {
  std::map<int, members, std::greater<>> sizes;
  for (const auto& [b, agents] : buckets_)
    if (b.idle && b.free > 0)
      take_first(sizes[b.free], agents, slots / b.free);
  agent_shares out;
  for (const auto& [size, agents] : sizes)
    if (slots % size == 0 && static_cast<int>(agents.size()) >= slots / size) {
      for (auto it = agents.begin(); static_cast<int>(out.size()) < slots / size; ++it)
        out.push_back({*it, size});
      return out;
    }
  if (!mixed)
    return {};
  for (const auto& [size, agents] : sizes)
    for (const auto* agent : agents)
      if (size <= slots) {
        out.push_back({agent, size});
        slots -= size;
      }
  return slots == 0 ? out : agent_shares{};
}

namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool is_device(const std::string& device, const std::string& type) {
  const auto name = lower(device), wanted = lower(type);
  if (wanted == "cpu" || wanted == "cuda")
    return is_processor(name) == (wanted == "cpu");
  for (std::size_t from = 0; from < name.size();) { // each word of the name
    auto to = name.find_first_of(" -_/()@", from);  // as in "Intel(R) Xeon(R) CPU @ 2.20GHz"
    to = to == name.npos ? name.size() : to;
    if (name.substr(from, to - from) == wanted)
      return true;
    from = to + 1;
  }
  return name == wanted || name == "cpu " + wanted;
}

bool among(const std::vector<std::string>& list, const std::string& x) {
  return std::find(list.begin(), list.end(), x) != list.end();
}

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (const auto& one : list)
    text += (text.empty() ? "" : "|") + one;
  return text;
}

} // namespace

bool is_processor(const std::string& device) {
  return device.empty() || device == "cpu" || device.starts_with("cpu ");
}

std::string refusal(const placement_rules& rules, const std::string& agent, const agent_traits& traits) {
  if (!rules.agents.empty() && !among(rules.agents, agent))
    return "is none of the agents that were asked for";
  if (among(rules.not_agents, agent))
    return "is excluded by name";
  if (!rules.device_types.empty() &&
      std::none_of(rules.device_types.begin(), rules.device_types.end(),
                   [&](const auto& type) { return is_device(traits.device, type); }))
    return "lacks device " + joined(rules.device_types) + ", has " +
           (traits.device.empty() ? "cpu" : traits.device);
  if (traits.memory_bytes < rules.min_memory_bytes)
    return "lacks memory: " + std::to_string(traits.memory_bytes) + " of " +
           std::to_string(rules.min_memory_bytes) + " bytes a device";
  const auto has = [&](const std::string& key, const std::vector<std::string>& values) {
    const auto it = traits.labels.find(key);
    return it != traits.labels.end() && among(values, it->second);
  };
  for (const auto& [key, values] : rules.labels)
    if (!has(key, values)) {
      const auto it = traits.labels.find(key);
      return "lacks " + key + "=" + joined(values) +
             (it == traits.labels.end() ? "" : ", has " + key + "=" + it->second);
    }
  for (const auto& [key, values] : rules.not_labels)
    if (has(key, values))
      return "has " + key + "=" + traits.labels.at(key);
  if (!rules.same_label.empty() && !traits.labels.contains(rules.same_label))
    return "lacks label " + rules.same_label;
  return {};
}

} // namespace troupe
