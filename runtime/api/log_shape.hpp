#pragma once
// A line of a log in the form of our own routes.

#include "model/names.hpp"
#include "model/rows.hpp"

namespace troupe::api {

/// Whether the line has a rank. Those of the platform itself have none, nor those of a process outside of the
/// cluster that names none: their rank is below 0.
inline bool has_rank(const log_line& line) { return line.stream != "troupe" && line.rank >= 0; }

inline value log_shape(const log_line& line) {
  return {{"line", line.number},   {"at", to_rfc3339(line.at)}, {"level", line.level},
          {"rank", line.rank},     {"agent", line.agent},       {"run", line.allocation.run.value},
          {"stream", line.stream}, {"text", line.text}};
}

} // namespace troupe::api
