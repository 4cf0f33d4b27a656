#pragma once
// What the configuration of a task that is no trial means to its actors, read once. Pure.

#include "actors/allocation/task_launch.hpp"
#include "actors/task/task.hpp"

#include <functional>

namespace troupe {

struct task_settings {
  std::string title; ///< for its log
  task_spec spec;
  task_launch launch; ///< without what the cluster and one run add
};

/// `workspace`: its name. errc::invalid with the key, where a value is of another kind or no task could be
/// started with it.
result<task_settings> task_settings_of(const task_created& made, const std::string& workspace);

/// The first word of a configuration's entrypoint, as Determined's clients see it: the script of the kind.
/// Words of the user follow it. Null for generic tasks, which have no script.
const char* task_script(task_kind kind);

/// What listens in a task that is no trial: its own service, by a socket, then the ports that its
/// configuration names.
std::vector<task_service> services_of(const value& config, task_id id);

/// What of the cluster a service is told.
struct service_surroundings {
  std::function<std::string(const std::string&)> reveal; ///< opens what is kept sealed
  std::string events; ///< folder `tensorboard` of the cluster's own event files; empty: there is none
};

/// What its service is told besides (TROUPE_SERVICE_CONFIG). Null where its kind has no service.
value service_config(const task_created& made, const service_surroundings& around);

} // namespace troupe
