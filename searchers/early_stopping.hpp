#pragma once
// Early stopping policies: patience, threshold, median, maximum time. They work with any searcher, and are
// asked after its method.

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

/// Reads `searcher.early_stopping`, which may hold
///   patience: {reports, min_delta}, threshold: {lower, upper, warmup},
///   median: {warmup, min_trials, interval}, max_time: NUMBER
/// with lengths in units of the time metric. Null where the section is missing.
std::unique_ptr<early_stopping> make_early_stopping(section& in, const settings& common);
std::unique_ptr<early_stopping> make_median_stopping(double warmup, std::int64_t min_trials, double interval);

} // namespace troupe::searchers
