#pragma once
// What the provisioner of an elastic pool hears: the events of its machine (provisioner.hpp), which are also
// messages.

#include "actors/machine.hpp"

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace troupe {

/// A run that waits in the pool.
struct waiting_run {
  int slots = 1;
  std::uint64_t job = 0; ///< 0: a job of its own
  int count = 1;         ///< so many such runs
  MSGPACK_DEFINE_ARRAY(slots, job, count)
};
struct job_limit {
  int max_slots = -1; ///< below 0: any number
  int held = 0;       ///< slots that it holds already
  MSGPACK_DEFINE_ARRAY(max_slots, held)
};
struct pool_agent_state {
  std::string agent;
  bool connected = true;
  bool idle = true;     ///< it runs nothing
  bool drained = false; ///< and is to get nothing: what waits does not wait for it
  friend bool operator==(const pool_agent_state&, const pool_agent_state&) = default;
  MSGPACK_DEFINE_ARRAY(agent, connected, idle, drained)
};
/// What the pool has and what waits in it, all of it; after each change.
struct pool_demand {
  std::vector<waiting_run> runs;
  std::map<std::uint64_t, job_limit> limits; ///< by job
  std::vector<pool_agent_state> agents;
  MSGPACK_DEFINE_ARRAY(runs, limits, agents)
};

struct cloud_instance {
  std::string id;
  enum class phase : int { starting, running, stopping, stopped } state = phase::starting;
  std::string agent; ///< name that its agent registers with; empty: the id
  time_point launched;
  MSGPACK_DEFINE_ARRAY(id, state, agent, launched)
};
struct instances_listed { ///< answers list_instances
  std::vector<cloud_instance> all;
  std::string failed; ///< why there is no list, or empty
  MSGPACK_DEFINE_ARRAY(all, failed)
};
struct instances_launched { ///< answers launch_instances
  std::uint64_t order = 0;
  std::vector<std::string> ids;
  std::string failed; ///< why nothing was launched, or empty
  MSGPACK_DEFINE_ARRAY(order, ids, failed)
};
struct instances_ended { ///< answers terminate_instances
  std::vector<std::string> ids;
  std::string failed;
  MSGPACK_DEFINE_ARRAY(ids, failed)
};
/// The settings in force: `pools.NAME.provider` and `aux_per_agent` of a cluster file, complete.
struct provider_configured {
  value settings;
  MSGPACK_DEFINE_ARRAY(settings)
};
using provisioner_event = std::variant<pool_demand, instances_listed, instances_launched, instances_ended,
                                       provider_configured, time_passed>;

// Actions, and messages to who calls the provider.
struct list_instances {
  MSGPACK_DEFINE_ARRAY()
};
struct launch_instances {
  std::uint64_t order = 0; ///< counts from 1
  int count = 0;
  MSGPACK_DEFINE_ARRAY(order, count)
};
struct terminate_instances {
  std::vector<std::string> ids;
  std::string why; ///< "never came", "disconnected", "idle", "too many", "reported twice", "unknown"
  MSGPACK_DEFINE_ARRAY(ids, why)
};

} // namespace troupe

MSGPACK_ADD_ENUM(troupe::cloud_instance::phase)
