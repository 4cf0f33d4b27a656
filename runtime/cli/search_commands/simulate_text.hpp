#pragma once
// `troupe search simulate CONFIG --curves NAME`: the search on a simulated cluster.

#include "runtime/cli/search_commands/config_file.hpp"

#include <iosfwd>
#include <vector>

namespace troupe::cli {

inline constexpr const char* simulate_usage =
  "  troupe search simulate CONFIG [--curves benign|crossing] [--workers N] [--seed N] [--time T] [--json]\n"
  "                                         a cluster of N workers on synthetic learning curves, T epochs "
  "long\n"
  "                                         at most; until the search is over where T is not given\n";

/// `args` follows the word "simulate". Exit codes are those of search_command.
int simulate_search(const std::vector<std::string>& args, std::istream& in, std::ostream& out,
                    std::ostream& err);

} // namespace troupe::cli
