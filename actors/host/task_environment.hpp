#pragma once
// Makes the processes of a task from its launch order: command, environment, working directory. Pure, but it
// reads the agent's own environment, which tasks inherit, and asks which of the named paths exist.

#include "actors/host/stock_task.hpp"
#include "workers/task_spec.hpp"

namespace troupe {

workers::task_spec task_spec_of(allocation_id id, const task_launch& launch, const task_surroundings& around);

} // namespace troupe
