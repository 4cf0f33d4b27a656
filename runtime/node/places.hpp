#pragma once
// Where the parts of an installation lie: beside the binary in a build tree, or under the prefix once
// installed. In an embedding program they are searched from the shared library on, so that an installation
// may be moved.

#include "model/result.hpp"

#include <filesystem>

namespace troupe::node {

struct places {
  std::filesystem::path troupe_task; ///< the static first process of a sandbox
  std::filesystem::path python;      ///< folder that holds the package `troupe`
  std::filesystem::path programs;    ///< folder of this program, and of the examples in C++
  std::filesystem::path python_bin;  ///< folder of the tasks' python3; empty: the one on PATH
};

/// The tasks' python3 is the one in $TROUPE_PYTHON_BIN; otherwise the first one on PATH if it belongs to a
/// virtual or Conda environment; otherwise the one in the .venv of `./setup`. Fails and names the part that
/// is missing.
result<places> find_places();

} // namespace troupe::node
