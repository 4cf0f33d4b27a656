#pragma once
// The schemas of answers that the web page reads. Its types are made from these (web/types.mjs), and
// test/cluster/test_answers.py checks the answers of a real cluster against them.

#include "model/value.hpp"

#include <map>
#include <string>

namespace troupe::api {

/// Schemas of OpenAPI 3.0, by the name that the table of routes or another schema uses. A schema lists all
/// properties unless it says `additionalProperties`.
const std::map<std::string, value>& answer_schemas();

} // namespace troupe::api
