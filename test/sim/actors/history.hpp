#pragma once
// Runs one history from its plan to its end: plays its faults and users, and checks invariants.

#include "test/sim/actors/plan.hpp"

#include <optional>

namespace troupe::sim {

struct history_figures {
  std::uint64_t messages = 0, facts = 0, runs = 0;
};

/// Runs the history. Returns the invariant that was broken; nullopt where all held.
std::optional<std::string> run_history(const history_plan& plan, bool trace = false,
                                       history_figures* figures = nullptr);

} // namespace troupe::sim
