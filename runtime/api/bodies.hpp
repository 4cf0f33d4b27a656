#pragma once
// The schemas of the bodies that routes take. For commands they come from the commands' fields; for the stock
// client they say what the handlers read. A test sends each field with a wrong type to its route.

#include "model/value.hpp"

#include <string>

namespace troupe::api {

/// The schema of OpenAPI 3.0 for this name; null where the name is not known.
value body_schema(const std::string& name);

} // namespace troupe::api
