#pragma once
// Bugs that plants.py writes into copies of the machines, to prove that the simulation finds bugs of their
// kind. The machines themselves have none.

#include "planted_bugs.hpp" // plants.py makes this file: enum class pool_bug, pool_bug_names

namespace troupe::sim {

inline pool_bug planted_pool_bug = pool_bug::none;
inline bool is_planted(pool_bug x) { return planted_pool_bug == x; }

} // namespace troupe::sim

#define PLANTED(bug) (::troupe::sim::is_planted(::troupe::sim::pool_bug::bug))
