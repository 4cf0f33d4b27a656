#pragma once
// What the processes of a task get to know of the cluster: its ids, and the tokens that they show at the HTTP
// API.

#include "model/ids.hpp"

#include <functional>
#include <string>

namespace troupe {

/// The node's accounts make the tokens, the same ones at each call. The functions are thread-safe, and may
/// be null if there is no API.
struct task_tokens {
  std::string cluster_id, master_id;                 ///< ids of the cluster and of this start of its master
  std::function<std::string(allocation_id)> session; ///< token of an allocation, until it ends
  /// Token of the user of an experiment; valid until the experiment ends.
  std::function<std::string(experiment_id, const std::string& owner)> user;
  /// Token of the user of a task that is not a trial; valid until the task ends.
  std::function<std::string(task_id, const std::string& owner)> of_task;
  /// Token that opens the service of a task that is not a trial, and nothing else.
  std::function<std::string(task_id, const std::string& owner)> service;
  std::function<std::string(const std::string&)> reveal; ///< opens what the API keeps sealed in facts
};

} // namespace troupe
