#pragma once
// Merges two layers of a configuration into one.

#include "model/config/schema.hpp"

namespace troupe::config {

/// `high` with what `low` adds, by the rules of `s`. Both are normal (see complete.hpp); null means nothing
/// given. Where all layers have the same kind of union, the order of merging three layers does not matter.
value merged(value high, value low, const shape& s);

} // namespace troupe::config
