#pragma once
// Clients send Determined's enums by name or by number. Numbers become names before a handler reads them, so
// that handlers know only names.

#include "runtime/api/http.hpp"

namespace troupe::api {

/// `path` is the route's path, as "/api/v1/experiments/{experimentId}/trials". Fails with errc::invalid, and
/// lists the names, where a text is neither a name nor the number of one. Routes of our own have no such
/// enums.
result<void> name_enums(query_list& query, std::string_view path);
/// `takes` is the name of the body's type, as "v1Webhook". Fails as above; a body that is not JSON stays as
/// it is.
result<void> name_enums(std::string& body, std::string_view takes);

} // namespace troupe::api
