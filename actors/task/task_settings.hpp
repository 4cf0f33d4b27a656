#pragma once
// What the configuration of a task that is not a trial means to its actors, read once. Pure.

#include "actors/allocation/task_launch.hpp"
#include "actors/task/task.hpp"

#include <functional>

namespace troupe {

struct task_settings {
  std::string title; ///< name of the task in its log
  task_spec spec;
  task_launch launch; ///< launch order, without what the cluster and one run add
};

/// `workspace`: name of the task's workspace. errc::invalid with the name of the key if its value has the
/// wrong type or would make every start of the task fail.
result<task_settings> task_settings_of(const task_created& made, const std::string& workspace);

/// The first word of a configuration's entrypoint as Determined's clients show it: the name of the kind's
/// script. The user's words follow it. Null for generic tasks, which have no script.
const char* task_script(task_kind kind);

/// The services of a task that is not a trial: first its own service, which listens on a socket, then the
/// ports that its configuration names.
std::vector<task_service> services_of(const value& config, task_id id);

/// What a service needs to know of the cluster.
struct service_surroundings {
  std::function<std::string(const std::string&)> reveal; ///< opens what is stored sealed
  /// Folder `tensorboard` of the cluster's own event files; empty: there is none.
  std::string events;
  std::string cluster; ///< id of the cluster, a part of the names of TensorBoard files in a bucket
};

/// The further settings that the task's program gets as TROUPE_SERVICE_CONFIG. Null if the task's kind has
/// none.
value service_config(const task_created& made, const service_surroundings& around);

/// Whether the task removes files of checkpoints from a bucket, on an agent. The master itself removes what
/// it reaches, in tasks of the same kind.
bool collects_on_agent(const task_created& made);

} // namespace troupe
