#pragma once
// The events of the machine of a resource pool (pool.hpp), which are also messages, and the messages to
// allocations that are also its actions.

#include "actors/machine.hpp"

#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe {

/// The properties of an agent that decide which runs may be placed on it. All slots of an agent are alike.
struct agent_traits {
  std::map<std::string, std::string> labels;
  std::string device;             ///< "cpu", "cuda", or the name of its devices: "NVIDIA H200"
  std::uint64_t memory_bytes = 0; ///< memory of each device in bytes; 0: artificial slots without a device
  int aux = -1;                   ///< limit of tasks without slots; below 0: the limit of the pool counts
  TROUPE_PACKED(labels, device, memory_bytes, aux)
};
/// An agent is up, with this number of slots. `busy` are the slots that its inventory says are taken.
struct agent_up {
  std::string agent;
  int slots = 0;
  std::map<std::string, std::vector<int>> busy; ///< slots by the id of their allocation, as text
  agent_traits traits;
  TROUPE_PACKED(agent, slots, busy, traits)
};
/// An agent of the pool is away, or has not registered yet.
struct agent_down {
  std::string agent;
  bool gone = false; ///< the agent has left the pool, so the pool does not expect it back
  time_point until;  ///< when its lease is over; the epoch: it is over, or unknown. For explanations only
  TROUPE_PACKED(agent, gone, until)
};

/// Which agents may hold a run: `resources.constraints`. An empty field allows all agents.
struct placement_rules {
  std::vector<std::string> device_types; ///< one of these fits: "cpu", "cuda", or a word of the device's name
  std::uint64_t min_memory_bytes = 0;    ///< least memory of each device, in bytes
  std::map<std::string, std::vector<std::string>> labels;     ///< each label must have one of its values
  std::map<std::string, std::vector<std::string>> not_labels; ///< no label may have one of its values
  std::vector<std::string> agents, not_agents;
  std::string same_label; ///< all agents of a gang must have the same value of this label
  std::map<std::string, std::vector<std::string>> prefer_labels; ///< preferred, but not required
  bool single_node = false;
  friend bool operator==(const placement_rules&, const placement_rules&) = default;
  friend auto operator<=>(const placement_rules&, const placement_rules&) = default;
  TROUPE_PACKED(device_types, min_memory_bytes, labels, not_labels, agents, not_agents, same_label,
                prefer_labels, single_node)
};
/// The job that a run belongs to, which is an experiment or another task: its owner and its limits.
struct job_terms {
  experiment_id job;
  time_point submitted; ///< orders jobs; jobs with equal times are ordered by `label`, then by id
  double weight = 1;    ///< weight of the job's share, in a fair pool
  int priority = 0;     ///< 1..99, smaller is more urgent; 0: the pool's default
  int max_slots = -1;   ///< limit of the slots that the job holds at the same time; below 0: no limit
  std::string label;
  std::string user, workspace;
  TROUPE_PACKED(job, submitted, label, user, workspace, priority, weight, max_slots)
};
/// What an allocation says of its run, whether the run waits for slots or holds some.
struct run_terms {
  job_terms job;
  time_point started; ///< run_started.at, which orders the runs of a job; the epoch: arrival orders them
  std::string label;  ///< orders runs that are equal otherwise, before their ids do
  bool preemptible = true;
  placement_rules rules;
  std::vector<std::string> excluded; ///< the agents in `rules.not_agents` that log policies have added
  TROUPE_PACKED(job, started, label, preemptible, rules, excluded)
};
/// A run asks for slots. A run that holds some says with it that it would take more.
struct slots_requested {
  allocation_id allocation;
  int slots = 1; ///< slots wanted; 0: no slot, but an aux unit of an agent
  int least = 0; ///< least number of slots that is accepted; 0: no fewer than `slots`
  run_terms run;
  /// The pool in which the run waits as well. Such a run is a guest here: this pool is one that it falls back
  /// to. A guest gets free slots when no run before it waits for them; nothing is preempted or reserved for
  /// it. Empty: this is the run's own pool.
  std::string home;
  TROUPE_PACKED(allocation, slots, least, run, home)
};
/// The allocation releases its slots, or withdraws its waiting request. An unknown allocation is not an
/// error.
struct slots_released {
  allocation_id allocation;
  std::string agent; ///< only the slots on this agent are released; empty: all slots
  TROUPE_PACKED(allocation, agent)
};
/// Says what may be placed on this agent from now on, and replaces what was said before. The pool keeps it
/// also for an agent that it does not know yet.
struct agent_drain {
  std::string agent;
  bool on = true;            ///< no new work is placed on any slot
  std::vector<int> disabled; ///< no new work is placed on these slots
  bool ends = false;         ///< runs on the agent are ended at once
  std::vector<int> ended;    ///< runs on these slots are ended at once
  std::string leaves_for;    ///< pool that the agent goes to once nothing is held on it; empty: it stays
  std::string by;            ///< the user who ordered it last; empty: unknown
  TROUPE_PACKED(agent, on, disabled, ends, ended, leaves_for, by)
};
/// An allocation says that it was granted these slots before the pool or the master was made again.
struct slots_held {
  allocation_id allocation;
  std::vector<placement> on;
  run_terms run;
  int slots = 0, least = 0; ///< as in its request
  time_point since;         ///< when the run was placed; the epoch: unknown, counts as long ago
  TROUPE_PACKED(allocation, on, run, slots, least, since)
};
/// Every allocation has told the new pool what it holds, so the pool places from now on.
struct holders_heard {
  TROUPE_PACKED()
};
/// The agent is gone for good, so the pool forgets it and what operators ordered of it.
struct agent_forgotten {
  std::string agent;
  TROUPE_PACKED(agent)
};
/// The terms of a live job have changed. They replace those that the runs of the job have told, or will tell.
struct job_changed {
  job_terms job;
  TROUPE_PACKED(job)
};
/// The complete settings in force, with the keys that `pools.NAME` of a cluster file has.
struct pool_configured {
  value settings;
  TROUPE_PACKED(settings)
};

