#pragma once
// The services that a configuration names, read in one place for trials and for other tasks. Pure.

#include "model/task_service.hpp"
#include "model/value.hpp"

#include <vector>

namespace troupe {

/// The services of `environment.proxy_ports` of a complete configuration. The id of a service is what follows
/// the name of its task in an address: "" for the service that the address of the task itself means, ":PORT"
/// for all others. Entries that are not ports are ignored, as the configuration was checked before.
std::vector<task_service> services_in(const value& config);

} // namespace troupe
