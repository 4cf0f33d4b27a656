#pragma once
// Looking into a state: one part of it by path, and what changed between two looks. Pure.

#include "model/value.hpp"

#include <string>
#include <vector>

namespace troupe {

/// "queue[0].slots", "agents.a1"; empty: all. errc::not_found names the part that is not there, and what is.
result<value> at_path(const value& state, const std::string& path);

struct state_change {
  std::string path;
  value before, after; ///< null: it was, or is, not there
};
/// Leaf by leaf, in the order of the paths; at most `most`.
std::vector<state_change> changes_between(const value& before, const value& after, std::size_t most = 1000);

} // namespace troupe
