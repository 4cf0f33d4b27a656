#pragma once
// `troupe shell`: looks into the live actors of a cluster, and acts on them. A client of the HTTP API and
// nothing else.

#include "runtime/cli/hooks.hpp"

namespace troupe::cli {
struct console;
}

namespace troupe::shell {

/// Runs a session on this process's terminal or standard input; the documented exit codes. Verbs of `troupe`
/// inside it run with `node`.
int run(const cli::shell_options& options, const cli::hooks& node);
/// The same without a terminal, for given streams: -e, -f, or standard input as a script.
int run_batch(const cli::shell_options& options, const cli::hooks& node, cli::console& io);

} // namespace troupe::shell
