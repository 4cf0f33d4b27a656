#pragma once
// `troupe search replay - | preview CONFIG | simulate CONFIG`.

#include <iosfwd>
#include <string>
#include <vector>

namespace troupe::cli {

/// `args` lacks "troupe search". Returns the exit code: 0, 1 for a fault of a file or configuration, 2 for
/// wrong usage.
int search_command(const std::vector<std::string>& args, std::istream& in, std::ostream& out,
                   std::ostream& err);

} // namespace troupe::cli
