#pragma once
// The ten roles that Determined has, with their permissions. Roles are given and taken here and shown; rights
// are decided by model/authority alone, as without roles.

#include "model/value.hpp"

namespace troupe::api {

inline constexpr int most_role = 10;

/// {roleId, name, permissions, scopeTypeMask} of the role with this number, 1 to most_role.
value role_shape(int role);

} // namespace troupe::api
