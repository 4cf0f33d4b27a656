// What an elastic pool tells its provider, and for which runs the provider can launch instances.

#include "actors/pool/capacity.hpp"
#include "actors/pool/pool.hpp"

#include <algorithm>
#include <charconv>

namespace troupe {

/// The instances that are idle while runs wait, and what the runs before have left of them. A run that waits
/// although it fits there, as others come first, counts on them as well as a gang that needs more of them. So
/// does a run that waits until an instance has killed its strays: what an agent reports that was started
/// again after its runs were given away.
class pool::idle_instances {
public:
  explicit idle_instances(const pool& of) : size_(of.supply_.instance_slots) {
    if (size_ <= 0 || of.phase_ != phase::placing)
      return;
    const bool kills = of.now_ < of.strays_until_;
    for (const auto& [name, agent] : of.agents_)
      if (agent.present && !agent.drained && agent.empty.free >= size_ && of.is_of_instance(name))
        if (const int left = is_idle(agent) ? size_ : kills ? after_strays(agent) : 0; left > 0)
          all_.push_back({&agent, std::min(left, size_)});
  }

  /// Of the `need` slots that the run is to get, returns those that it needs beyond those instances.
  int serve(const pool_run& run, int need) {
    if (all_.empty())
      return need;
    const auto [known, fresh] = by_view_.try_emplace(run.view->number);
    if (fresh)
      known->second = those_of(*run.view);
    std::erase_if(known->second, [](const auto* one) { return one->left == 0; });
    for (auto* one : known->second) {
      const int part = std::min(need, size_);
      if (need == 0 || one->left < part)
        continue;
      one->left -= part;
      awaited_.insert(one->agent);
      need -= part;
    }
    return need;
  }

  bool is_awaited(const pool_agent& agent) const { return awaited_.contains(&agent); }

private:
  /// The slots that are free once the strays are dead; 0: the agent has none.
  static int after_strays(const pool_agent& agent) {
    int strays = 0, free = 0;
    for (const auto& slot : agent.slots) {
      strays += slot.holder && !slot.holder->granted;
      free += !slot.holder;
    }
    return strays > 0 ? strays + free : 0;
  }
  struct idle_instance {
    const pool_agent* agent = nullptr;
    int left = 0; ///< number of its slots that no run counts on
  };

  /// Those in the group of the view that has most of them, as a run is placed within one group.
  std::vector<idle_instance*> those_of(const agent_view& view) {
    std::vector<idle_instance*> most;
    for (const auto& [label, group] : view.groups) {
      std::vector<idle_instance*> here;
      for (auto& one : all_) {
        const auto& groups = one.agent->groups;
        if (std::find(groups.begin(), groups.end(), &group) != groups.end())
          here.push_back(&one);
      }
      if (here.size() > most.size())
        most = std::move(here);
    }
    return most;
  }

