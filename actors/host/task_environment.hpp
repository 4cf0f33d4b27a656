#pragma once
// From an allocation's launch order to the processes of its task: command, environment, working directory.
// Pure but for the agent's own environment, which tasks inherit, and for the question which named paths
// exist.

#include "actors/host/stock_task.hpp"
#include "workers/task_spec.hpp"

namespace troupe {

workers::task_spec task_spec_of(allocation_id id, const task_launch& launch, const task_surroundings& around);

} // namespace troupe
