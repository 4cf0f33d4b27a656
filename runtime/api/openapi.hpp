#pragma once
// The OpenAPI document, made from the route table.

#include "runtime/api/route.hpp"

namespace troupe::api {

value openapi_document(const std::vector<route>& table);

} // namespace troupe::api
