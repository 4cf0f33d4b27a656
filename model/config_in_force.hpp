#pragma once
// The configuration that an experiment or a task follows: the submitted one with what users have set since.

#include "model/rows.hpp"

namespace troupe {

/// `resources` has the newest priority, weight, max_slots and pool; everything else is as submitted.
value config_in_force(const experiment_row& row);
/// `resources.priority` is the newest one.
value config_in_force(const task_detail& row);

} // namespace troupe
