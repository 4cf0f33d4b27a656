#pragma once
// What a resource pool hears: the events of its machine (pool.hpp), which are also messages.

#include "actors/machine.hpp"

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace troupe {

/// What an agent is, as far as it decides who is placed there. All its slots are alike.
struct agent_traits {
  std::map<std::string, std::string> labels;
  std::string device;             ///< "cpu", "cuda", or the name of its devices: "NVIDIA H200"
  std::uint64_t memory_bytes = 0; ///< of each device; 0: artificial slots, which have none
  int aux = -1;                   ///< tasks without slots at once; below 0: as the pool says
  MSGPACK_DEFINE_ARRAY(labels, device, memory_bytes, aux)
};
/// An agent's slots, all of them; `busy` are those that its inventory says are taken, by allocation.
struct agent_up {
  std::string agent;
  int slots = 0;
  std::map<std::string, std::vector<int>> busy; ///< by allocation id as text
  agent_traits traits;
  MSGPACK_DEFINE_ARRAY(agent, slots, busy, traits)
};
/// An agent of the pool is away, also one that has not registered yet.
struct agent_down {
  std::string agent;
  bool gone = false; ///< it has left the pool, and is not waited for
  MSGPACK_DEFINE_ARRAY(agent, gone)
};

/// Which agents may hold a run: `resources.constraints`. What is empty allows all.
struct placement_rules {
  std::vector<std::string> device_types; ///< any of them: "cpu", "cuda", or a word of the device's name
  std::uint64_t min_memory_bytes = 0;    ///< of each device
  std::map<std::string, std::vector<std::string>> labels;     ///< each of them has one of the values
  std::map<std::string, std::vector<std::string>> not_labels; ///< none of them has one of the values
  std::vector<std::string> agents, not_agents;
  std::string same_label; ///< all agents of a gang carry one value of it
  std::map<std::string, std::vector<std::string>> prefer_labels; ///< says where, never whether
  bool single_node = false;
  friend bool operator==(const placement_rules&, const placement_rules&) = default;
  friend auto operator<=>(const placement_rules&, const placement_rules&) = default;
  MSGPACK_DEFINE_ARRAY(device_types, min_memory_bytes, labels, not_labels, agents, not_agents, same_label,
                       prefer_labels, single_node)
};
/// The job that a run belongs to, which is an experiment: whose it is, and what it may have.
struct job_terms {
  experiment_id job;
  time_point submitted; ///< orders jobs; where two are equal, `label` does, then the id
  double weight = 1;    ///< of its share, in a fair pool
  int priority = 0;     ///< 1..99, smaller is more urgent; 0: the pool's default
  int max_slots = -1;   ///< that it may hold at once; below 0: any number
  std::string label;
  std::string user, workspace;
  MSGPACK_DEFINE_ARRAY(job, submitted, label, user, workspace, priority, weight, max_slots)
};
/// What a run says of itself, whether it waits for slots or holds some.
struct run_terms {
  job_terms job;
  time_point started; ///< run_started.at: orders the runs of a job; none: the order of arrival does
  std::string label;  ///< orders runs that are equal so far, before their ids
  bool preemptible = true;
  placement_rules rules;
  std::vector<std::string> excluded; ///< those of `rules.not_agents` that its log policies have added
  MSGPACK_DEFINE_ARRAY(job, started, label, preemptible, rules, excluded)
};
struct slots_requested {
  allocation_id allocation;
  int slots = 1; ///< 0: none, but one of the agent's aux units
  int least = 0; ///< that will do; 0: no fewer. By one that holds some: it would take more
  run_terms run;
  /// Where it waits as well, of a guest: this pool is one of those that it falls back to. A guest gets what
  /// is free when nobody before it waits; nothing is preempted or reserved for it. Empty: its own pool.
  std::string home;
  MSGPACK_DEFINE_ARRAY(allocation, slots, least, run, home)
};
/// Also withdraws a request that waits. Unknown allocations are no error.
struct slots_released {
  allocation_id allocation;
  std::string agent; ///< only those on it; empty: all
  MSGPACK_DEFINE_ARRAY(allocation, agent)
};
/// What may be placed on this agent from now on; it replaces what was said before. Known or not: the agent
/// may come later.
struct agent_drain {
  std::string agent;
  bool on = true;            ///< nothing new is placed on any slot
  std::vector<int> disabled; ///< nothing new is placed on these slots
  bool ends = false;         ///< what runs on the agent is ended
  std::vector<int> ended;    ///< what runs on these slots is ended
  MSGPACK_DEFINE_ARRAY(agent, on, disabled, ends, ended)
};
/// An allocation that was granted these slots before the pool, or its master, was made again.
struct slots_held {
  allocation_id allocation;
  std::vector<placement> on;
  run_terms run;
  int slots = 0, least = 0; ///< as it asked for them
  time_point since;         ///< its placement; none: long ago
  MSGPACK_DEFINE_ARRAY(allocation, on, run, slots, least, since)
};
/// Every allocation has told the pool that was made again what it holds: from now on it places.
struct holders_heard {
  MSGPACK_DEFINE_ARRAY()
};
/// The agent is gone for good: what an operator said of it is forgotten.
struct agent_forgotten {
  std::string agent;
  MSGPACK_DEFINE_ARRAY(agent)
};
/// Of a live job: it replaces what its runs have said.
struct job_changed {
  job_terms job;
  MSGPACK_DEFINE_ARRAY(job)
};
/// The settings in force, complete, as the keys of `pools.NAME` of a cluster file.
struct pool_configured {
  value settings;
  MSGPACK_DEFINE_ARRAY(settings)
};

/// What others know of a run that holds slots: for explanations, which never decide.
struct run_outlook {
  allocation_id allocation;
  double seconds = -1; ///< it still runs about so long; below 0: nobody knows
  std::string from;    ///< "history" of the experiment's ended runs, or the run's own "progress"
  time_point saved;    ///< its newest checkpoint, else its start; none: as the pool knows
  MSGPACK_DEFINE_ARRAY(allocation, seconds, from, saved)
};

/// A run that waits for slots, as queue.list tells of it.
struct queued_run {
  allocation_id allocation;
  experiment_id job;
  int slots = 1;
  int priority = 0;
  double weight = 1;
  std::string user;
  time_point since;
  std::string reason; ///< a code, as in an explanation
  MSGPACK_DEFINE_ARRAY(allocation, job, slots, priority, weight, user, since, reason)
};

/// What the provider of an elastic pool has and can have; it replaces what was said before.
struct supply_told {
  std::string type; ///< "local" or "command"; empty: the pool has no provider any more
  int instance_slots = 0, max_instances = 0;
  int instances = 0, starting = 0;
  std::string error;                         ///< the newest failure that stands; empty: none
  std::vector<std::string> faults;           ///< what the provider does wrong, for people
  std::map<std::string, std::string> labels; ///< of its instances
  MSGPACK_DEFINE_ARRAY(type, instance_slots, max_instances, instances, starting, error, faults, labels)
};

using pool_event =
  std::variant<agent_up, agent_down, slots_requested, slots_released, agent_drain, slots_held, holders_heard,
               agent_forgotten, job_changed, pool_configured, time_passed, supply_told>;

/// It has waited for so long that it may ask these pools, the first before the others. It goes on to wait
/// here until one of them, or this one, grants. It replaces an earlier list. An action of the pool, and a
/// message to the allocation.
struct fall_back {
  allocation_id allocation;
  std::vector<std::string> pools;
  MSGPACK_DEFINE_ARRAY(allocation, pools)
};
/// A guest that gets nothing now waits here: it may ask the next pool. An action of the pool, and a message
/// to the allocation, with the name of the pool.
struct guest_waits {
  allocation_id allocation;
  std::string pool;
  MSGPACK_DEFINE_ARRAY(allocation, pool)
};

/// All slots of this pool together could not hold it now. Said once per request; the request stays queued,
/// and lets others pass. An action of the pool, and a message to the allocation.
struct report_unplaceable {
  allocation_id allocation;
  int slots = 0; ///< wanted
  int total = 0; ///< of the pool
  /// Where these agents, which its log policies exclude, are what it lacks, and no other can come: it is in
  /// vain to wait. Empty: it waits.
  std::vector<std::string> excluded;
  MSGPACK_DEFINE_ARRAY(allocation, slots, total, excluded)
};
/// An order to one that holds slots: it has to make room, within its time limit. An action of the pool, and a
/// message to the allocation.
struct preempt_allocation {
  allocation_id allocation;
  allocation_id wanted_by; ///< who gets the slots; none: no one in particular
  std::string reason;      ///< "priority", "fair_share", "max_slots", "quota", "disabled" or "pool"
  MSGPACK_DEFINE_ARRAY(allocation, wanted_by, reason)
};

} // namespace troupe
