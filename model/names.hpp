#pragma once
// The names that Determined's client wants for what we number: tasks, allocations, jobs. All are made from
// the numbers and read back without a table.

#include "model/ids.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// "7.00000000-0000-4000-8000-00000000000c": trial 12 of experiment 7. The stock client demands NUMBER.UUID
/// of trials. Other tasks are their UUID.
/// `continued`: "-2" follows for the task that runs a trial after the second continuation; 0: the first task.
std::string task_name(experiment_id experiment, task_id task, std::uint32_t continued = 0);
/// "Trial 12 (Experiment 7)", "Checkpoint GC (Experiment 7)", "notebook UUID": for logs and lists.
std::string people_name(experiment_id experiment, task_id task);
/// task_name and the run: "7.00000000-0000-4000-8000-00000000000c.3".
std::string allocation_name(experiment_id experiment, allocation_id allocation);
/// "00000000-0000-4000-9000-000000000007": the job of experiment 7.
std::string job_name(experiment_id experiment);

/// What runs of an allocation on one agent, by its place in the gang: DET_RESOURCES_ID and DET_CONTAINER_ID
/// of its tasks.
struct allocation_part {
  allocation_id allocation;
  int node_rank = 0;
};
/// "0000000c-0002-4000-a000-000000000003": the part of node rank 2 of allocation 12.3. "UUID.1.2" for other
/// kinds than trials.
std::string part_name(allocation_id allocation, int node_rank);
/// Reads part_name. An empty allocation on anything else.
allocation_part named_part(std::string_view text);

/// Keys of experiments and trials that their owner has named; of those without one no key looks like it.
std::string external_key(std::string_view name);
/// The name in such a key; empty of others.
std::string external_name(std::string_view key);
/// Reads task_name; also plain "12". Empty on anything else. All tasks of a continued trial are the trial.
task_id named_task(std::string_view text);
/// Number of the continuation that task_name tells, or 0.
std::uint32_t named_continuation(std::string_view text);
/// Reads allocation_name; also plain "12.3". Empty on anything else.
allocation_id named_allocation(std::string_view text);
/// Reads job_name. 0 on anything else.
experiment_id job_experiment(std::string_view text);

} // namespace troupe
