#pragma once
// A line of a log in the form of our own routes.

#include "model/names.hpp"
#include "model/rows.hpp"

namespace troupe::api {

inline value log_shape(const log_line& line) {
  return {{"line", line.number},   {"at", to_rfc3339(line.at)}, {"level", line.level},
          {"rank", line.rank},     {"agent", line.agent},       {"run", line.allocation.run.value},
          {"stream", line.stream}, {"text", line.text}};
}

} // namespace troupe::api
