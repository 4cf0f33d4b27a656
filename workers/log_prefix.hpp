#pragma once
// What Determined's client writes in front of a line of output: "[rank=1] " by its launchers, "INFO: " by its
// logging.

#include <optional>
#include <string_view>

namespace troupe::workers {

struct log_prefix {
  std::optional<int> rank; ///< rank of the process in its trial
  std::string_view level;  ///< "DEBUG" ... "CRITICAL"; empty where none is named
  std::string_view rest;   ///< the line without both
};

log_prefix read_log_prefix(std::string_view line);

} // namespace troupe::workers
