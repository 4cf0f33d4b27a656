#pragma once
// Whose program listens at a port of this host. Tasks share the host's loopback address, so that a port which
// one task names may belong to another task.

#include <filesystem>
#include <string>

namespace troupe::workers {

enum class port_holder {
  task,       ///< a process of the task
  other_task, ///< a process of another task of the same agent
  unknown     ///< nobody, or a process that belongs to no task
};

/// Finds what listens at `port` of 127.0.0.1 or of every address. `tasks` is the folder of the agent's tasks,
/// `name` the task's own folder in it. Reads /proc: some milliseconds where there are many tasks.
port_holder holder_of(const std::filesystem::path& tasks, const std::string& name, int port);

} // namespace troupe::workers
