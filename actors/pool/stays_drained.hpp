#pragma once
// What `explain` and its advice say of an agent that is away.

#include <string>
#include <vector>

namespace troupe {

/// Whether the agent has been drained by an order, and so gets no new work when it has come back either.
/// `agents`: the agents of a pool, by name.
bool stays_drained(const auto& agents, const std::string& name) {
  const auto it = agents.find(name);
  return it != agents.end() && it->second.drained && it->second.leaves_for.empty();
}

/// The first names, and how many more there are.
inline std::string names_text(const std::vector<std::string>& names) {
  constexpr std::size_t most = 5;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < most; ++i)
    text += (i ? ", " : "") + names[i];
  return names.size() > most ? text + " and " + std::to_string(names.size() - most) + " more" : text;
}

} // namespace troupe
