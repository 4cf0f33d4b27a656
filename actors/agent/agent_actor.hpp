#pragma once
// The shell of actors/agent/agent.hpp is the root actor of the agent role. It spawns the worker runtime, the
// harness gateway and the log pump of its host, and registers at a master.

#include "actors/harness/harness_actor.hpp"
#include "actors/host/worker_runtime_actor.hpp"
#include "actors/messages.hpp"
#include "workers/slot_devices.hpp"

#include <filesystem>
#include <functional>

namespace troupe {

/// The functions that make the children of an agent; a test replaces them.
struct agent_children {
  std::function<result<harness_gateway>(caf::actor_system&, const harness_setup&, agent_actor)> harness;
  std::function<log_pump_actor(caf::actor_system&, agent_actor)> pump;
  std::function<worker_runtime_actor(caf::actor_system&, worker_runtime_setup, agent_actor)> runtime;
  static agent_children real();
};

struct agent_setup {
  std::string name, host, join_token;
  int slots = 1;
  std::filesystem::path dir;     ///< folder of the agent; made where it is missing
  std::filesystem::path program; ///< path of troupe-task
  std::filesystem::path python;  ///< folder of the package `troupe`
  std::string python_bin;
  /// URL that tasks are given: that of this agent's own listener, which forwards to the master.
  std::string master_url;
  duration freeze{30s};
  /// Called at the end of the agent: true ends its tasks as well; otherwise, or where the function is empty,
  /// they wait until an agent adopts them. Thread-safe.
  std::function<bool()> kill_on_stop;
  std::function<result<std::string>(const std::string&)> fetch; ///< fetches a blob of the master; may block
  /// Called when the agent cannot exist: its folder, its port or its name is not usable.
  std::function<void(const error&)> on_fatal;
  std::function<void(std::uint16_t http_port)> on_registered; ///< called on the agent's thread
  /// Where and how the sandboxes of a dead agent may ask the master; the bodies of requests are still
  /// missing. Thread-safe.
  std::function<workers::fence_spec()> fence;
  caf::actor inspector; ///< inspector of this process, for the master; null: the master is in this process
  std::string programs; ///< folder of this program, which is appended to the tasks' PATH; may be empty
  std::shared_ptr<workers::slot_devices> devices; ///< devices of the slots; null: the slots are processors
  std::chrono::milliseconds look_every{5'000}; ///< pause between two looks at the use of slots; 0: no looks
  agent_children children = agent_children::real();
  std::map<std::string, std::string> labels; ///< labels of the host; labels of the cluster file win
  /// Pool that the agent wants to be in; empty: the cluster file decides, or else it is the default pool.
  std::string pool;
  std::filesystem::path data; ///< data directory of the node, which no task may mount; may be empty
  /// Opens a connection to a service of a task for the master, or tells the master that the task does not
  /// run. Called on the agent's thread; must not block.
  std::function<void(service_ordered, bool runs)> open_service;
  std::function<void(const std::string& line)> say; ///< writes a line for people; may be empty
};

/// `dial` is called on the agent's thread whenever the agent needs a connection to the master. It must not
/// block; its answer comes as the message master_found.
agent_actor spawn_agent(caf::actor_system& sys, agent_setup setup,
                        std::function<void(const agent_actor&)> dial);

} // namespace troupe
