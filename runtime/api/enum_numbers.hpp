#pragma once
// Determined's enums come by their names or by their numbers. Numbers become names before a handler looks, so
// that handlers know names alone.

#include "runtime/api/http.hpp"

namespace troupe::api {

/// `path`: of the route, as "/api/v1/experiments/{experimentId}/trials". errc::invalid, with the names that
/// there are, where a text is neither a name nor the number of one. Routes of ours have no such enums.
result<void> name_enums(query_list& query, std::string_view path);
/// `takes`: the name of the body's type, as "v1Webhook". errc::invalid as above; what is no JSON stays.
result<void> name_enums(std::string& body, std::string_view takes);

} // namespace troupe::api
