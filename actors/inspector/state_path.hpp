#pragma once
// Reads one part of a state by its path, and finds what changed between two states. Pure.

#include "model/value.hpp"

#include <string>
#include <vector>

namespace troupe {

/// `path` is like "queue[0].slots" or "agents.a1"; empty: the whole state. Fails with errc::not_found, and
/// names the part that is missing and the parts that exist.
result<value> at_path(const value& state, const std::string& path);

struct state_change {
  std::string path;
  value before, after; ///< null: nothing was there before, or nothing is there now
};
/// One row for each changed leaf, in the order of their paths; at most `most`.
std::vector<state_change> changes_between(const value& before, const value& after, std::size_t most = 1000);

} // namespace troupe
