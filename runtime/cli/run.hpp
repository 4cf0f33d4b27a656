#pragma once
// The front door of the command line.

#include "runtime/cli/hooks.hpp"

namespace troupe::cli {

struct console;

/// What `main` calls. Returns one of the documented exit codes, whatever the hooks and libraries do.
int run(int argc, char** argv, const hooks& node);
/// The same for given streams; `given` without the program's name.
int run(const words& given, const hooks& node, console& io);

} // namespace troupe::cli