/// What the cluster knows of a run that holds slots. It serves explanations only, never decisions.
struct run_outlook {
  allocation_id allocation;
  double seconds = -1; ///< seconds that the run still needs, estimated; below 0: unknown
  std::string from;    ///< source of `seconds`: "history" (the experiment's ended runs) or "progress"
  time_point saved;    ///< time of the newest checkpoint, or of the start; the epoch: unknown
  TROUPE_PACKED(allocation, seconds, from, saved)
};

/// A run that waits for slots, as queue.list shows it.
struct queued_run {
  allocation_id allocation;
  experiment_id job;
  int slots = 1;
  int priority = 0;
  double weight = 1;
  std::string user;
  time_point since;
  std::string reason; ///< code of the reason, as in an explanation
  TROUPE_PACKED(allocation, job, slots, priority, weight, user, since, reason)
};

/// What the provider of an elastic pool has and may have; it replaces the report before.
struct supply_told {
  std::string type; ///< "local" or "command"; empty: the pool has no provider any more
  int instance_slots = 0, max_instances = 0;
  int instances = 0, starting = 0;
  std::string error;                         ///< newest failure that is not resolved; empty: none
  std::vector<std::string> faults;           ///< faults of the provider, as text for people
  std::map<std::string, std::string> labels; ///< labels of the agents on its instances
  std::set<std::string> agents;              ///< names of the agents on the instances that are known
  std::string prefix; ///< agents are named so, with a number up to `max_instances`; empty: names are unknown
  std::uint64_t changes = 0; ///< number of times that settings changed what its instances are
  time_point retry_at;       ///< when the call that failed is made again; the epoch: none failed, or unknown
  int failed_launches = 0;   ///< number of launches in a row that failed, also those that are no error yet
  time_point launch_failed_at; ///< when the newest of these failed; the epoch: there is none
  std::string launch_failure;  ///< why the newest of these failed
  int stopping = 0; ///< number of instances beside `instances` that were ordered to end and are not gone yet
  /// Names of the agents on instances that are gone, were ordered to end, or end when they are idle because
  /// their provider was taken out. These agents get no new work.
  std::set<std::string> ended;
  TROUPE_PACKED(type, instance_slots, max_instances, instances, starting, error, faults, labels, agents,
                prefix, changes, retry_at, failed_launches, launch_failed_at, launch_failure, stopping, ended)
};

using pool_event =
  std::variant<agent_up, agent_down, slots_requested, slots_released, agent_drain, slots_held, holders_heard,
               agent_forgotten, job_changed, pool_configured, time_passed, supply_told>;

/// The run has waited for so long that it may ask these pools, one after the other. It also waits here until
/// one of them, or this pool, grants slots. The list replaces an earlier one. It is an action of the pool and
/// a message to the allocation.
struct fall_back {
  allocation_id allocation;
  std::vector<std::string> pools;
  TROUPE_PACKED(allocation, pools)
};
/// A guest gets nothing now and waits here, so it may ask the next pool. It is an action of the pool and a
/// message to the allocation, which has the name of the pool.
struct guest_waits {
  allocation_id allocation;
  std::string pool;
  TROUPE_PACKED(allocation, pool)
};

/// All slots of this pool together could not hold the run now. The pool reports this once for each request;
/// the request stays in the queue and lets others pass. It is an action of the pool and a message to the
/// allocation.
struct report_unplaceable {
  allocation_id allocation;
  int slots = 0; ///< number of slots wanted
  int total = 0; ///< number of slots of the pool
  /// Agents that the run's log policies exclude, where only these could hold the run and no other agent can
  /// come: then it makes no sense to wait. Empty: the run waits.
  std::vector<std::string> excluded;
  TROUPE_PACKED(allocation, slots, total, excluded)
};
/// Orders an allocation that holds slots to release them within its time limit. It is an action of the pool
/// and a message to the allocation.
struct preempt_allocation {
  allocation_id allocation;
  allocation_id wanted_by; ///< allocation that gets the slots; run 0: no particular one
  std::string reason;      ///< "priority", "fair_share", "max_slots", "quota", "disabled" or "pool"
  std::string detail;      ///< with "disabled", for people: "agent gpu01 was disabled by ada"
  TROUPE_PACKED(allocation, wanted_by, reason, detail)
};

} // namespace troupe
