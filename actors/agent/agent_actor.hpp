#pragma once
// The shell of actors/agent/agent.hpp: the root of the agent role. It spawns the worker runtime, the harness
// gateway and the log pump of its host, and registers at a master.

#include "actors/harness/harness_actor.hpp"
#include "actors/host/worker_runtime_actor.hpp"
#include "actors/messages.hpp"
#include "workers/slot_devices.hpp"

#include <filesystem>
#include <functional>

namespace troupe {

/// How an agent makes its children; a test puts others in their place.
struct agent_children {
  std::function<result<harness_gateway>(caf::actor_system&, const harness_setup&, agent_actor)> harness;
  std::function<log_pump_actor(caf::actor_system&, agent_actor)> pump;
  std::function<worker_runtime_actor(caf::actor_system&, worker_runtime_setup, agent_actor)> runtime;
  static agent_children real();
};

struct agent_setup {
  std::string name, host, join_token;
  int slots = 1;
  std::filesystem::path dir;     ///< its own; made if missing
  std::filesystem::path program; ///< troupe-task
  std::filesystem::path python;  ///< folder of the package `troupe`
  std::string python_bin;
  std::string
    master_url; ///< of this agent's own listener, which forwards to the master: what tasks are given
  duration freeze{30s};
  /// Asked at its end: whether its tasks end with it; else, and where it is empty, they wait to be adopted.
  /// Thread-safe.
  std::function<bool()> kill_on_stop;
  std::function<result<std::string>(const std::string&)> fetch; ///< a blob of the master; may block
  std::function<void(const error&)> on_fatal; ///< the agent cannot be: its folder, its port, its name
  std::function<void(std::uint16_t http_port)> on_registered; ///< from the agent's thread
  /// Where the sandboxes of a dead agent may ask the master: all but the bodies. Thread-safe.
  std::function<workers::fence_spec()> fence;
  caf::actor inspector; ///< of this process, told to the master; null where that is in this process
  std::string programs; ///< put behind the tasks' PATH: the folder of this program; may be empty
  std::shared_ptr<workers::slot_devices> devices; ///< what the slots are; null: processors
  std::chrono::milliseconds look_every{5'000};    ///< at what slots and tasks use; 0: never
  agent_children children = agent_children::real();
  std::map<std::string, std::string> labels; ///< of the host; those of the cluster file win
  std::string pool; ///< that it wants to be in; empty: as the cluster file says, else the default one
  std::filesystem::path data; ///< data directory of the node, which no task gets mounted; may be empty
  /// Opens a connection to a service of a task for the master, or tells the master that the task does not
  /// run. From the agent's thread; must not block.
  std::function<void(service_ordered, bool runs)> open_service;
};

/// `dial` is called, from the agent's thread and not blocking, whenever a master is wanted; its answer is the
/// message master_found.
agent_actor spawn_agent(caf::actor_system& sys, agent_setup setup,
                        std::function<void(const agent_actor&)> dial);

} // namespace troupe
