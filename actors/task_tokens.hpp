#pragma once
// What the processes of a task know of the cluster: its ids, and the tokens that they show at the HTTP API.

#include "model/ids.hpp"

#include <functional>
#include <string>

namespace troupe {

/// Both tokens are made by the node's accounts, are the same each time, and may be null where no API is;
/// thread-safe.
struct task_tokens {
  std::string cluster_id, master_id;                 ///< of the cluster, and of this start of its master
  std::function<std::string(allocation_id)> session; ///< dies with the allocation
  std::function<std::string(experiment_id, const std::string& owner)> user; ///< dies with the experiment
  // Of tasks that are no trials:
  std::function<std::string(task_id, const std::string& owner)> of_task; ///< as `user`; dies with the task
  std::function<std::string(task_id, const std::string& owner)>
    service;                                             ///< opens the service of the task, and nothing else
  std::function<std::string(const std::string&)> reveal; ///< what the API keeps sealed in facts
};

} // namespace troupe
