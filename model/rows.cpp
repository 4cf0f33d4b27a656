#include "model/rows.hpp"

#include <algorithm>

namespace troupe {

bool archived(const metric_row& report, const std::vector<run_row>& runs) {
  return std::any_of(runs.begin(), runs.end(),
                     [&](const run_row& r) { return r.run > report.run && report.steps > r.from_steps; });
}

} // namespace troupe
