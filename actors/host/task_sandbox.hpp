#pragma once
// What the sandbox of a task gets on this host. Asks the host which paths and accounts exist, and changes
// nothing.

#include "actors/host/stock_task.hpp"
#include "workers/task_spec.hpp"

namespace troupe {

/// The account under which this process runs, with the name that it had at the first call.
const agent_account& own_account();

/// The task's working directory as an absolute path; it need not exist.
std::string work_dir_of(const task_launch& launch, const task_surroundings& around);
/// Whether the task runs as another account than the agent.
bool changes_account(const task_launch& launch, const task_surroundings& around);
/// HOME, USER and similar variables of the task's account; empty if that is the agent's account.
std::map<std::string, std::string> account_variables(const task_launch& launch,
                                                     const task_surroundings& around);
/// Files relative to /run/determined; the task sees each of them at the same path below the root. They are
/// lists of accounts and groups that know the task's account if the host's lists do not, and what logins to a
/// shell need.
std::vector<task_file> account_files(allocation_id id, const task_launch& launch,
                                     const task_surroundings& around);

/// Adds mounts, shared memory and account to `spec`, or the reason why the task cannot have them here.
void add_terms(workers::task_spec& spec, allocation_id id, const task_launch& launch,
               const task_surroundings& around);

} // namespace troupe
