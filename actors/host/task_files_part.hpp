#pragma once
// The files of a task in its folder on this host, made before its launch. A folder may be that of an earlier
// task, of which the files named here are left: they are written over, so that no file is made that is there.

#include "actors/host/stock_task.hpp"
#include "model/result.hpp"

#include <filesystem>
#include <functional>

namespace troupe {

/// What the runtime keeps beside a task for its next life: slots, token, checkpoint folder.
inline constexpr const char* launch_file = "launch";
/// Where a service that listens on a Unix socket has it: in the task's folder, and as the task knows it. Its
/// folder is for the task's account alone.
inline constexpr const char* service_socket_file = "run/service/socket";
inline constexpr const char* service_socket_inside = "/run/determined/service/socket";

/// The tar of a context by its blob name; may block. An empty one has no files.
using context_source = std::function<result<std::string>(const std::string&)>;

/// What may stay for the next task: for workers::process_runtime_options::reuse.
std::vector<std::string> reused_in_task_folder();

/// Everything that is in files, in the folder that process_runtime::prepare() gave.
result<void> write_task_files(const std::filesystem::path& folder, allocation_id id,
                              const task_launch& launch, const task_surroundings& around,
                              const context_source& fetch);

} // namespace troupe
