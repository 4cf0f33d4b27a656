#pragma once
// The shell of actors/host/worker_runtime.hpp over workers/process_runtime.hpp: starts, adopts and ends the
// sandboxes of one host. Threads of its own do what waits for a disk or a network, for several tasks at once;
// a handler never waits. The actor is detached, because its end may wait until its tasks are dead.

#include "actors/messages.hpp"
#include "workers/task_spec.hpp"

#include <filesystem>
#include <functional>

namespace troupe {

struct worker_runtime_setup {
  std::string agent; ///< name of the agent
  std::string agent_id;
  std::filesystem::path tasks;   ///< folder that holds the folders of all tasks
  std::filesystem::path program; ///< the executable troupe-task
  std::filesystem::path python;  ///< folder that holds the Python package `troupe`
  /// Folder of the tasks' python3, put in front of PATH; may be empty.
  std::string python_bin;
  std::string master_url; ///< address of the agent's listener, which forwards to the master
  /// Address that is known once the gateway is up. Thread-safe, as the other functions here.
  std::function<std::string()> harness_endpoint;
  std::filesystem::path harness_file;
  duration freeze{30s};
  int spares = 0;
  /// Asked when the actor ends. True: its tasks end with it; false: they wait to be adopted.
  std::function<bool()> kill_on_stop;
  /// Returns the tar of a context by the name of its blob; may block.
  std::function<result<std::string>(const std::string&)> fetch;
  std::function<workers::fence_spec()> fence; ///< `fence` of agent_setup
  std::string programs;                       ///< `programs` of agent_setup
  std::vector<std::string> gpu_uuids;         ///< UUID of each slot's GPU; empty: the slots are not GPUs
  std::filesystem::path data; ///< data directory of the node, which is never mounted for a task
};

worker_runtime_actor spawn_worker_runtime(caf::actor_system& sys, worker_runtime_setup setup,
                                          agent_actor agent);

} // namespace troupe
