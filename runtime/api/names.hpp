#pragma once
// The names that Determined's client wants for what we number: tasks, allocations, jobs. All are made from the numbers
// and read back without a table.

#include "model/ids.hpp"

#include <string>
#include <string_view>

namespace troupe::api {

/// "7.00000000-0000-4000-8000-00000000000c": trial 12 of experiment 7. The stock client demands NUMBER.UUID.
std::string task_name(experiment_id experiment, trial_id trial);
/// task_name and the run: "7.00000000-0000-4000-8000-00000000000c.3".
std::string allocation_name(experiment_id experiment, allocation_id allocation);
/// "00000000-0000-4000-9000-000000000007": the job of experiment 7.
std::string job_name(experiment_id experiment);

/// Reads task_name; also plain "12". 0 on anything else.
trial_id task_trial(std::string_view text);
/// Reads allocation_name; also plain "12.3". Empty on anything else.
allocation_id named_allocation(std::string_view text);
/// Reads job_name. 0 on anything else.
experiment_id job_experiment(std::string_view text);

} // namespace troupe::api
