#pragma once
// What lists have in common: how text is looked for, and which way they are sorted.

#include "runtime/api/http.hpp"

#include <string>

namespace troupe::api {

std::string folded(std::string_view text); ///< lower case, ASCII only
bool contains_folded(std::string_view text, std::string_view part);
bool is_descending(const query_list& query); ///< by `orderBy`

} // namespace troupe::api
