#pragma once
// Early stopping policies, evaluated after the method for any searcher: patience, threshold, median, maximum time.

#include "searchers/method.hpp"
#include "searchers/settings.hpp"

#include <memory>
#include <optional>

namespace troupe::searchers {

class early_stopping {
public:
  virtual ~early_stopping() = default;
  /// The reason to stop the trial of this report, if there is one. `sign` turns a worth into a metric.
  virtual std::optional<stop_trial> judge(const report& r, double sign) = 0;
  virtual void left(ordinal trial, ending how) = 0;
  virtual void persist(archive& ar) = 0;
};

} // namespace troupe::searchers
