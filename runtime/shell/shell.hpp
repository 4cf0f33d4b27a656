#pragma once
// `troupe shell` looks into the live actors of a cluster, and acts on them. It is only a client of the HTTP
// API.

#include "runtime/cli/hooks.hpp"

namespace troupe::cli {
struct console;
}

namespace troupe::shell {

/// Runs a session on this process's terminal or standard input; returns a documented exit code. Verbs of
/// `troupe` in the session run with `node`.
int run(const cli::shell_options& options, const cli::hooks& node);
/// Does the same without a terminal, on the given streams: -e, -f, or standard input as a script.
int run_batch(const cli::shell_options& options, const cli::hooks& node, cli::console& io);

} // namespace troupe::shell