  int size_;
  std::vector<idle_instance> all_;
  std::set<const pool_agent*> awaited_;                          ///< never iterated
  std::map<std::uint64_t, std::vector<idle_instance*>> by_view_; ///< by the number of the view
};

/// Goes through the queue in its order, and counts the runs that could be placed together within all limits.
/// A run that waits for a limit is left out, as it could not use more agents, and so is a run for which no
/// instances are launched.
pool_demand pool::demand() const {
  pool_demand out;
  out.whole = phase_ == phase::placing;
  std::map<std::pair<std::uint64_t, int>, int> counts; ///< number of runs by job and slots
  std::map<run_shape, bool> fits;
  const auto is_wanted_for = [&](const pool_run& run) {
    const auto [known, fresh] = fits.try_emplace(run.shape());
    if (fresh)
      known->second = is_launched_for(run);
    return known->second;
  };
  std::map<limit_key, std::optional<int>> left; ///< room that the runs before leave; none: no limit
  std::map<const pool_job*, std::array<std::optional<int>*, 4>> rooms; // never iterated
  /// Takes the slots for which instances are launched below the limits, and returns how many these are;
  /// 0: the limits leave too few.
  const auto takes_room = [&](const pool_run& run) {
    if (unlimited(*run.job))
      return launched_for(run, run.slots);
    const auto [known, fresh] = rooms.try_emplace(run.job);
    if (fresh) {
      auto* next = known->second.data();
      for (const auto& key : limits_of(run)) {
        const auto [at, first] = left.try_emplace(key);
        if (first)
          at->second = room(key);
        *next++ = &at->second;
      }
    }
    int most = run.slots;
    for (const auto* its : known->second)
      most = std::min(most, its->value_or(most));
    const int slots = most < run.need() ? 0 : launched_for(run, most);
    for (auto* its : known->second)
      if (*its)
        **its -= slots;
    return slots;
  };
  // Before any instance has come, a run that asks for devices brings one alone, by which the pool learns what
  // instances are like. Further such runs wait for that one.
  bool learns = false;
  const auto asks_of_unknown = [&](const pool_run& run) {
    const auto& rules = run.terms.rules;
    return !instance_traits_ && (!rules.device_types.empty() || rules.min_memory_bytes > 0);
  };
  idle_instances idle(*this);
  for (const auto* run : queued()) {
    const bool unknown = asks_of_unknown(*run);
    if ((unknown && learns) || !is_wanted_for(*run))
      continue;
    const int wanted = takes_room(*run);
    if (wanted == 0)
      continue;
    learns = learns || unknown;
    if (int slots = idle.serve(*run, wanted); slots > 0)
      ++counts[{run->job->terms.job.value, unknown ? std::min(slots, supply_.instance_slots) : slots}];
  }
  for (const auto* run : aux_waiting_.list())
    if (is_wanted_for(*run))
      ++counts[{run->job->terms.job.value, 0}];
  for (const auto& [key, count] : counts) {
    out.runs.push_back({key.second, key.first, count});
    if (const auto& job = jobs_.at(experiment_id{key.first}); job.terms.max_slots >= 0)
      out.limits[key.first] = {job.terms.max_slots, job.held};
  }
  for (const auto& [name, agent] : agents_)
    if (agent.present || !agent.slots.empty() || agent.aux_used > 0) {
      const bool is_free = out.whole && is_idle(agent);
      out.agents.push_back({name, agent.present, is_free, agent.drained, is_free && idle.is_awaited(agent),
                            is_of_instance(name)});
    }
  return out;
}

/// Whether the provider is asked for instances because of this run.
bool pool::is_launched_for(const pool_run& run) const {
  return !run.guest && supply_can_hold(run) && (run.slots == 0 || launched_for(run, run.slots) > 0);
}

/// With how many slots, at most `most`, the run counts in the demand, as wanted_instances() takes it: a run
/// that is larger than an instance has to fill whole instances. 0: no instances are launched for it.
int pool::launched_for(const pool_run& run, int most) const {
  const int size = supply_.instance_slots;
  const auto supplied = run.single_node ? std::int64_t{size} : most_supplied();
  return slots_launched(run.need(), static_cast<int>(std::min<std::int64_t>(most, supplied)), size);
}

pool_capacity pool::capacity() const {
  pool_capacity out;
  bool unknown = false; // an agent may come of which only the name is known
  for (const auto& [name, agent] : agents_) {
    const auto slots = static_cast<int>(agent.slots.size());
    if (agent.present && slots > 0)
      ++out.agents[slots];
    const bool counts = agent.present || may_return(agent);
    if (counts && agent.seen)
      out.largest = std::max(out.largest, slots);
    unknown = unknown || (counts && !agent.seen);
  }
  if (!supply_.type.empty()) {
    out.instance_slots = supply_.instance_slots;
    out.max_instances = supply_.max_instances;
    out.largest = std::max(out.largest, supply_.instance_slots);
  }
  if (unknown)
    out.largest = -1;
  out.gangs = settings_.gangs;
  out.max_slots = settings_.max_slots;
  out.launch_error = settings_.launch_error;
  return out;
}

std::int64_t pool::most_supplied() const {
  return supply_.type.empty() ? 0 : std::int64_t{supply_.max_instances} * supply_.instance_slots;
}

void pool::learn_of_instance(const pool_agent& agent) {
  constexpr std::size_t most_names = 1000;
  instance_traits_ = agent.traits;
  instance_names_.insert(agent.now.name);
  if (instance_names_.size() > most_names)
    instance_names_.erase(instance_names_.begin());
}

/// Whether an agent of this name is on an instance of the provider. That is known before the provider has
/// told of the instance where it names instances by numbers.
bool pool::is_of_instance(const std::string& name) const {
  const auto& prefix = supply_.prefix;
  if (supply_.agents.contains(name))
    return true;
  if (prefix.empty() || !name.starts_with(prefix))
    return false;
  int number = 0;
  const auto* end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + prefix.size(), end, number);
  return read.ec == std::errc() && read.ptr == end && number >= 1 && number <= supply_.max_instances;
}

/// Whether the agent, which is away, may come back: nobody removed it, and its instance was not ended.
bool pool::may_return(const pool_agent& agent) const {
  return agent.expected && !supply_.ended.contains(agent.now.name);
}

/// Whether another instance may be one of the agents that these rules name. How a provider names the next one
/// may be unknown. Then one instance is launched to learn that, and no further one while an instance is there
/// that the rules do not name.
bool pool::may_bring(const placement_rules& rules) const {
  const auto among = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  const auto may_come = [&](const std::string& name) {
    const auto* known = known_agent(name);
    if (among(rules.not_agents, name) || (known && known->present))
      return false;
    if (supply_.agents.contains(name))
      return !known || !known->seen; // it starts, or else it is away, and another one would not replace it
    return supply_.prefix.empty() ? !instance_traits_ || instance_names_.contains(name)
                                  : is_of_instance(name);
  };
  const auto is_another = [&](const std::string& name) { return has(name) && !among(rules.agents, name); };
  return std::any_of(rules.agents.begin(), rules.agents.end(), may_come) &&
         (!supply_.prefix.empty() || std::none_of(supply_.agents.begin(), supply_.agents.end(), is_another));
}

/// Whether the instances that the provider may have, without `blocked` of them, could hold the run under
/// these rules. They are taken to be like the newest one. Before any has come, its device and the memory of
/// it are unknown and do not count.
bool pool::supply_could_hold(const pool_run& run, placement_rules rules, int blocked) const {
  int most = supply_.max_instances - blocked;
  if (!rules.agents.empty()) {
    if (!may_bring(rules))
      return false;
    most = std::min(most, static_cast<int>(rules.agents.size()));
    rules.agents.clear();
  }
  if (supply_.type.empty() || most <= 0)
    return false;
  agent_traits traits;
  if (instance_traits_) {
    traits = *instance_traits_;
  } else {
    rules.device_types.clear();
    rules.min_memory_bytes = 0;
    traits.labels = supply_.labels;
  }
  if (!refusal(rules, {}, traits).empty())
    return false;
  if (run.slots == 0)
    return true;
  return empty_agents_hold({{supply_.instance_slots, most}}, run.need(), run.slots, rules.single_node,
                           settings_.gangs);
}

} // namespace troupe
