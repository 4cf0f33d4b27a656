#pragma once
// `troupe config check|complete|merge|explain|schema` show model/config to people and scripts.

#include <iosfwd>
#include <string>
#include <vector>

namespace troupe::cli {

/// Runs one command; `args` follows the word `config`. A file named "-" is `in`. Results go to `out`,
/// diagnostics for people to `err`. Returns the exit code: 0, or 2 for wrong usage, or a fault of a file or
/// configuration.
int config_command(const std::vector<std::string>& args, std::istream& in, std::ostream& out,
                   std::ostream& err);

} // namespace troupe::cli
