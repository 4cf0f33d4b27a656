#pragma once
// Describes types and defaults of the table in words.

#include "model/config/schema.hpp"

namespace troupe::config {

std::string type_text(const shape& s);  ///< "integer (at least 1)", "one of fifo, priority"
std::string default_text(const key& k); ///< "required", "none", "42"

} // namespace troupe::config
