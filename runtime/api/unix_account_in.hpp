#pragma once

#include "model/commands/commands.hpp"
#include "runtime/api/fields.hpp"

namespace troupe::api {

/// `agentUserGroup` of a user or workspace; a fault of its own lands in `f`.
std::optional<commands::host_account> unix_account_in(fields& f);

} // namespace troupe::api
