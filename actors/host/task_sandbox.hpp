#pragma once
// What the terms of a task's sandbox come to on this host. It asks the host which paths and accounts there
// are, and changes nothing.

#include "actors/host/stock_task.hpp"
#include "workers/task_spec.hpp"

namespace troupe {

/// The account that this process runs as.
agent_account own_account();

/// Absolute; the folder need not be there.
std::string work_dir_of(const task_launch& launch, const task_surroundings& around);
/// Whether the task becomes another account than the agent's.
bool changes_account(const task_launch& launch, const task_surroundings& around);
/// HOME, USER and the like of the task's account; none where it is the agent's.
std::map<std::string, std::string> account_variables(const task_launch& launch,
                                                     const task_surroundings& around);
/// Below /run/determined: lists of accounts and groups that know the task's, where those of the host do not.
std::vector<task_file> account_files(const task_launch& launch, const task_surroundings& around);

/// Mounts, shared memory and account; or why the task cannot have them here.
void add_terms(workers::task_spec& spec, const task_launch& launch, const task_surroundings& around);

} // namespace troupe
