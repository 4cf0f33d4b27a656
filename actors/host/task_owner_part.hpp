#pragma once
// Makes a task's account the owner of what it needs if that account is not the agent's. Only root may call
// this. It blocks.

#include "actors/allocation/task_launch.hpp"
#include "workers/task_spec.hpp"

#include <filesystem>

namespace troupe {

/// Gives the files in the task's folder to the account, before any process of the task runs. The folder of
/// checkpoints and the folder for event files below it become open to all accounts, as /tmp is: each account
/// owns what it writes there.
result<void> give_to_account(const std::filesystem::path& folder, const task_launch& launch,
                             workers::account_spec account);

} // namespace troupe
