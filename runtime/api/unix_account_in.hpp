#pragma once

#include "model/commands/commands.hpp"
#include "runtime/api/fields.hpp"

namespace troupe::api {

/// Reads `agentUserGroup` of a user or workspace. A fault in it becomes a fault of `f`.
std::optional<commands::host_account> unix_account_in(fields& f);

} // namespace troupe::api
