#pragma once
// Two layers of a configuration become one.

#include "model/config/schema.hpp"

namespace troupe::config {

/// `high` with what `low` adds, by the rules of `s`; both are normal (see complete.hpp), null means nothing
/// given. Where the same kind of union stands in all layers, the order of merging three layers does not
/// matter.
value merged(value high, value low, const shape& s);

} // namespace troupe::config
