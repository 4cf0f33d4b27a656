#pragma once
// Where the parts of an installation lie: beside the binary in a build tree, or under its prefix once
// installed. In a host process they are looked for from the shared library on, so that an installation may be
// moved.

#include "model/result.hpp"

#include <filesystem>

namespace troupe::node {

struct places {
  std::filesystem::path troupe_task; ///< the static first process of a sandbox
  std::filesystem::path python;      ///< folder that holds the package `troupe`
  std::filesystem::path programs;    ///< folder of this program, and of the examples in C++
  std::filesystem::path python_bin;  ///< folder with the tasks' python3; empty: as PATH has it
};

/// The tasks' python3 is $TROUPE_PYTHON_BIN's, else the first on PATH where that is a virtual or Conda
/// environment, else that of the .venv of `./setup`. Fails naming the part that is missing.
result<places> find_places();

} // namespace troupe::node
