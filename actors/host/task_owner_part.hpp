#pragma once
// What a task that runs as another account than its agent has to own. Only root may call it. It blocks.

#include "actors/allocation/task_launch.hpp"
#include "workers/task_spec.hpp"

#include <filesystem>

namespace troupe {

/// The files in the task's folder become the account's, before any process of the task runs. The folder of
/// its checkpoints, and the one for event files below it, are opened as /tmp is: whoever writes there owns
/// what he wrote.
result<void> give_to_account(const std::filesystem::path& folder, const task_launch& launch,
                             workers::account_spec account);

} // namespace troupe
