#pragma once
// Makes the files of a task in its folder on this host before the launch. The folder may be that of an
// earlier task, with the files that are named here still in it: they are written over, so that no new file
// has to be made.

#include "actors/host/stock_task.hpp"
#include "model/result.hpp"

#include <filesystem>
#include <functional>

namespace troupe {

/// File beside a task in which the runtime keeps slots, token and checkpoint folder for its next life.
inline constexpr const char* launch_file = "launch";
/// The Unix socket of a service: its path in the task's folder, and its path as the task sees it. Only the
/// task's account may enter the socket's folder.
inline constexpr const char* service_socket_file = "run/service/socket";
inline constexpr const char* service_socket_inside = "/run/determined/service/socket";

/// Returns the tar of a context by the name of its blob; may block. An empty tar holds no files.
using context_source = std::function<result<std::string>(const std::string&)>;

/// Files and folders that may stay for the next task, for workers::process_runtime_options::reuse.
std::vector<std::string> reused_in_task_folder();

/// Writes everything that a task gets as files into the folder that process_runtime::prepare() gave.
result<void> write_task_files(const std::filesystem::path& folder, allocation_id id,
                              const task_launch& launch, const task_surroundings& around,
                              const context_source& fetch);

} // namespace troupe
