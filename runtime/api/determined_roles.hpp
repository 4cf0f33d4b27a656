#pragma once
// The ten roles of model/authority/roles.hpp in Determined's form.

#include "model/authority/roles.hpp"
#include "model/value.hpp"

namespace troupe::api {

using authority::most_role;

/// {roleId, name, permissions, scopeTypeMask} of the role with this number, 1 to most_role.
value role_shape(int role);

} // namespace troupe::api
