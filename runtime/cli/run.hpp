#pragma once
// The front door of the command line.

#include "runtime/cli/hooks.hpp"

namespace troupe::cli {

struct console;

/// `main` calls it. Returns one of the documented exit codes, whatever hooks and libraries do.
int run(int argc, char** argv, const hooks& node);
/// Does the same for the given streams; `given` lacks the program's name.
int run(const words& given, const hooks& node, console& io);

} // namespace troupe::cli
