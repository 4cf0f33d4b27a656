#pragma once
// `troupe config check|complete|merge|explain|schema`: the front of model/config for people and scripts.

#include <iosfwd>
#include <string>
#include <vector>

namespace troupe::cli {

/// Runs one command; `args` is what follows `config`. A file named "-" is `in`. Results go to `out`,
/// diagnostics for people to `err`. Returns the exit code: 0, or 2 on a fault of usage, of a file or of a
/// configuration.
int config_command(const std::vector<std::string>& args, std::istream& in, std::ostream& out,
                   std::ostream& err);

} // namespace troupe::cli
