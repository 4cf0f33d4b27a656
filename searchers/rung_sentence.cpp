#include "searchers/rung_sentence.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace troupe::searchers {

stop_trial beaten(int rung, double units, const std::string& time_metric, const report& r, double needed) {
  stop_trial s;
  s.rung = rung;
  s.units = units;
  s.metric = r.as_given;
  s.needed = needed;
  if (std::isnan(r.step))
    s.why = fmt::format("rung {} ({:.10g} {}): the report has no usable `{}`, so it ranks last", rung, units,
                        time_metric, time_metric);
  else if (!std::isfinite(r.as_given))
    s.why = fmt::format("rung {} ({:.10g} {}): no usable metric (NaN, infinite or missing), so it ranks last",
                        rung, units, time_metric);
  else
    s.why = fmt::format("rung {} ({:.10g} {}): {:.6g}, needed {:.6g}", rung, units, time_metric, r.as_given,
                        needed);
  return s;
}

stop_trial full_length(int rung, double units, const std::string& time_metric, double metric) {
  stop_trial s;
  s.rung = rung;
  s.units = units;
  s.metric = metric;
  s.needed = std::numeric_limits<double>::quiet_NaN();
  s.why = fmt::format("rung {} ({:.10g} {}): full length reached", rung, units, time_metric);
  return s;
}

} // namespace troupe::searchers
