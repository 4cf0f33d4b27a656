#pragma once
// The schemas of what routes answer, as far as the web page reads them: its types are made from these (web/
// types.mjs), and test/cluster/test_answers.py holds the answers of a real cluster against each of them.

#include "model/value.hpp"

#include <map>
#include <string>

namespace troupe::api {

/// By the name that the table of routes has for the answer, or that another schema refers to. Schemas of
/// OpenAPI 3.0, whose properties are all that there are unless it says `additionalProperties`.
const std::map<std::string, value>& answer_schemas();

} // namespace troupe::api
