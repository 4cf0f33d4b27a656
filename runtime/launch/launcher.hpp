#pragma once
// The verbs that live in the node: up, master, agent, run. Each returns an exit code of the command line.

#include "runtime/cli/hooks.hpp"

namespace troupe::launch {

int up(const cli::up_options& o, const std::string& version);
int master(const cli::master_options& o, const std::string& version);
int agent(const cli::agent_options& o, const std::string& version);
/// Runs a cluster for one experiment; the results stay in the data directory.
int run(const cli::run_options& o, const std::string& version);
/// For verbs that only read, where no node runs.
result<cli::opened_here> open_here(const std::filesystem::path& data_dir, const std::string& version);
/// Makes the certificates and the join token, and prints which host gets which.
int tls_init(const cli::tls_init_options& o);

} // namespace troupe::launch
