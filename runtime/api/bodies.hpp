#pragma once
// The schemas of the bodies that routes take: those of commands from their fields, those of the stock client
// as the handlers read them. A test sends each field with a wrong type to its route.

#include "model/value.hpp"

#include <string>

namespace troupe::api {

/// A schema of OpenAPI 3.0. Null where `name` is not known.
value body_schema(const std::string& name);

} // namespace troupe::api
