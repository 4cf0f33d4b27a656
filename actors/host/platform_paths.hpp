#pragma once
// Paths below /tmp that the platform itself hands to a task: the interpreter with its packages, the package
// `troupe`, the programs and their libraries. A sandbox has a /tmp of its own, which would hide them. Pure
// but for questions to the file system.

#include "actors/host/stock_task.hpp"

namespace troupe {

/// The paths in the order in which a sandbox must keep them: first the places, then the links by which a task
/// reaches them. `path_variable` is the task's PATH.
std::vector<std::string> platform_paths(const task_surroundings& around, const std::string& path_variable);

/// Whether `path` is one of `places` or lies below one.
bool is_in_one_of(const std::vector<std::string>& places, const std::string& path);

} // namespace troupe
