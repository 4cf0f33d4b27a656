#include "actors/pool/fitting.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/core.h>

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

void room_index::take_first(members& to, const members& from, int count, const members* but) {
  for (auto it = from.begin(); it != from.end() && count > 0; ++it)
    if (!but || !but->contains(*it)) {
      to.insert(*it);
      --count;
    }
}

/// The agents of as many slots; null: there are none.
const room_index::members* room_index::like(const bucket& b) const {
  const auto it = buckets_.find(b);
  return it == buckets_.end() ? nullptr : &it->second;
}

bool room_index::contains(const agent_room& agent) const {
  const auto* same = like({agent.free, agent.total, agent.idle});
  return same && same->contains(&agent);
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

bool room_index::holds(int least, int most, bool single_node, gang_rule gangs) const {
  const int last = gangs == gang_rule::any || single_node ? least : std::min(most, free_);
  for (int slots = least; slots <= last; ++slots)
    if (!fit(slots, single_node, gangs).empty())
      return true;
  return false;
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

/// The smallest number of agents that together have at least `slots` free slots; the number of all agents if
/// they have fewer.
int room_index::fewest(int slots) const {
  int count = 0, left = slots;
  for (auto it = buckets_.rbegin(); it != buckets_.rend() && left > 0; ++it) {
    const int agents = static_cast<int>(it->second.size());
    const int wanted = std::min(agents, (left + it->first.free - 1) / std::max(1, it->first.free));
    count += wanted;
    left -= wanted * it->first.free;
  }
  return count;
}

std::vector<const agent_room*> room_index::largest(int count, const room_index* but) const {
  std::vector<const agent_room*> out;
  for (auto it = buckets_.rbegin(); it != buckets_.rend() && count > 0;) {
    members same; // buckets with as many free slots, merged by name
    for (const int free = it->first.free; it != buckets_.rend() && it->first.free == free; ++it)
      take_first(same, it->second, count, but ? but->like(it->first) : nullptr);
    for (auto agent = same.begin(); agent != same.end() && count > 0; ++agent, --count)
      out.push_back(*agent);
  }
  return out;
}

/// As few agents as can be, in equal parts where possible, else those with most free slots first.
agent_shares room_index::spread(int slots) const {
  const int count = fewest(slots);
  agent_shares out;
  if (slots % count == 0)
    if (const auto equal = choose(count, slots / count, false); static_cast<int>(equal.size()) == count) {
      for (const auto* agent : equal)
        out.push_back({agent, slots / count});
      return out;
    }
  for (const auto* agent : largest(count)) {
    out.push_back({agent, std::min(slots, agent->free)});
    slots -= out.back().slots;
  }
  return out;
}

agent_shares room_index::fit_beside(const room_index& preferred, int slots, gang_rule gangs) const {
  if (slots > free_ || slots <= most())
    return fit(slots, false, gangs);
  return gangs == gang_rule::any ? spread_beside(preferred, slots)
                                 : whole(slots, gangs == gang_rule::whole_mixed, &preferred);
}

/// Those that are preferred have fewer slots free in all, so they are fewer than the slots.
agent_shares room_index::spread_beside(const room_index& preferred, int slots) const {
  const int count = fewest(slots);
  const auto liked = preferred.largest(count), others = largest(count, &preferred);
  const auto n_liked = static_cast<int>(liked.size()), n_others = static_cast<int>(others.size());
  const auto have = [](const std::vector<const agent_room*>& agents, int n) {
    int sum = 0;
    for (int i = 0; i < n; ++i)
      sum += agents[static_cast<std::size_t>(i)]->free;
    return sum;
  };
  int n = std::min(count, n_liked);
  while (n > 0 && (count - n > n_others || have(liked, n) + have(others, count - n) < slots))
    --n;
  agent_shares out;
  if (const int part = slots / count; part * count == slots) {
    const auto equal = preferred.choose(slots, part, false);
    if (static_cast<int>(equal.size()) >= n) {
      auto rest = choose(count - n + static_cast<int>(equal.size()), part, false);
      std::erase_if(rest, [&](const auto* agent) { return preferred.contains(*agent); });
      if (static_cast<int>(rest.size()) >= count - n) {
        for (int i = 0; i < n; ++i)
          out.push_back({equal[static_cast<std::size_t>(i)], part});
        for (int i = 0; i < count - n; ++i)
          out.push_back({rest[static_cast<std::size_t>(i)], part});
        return out;
      }
    }
  }
  for (int i = 0; i < count; ++i) {
    const auto* agent = i < n ? liked[static_cast<std::size_t>(i)] : others[static_cast<std::size_t>(i - n)];
    out.push_back({agent, std::min(slots, agent->free)});
    slots -= out.back().slots;
  }
  return out;
}

/// Takes idle agents with all their slots: agents of one size, the largest size that divides `slots`; or
/// else, where sizes may mix, the largest agents first. Among agents of one size, preferred agents come
/// first.
agent_shares room_index::whole(int slots, bool mixed, const room_index* preferred) const {
  struct of_size {
    members liked, others;
  };
  std::map<int, of_size, std::greater<>> sizes;
  for (const auto& [b, agents] : buckets_)
    if (b.idle && b.free > 0) {
      auto& size = sizes[b.free];
      const int most = slots / b.free;
      const auto* liked = preferred ? preferred->like(b) : nullptr;
      if (liked)
        take_first(size.liked, *liked, most);
      if (!liked || static_cast<int>(liked->size()) < most)
        take_first(size.others, agents, most, liked);
    }
  agent_shares out;
  const auto add = [&](const members& agents, int size, int& left) {
    for (auto it = agents.begin(); it != agents.end() && size <= left; ++it, left -= size)
      out.push_back({*it, size});
  };
  for (const auto& [size, agents] : sizes)
    if (slots % size == 0 && static_cast<int>(agents.liked.size() + agents.others.size()) >= slots / size) {
      add(agents.liked, size, slots);
      add(agents.others, size, slots);
      return out;
    }
  if (!mixed)
    return {};
  for (const auto& [size, agents] : sizes) {
    add(agents.liked, size, slots);
    add(agents.others, size, slots);
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

/// In GiB with at most one digit after the point, as configurations name sizes; less than 0.1 GiB in bytes.
std::string memory_text(std::uint64_t bytes) {
  const double gib = static_cast<double>(bytes) / (1u << 30);
  if (bytes > 0 && gib < 0.1)
    return fmt::format("{} bytes", bytes);
  return fmt::format("{:.{}f} GiB", gib, std::round(gib) == gib ? 0 : 1);
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
    return "lacks memory: " + memory_text(traits.memory_bytes) + " of " +
           memory_text(rules.min_memory_bytes) + " a device";
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
