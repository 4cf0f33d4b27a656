#pragma once
// One history from its plan to its end: faults and users come in, invariants are checked.

#include "test/sim/actors/plan.hpp"

#include <optional>

namespace troupe::sim {

struct history_figures {
  std::uint64_t messages = 0, facts = 0, runs = 0;
};

/// The invariant that was broken, or nothing.
std::optional<std::string> run_history(const history_plan& plan, bool trace = false,
                                       history_figures* figures = nullptr);

} // namespace troupe::sim
