#pragma once
// What Determined's client writes in front of a line of output: its launchers write "[rank=1] ", its logging
// writes "INFO: ".

#include <optional>
#include <string_view>

namespace troupe::workers {

struct log_prefix {
  std::optional<int> rank; ///< rank of the process in its trial
  std::string_view level;  ///< "DEBUG" ... "CRITICAL"; empty where the line names none
  std::string_view rest;   ///< the line without rank and level
};

log_prefix read_log_prefix(std::string_view line);

} // namespace troupe::workers
