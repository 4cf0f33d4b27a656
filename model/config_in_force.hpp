#pragma once
// What an experiment or a task goes by: its configuration with what users have set since.

#include "model/rows.hpp"

namespace troupe {

/// `resources` has the priority, weight, max_slots and pool that were set last; all else is as submitted.
value config_in_force(const experiment_row& row);
/// `resources.priority` is the one that was set last.
value config_in_force(const task_detail& row);

} // namespace troupe
