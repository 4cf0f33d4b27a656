#pragma once
// What `explain` and its advice say of an agent that is away.

#include <string>

namespace troupe {

/// Whether the agent has been drained by an order, and so gets no new work when it has come back either.
/// `agents`: the agents of a pool, by name.
bool stays_drained(const auto& agents, const std::string& name) {
  const auto it = agents.find(name);
  return it != agents.end() && it->second.drained && it->second.leaves_for.empty();
}

} // namespace troupe
