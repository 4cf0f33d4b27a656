#pragma once
// The events of the machine `provisioner` of an elastic pool (provisioner.hpp), which are also messages, and
// those of its actions that are messages.

#include "actors/machine.hpp"

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace troupe {

/// Equal runs that wait in the pool.
struct waiting_run {
  int slots = 1;
  std::uint64_t job = 0; ///< id of the job, whose limit counts; 0: no job, so no limit
  int count = 1;         ///< number of such runs
  TROUPE_PACKED(slots, job, count)
};
struct job_limit {
  int max_slots = -1; ///< limit of the slots of the job; below 0: no limit
  int held = 0;       ///< number of slots that the job holds already
  TROUPE_PACKED(max_slots, held)
};
struct pool_agent_state {
  std::string agent;
  bool connected = true;
  bool idle = true;     ///< nothing runs on the agent
  bool drained = false; ///< no new work is placed on the agent, so waiting runs do not count on it
  bool awaited = false; ///< the agent is idle, and a waiting run counts on it
  /// False: the pool has not heard that the agent is on an instance, so no waiting run counts on it.
  bool known = true;
  friend bool operator==(const pool_agent_state&, const pool_agent_state&) = default;
  TROUPE_PACKED(agent, connected, idle, drained, awaited, known)
};
/// What the runs that wait in the pool need beyond its idle instances, and all agents of the pool. The pool
/// sends it after each change.
struct pool_demand {
  std::vector<waiting_run> runs;             ///< a gang that counts on idle instances needs the rest alone
  std::map<std::uint64_t, job_limit> limits; ///< by job
  std::vector<pool_agent_state> agents;
  bool whole = true; ///< false: the pool does not know yet all that is held, and no agent counts as idle
  TROUPE_PACKED(runs, limits, agents, whole)
};

struct cloud_instance {
  std::string id;
  enum class phase : int { starting, running, stopping, stopped } state = phase::starting;
  std::string agent; ///< name with which the agent registers; empty: the id
  time_point launched;
  TROUPE_PACKED(id, state, agent, launched)
};
struct instances_listed { ///< answers list_instances
  std::vector<cloud_instance> all;
  std::string failed; ///< why there is no list; empty: there is one
  TROUPE_PACKED(all, failed)
};
struct instances_launched { ///< answers launch_instances
  std::uint64_t order = 0;
  std::vector<std::string> ids;
  std::string failed; ///< why no instance was launched; empty: some were
  TROUPE_PACKED(order, ids, failed)
};
struct instances_ended { ///< answers terminate_instances
  std::vector<std::string> ids;
  std::string failed;
  TROUPE_PACKED(ids, failed)
};
/// The settings in force: `pools.NAME.provider` and `aux_per_agent` of a cluster file, complete.
struct provider_configured {
  value settings;
  TROUPE_PACKED(settings)
};
using provisioner_event = std::variant<pool_demand, instances_listed, instances_launched, instances_ended,
                                       provider_configured, time_passed>;

// Actions that are messages to the actor that calls the provider.
struct list_instances {
  TROUPE_PACKED()
};
struct launch_instances {
  std::uint64_t order = 0; ///< counts from 1
  int count = 0;
  TROUPE_PACKED(order, count)
};
struct terminate_instances {
  std::vector<std::string> ids;
  std::string why; ///< "never came", "disconnected", "idle", "too many", "reported twice", "unknown"
  TROUPE_PACKED(ids, why)
};

} // namespace troupe

MSGPACK_ADD_ENUM(troupe::cloud_instance::phase)
