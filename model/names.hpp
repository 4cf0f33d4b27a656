#pragma once
// The names that Determined's client expects where we have numbers: tasks, allocations, jobs. All are made
// from the numbers, and read back without a table.

#include "model/ids.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// "7.00000000-0000-4000-8000-00000000000c": trial 12 of experiment 7. The stock client demands NUMBER.UUID
/// for trials. The name of other tasks is their UUID. `continued`: "-2" follows in the name of the task that
/// runs a trial after the second continuation; 0: the first task.
std::string task_name(experiment_id experiment, task_id task, std::uint32_t continued = 0);
/// "Trial 12 (Experiment 7)", "Checkpoint GC (Experiment 7)", "notebook UUID": shown in logs and lists.
std::string people_name(experiment_id experiment, task_id task);
/// task_name with the run: "7.00000000-0000-4000-8000-00000000000c.3".
std::string allocation_name(experiment_id experiment, allocation_id allocation);
/// "00000000-0000-4000-9000-000000000007": the job of experiment 7.
std::string job_name(experiment_id experiment);

/// The part of an allocation on one agent, by its place in the gang: DET_RESOURCES_ID and DET_CONTAINER_ID of
/// its tasks.
struct allocation_part {
  allocation_id allocation;
  int node_rank = 0;
};
/// "0000000c-0002-4000-a000-000000000003": the part of node rank 2 of allocation 12.3; "UUID.1.2" for tasks
/// that are not trials.
std::string part_name(allocation_id allocation, int node_rank);
/// Reads part_name; returns an empty allocation for anything else.
allocation_part named_part(std::string_view text);

/// The key of an experiment or trial that its owner has named. Keys of those without a name never look like
/// it.
std::string external_key(std::string_view name);
/// The key of the `n`th experiment (from 1) whose submitter gave this key; later submitters cannot see the
/// earlier ones. In their order the keys of one name follow each other, up to after_numbered.
std::string numbered_key(std::string_view key, std::size_t n);
std::string after_numbered(std::string_view key);
/// The name in such a key; empty for other keys.
std::string external_name(std::string_view key);
/// Reads task_name, and plain "12"; empty for anything else. All tasks of a continued trial give the trial.
task_id named_task(std::string_view text);
/// The number of the continuation in a task_name, or 0.
std::uint32_t named_continuation(std::string_view text);
/// Reads allocation_name, and plain "12.3"; empty for anything else.
allocation_id named_allocation(std::string_view text);
/// Reads job_name; 0 for anything else.
experiment_id job_experiment(std::string_view text);

} // namespace troupe
