#pragma once
// The shell of actors/host/worker_runtime.hpp over workers/process_runtime.hpp: starts, adopts and ends the
// sandboxes of one host. What waits for a disk or a network is done by threads of its own, several tasks at
// once; a handler never waits. Detached, as its end may wait until its tasks are dead.

#include "actors/messages.hpp"
#include "workers/task_spec.hpp"

#include <filesystem>
#include <functional>

namespace troupe {

struct worker_runtime_setup {
  std::string agent; ///< name
  std::string agent_id;
  std::filesystem::path tasks;   ///< folder of all tasks
  std::filesystem::path program; ///< troupe-task
  std::filesystem::path python;  ///< folder that holds the package `troupe`
  std::string python_bin;        ///< put in front of PATH: where the tasks' python3 is; may be empty
  std::string master_url;        ///< address of the agent's listener, which forwards to the master
  std::function<std::string()> harness_endpoint; ///< known once the gateway is up. Thread-safe, as the others
  std::filesystem::path harness_file;
  duration freeze{30s};
  int spares = 0;
  std::function<bool()>
    kill_on_stop; ///< asked at its end: whether its tasks end with it; else they wait to be adopted
  /// The tar of a context by its blob name; may block.
  std::function<result<std::string>(const std::string&)> fetch;
  std::function<workers::fence_spec()> fence; ///< as in agent_setup
  std::string programs;                       ///< as in agent_setup
  std::vector<std::string> gpu_uuids;         ///< UUID of each slot's GPU; empty: the slots are not GPUs
  std::filesystem::path data;                 ///< data directory of the node, which no task gets mounted
};

worker_runtime_actor spawn_worker_runtime(caf::actor_system& sys, worker_runtime_setup setup,
                                          agent_actor agent);

} // namespace troupe
