#pragma once
// `troupe pool ...`.

#include "runtime/cli/arguments.hpp"

namespace troupe::cli::verbs {

int pool_replay(session&, const arguments&);

} // namespace troupe::cli::verbs
