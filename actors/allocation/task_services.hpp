#pragma once
// The services that a configuration names, read in one place for trials and for other tasks. Pure.

#include "model/task_service.hpp"
#include "model/value.hpp"

#include <vector>

namespace troupe {

/// `environment.proxy_ports` of a complete configuration. The id of each is what stands behind the name of
/// its task: "" for the one that the task's own address means, else ":PORT". What is no port is passed over:
/// the configuration was checked.
std::vector<task_service> services_in(const value& config);

} // namespace troupe
