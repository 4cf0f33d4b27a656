#pragma once
// The horizontal axis of a curve: steps, wall time, running time, epochs, or another metric of the same
// report.

#include "runtime/api/series_columns.hpp"

#include <optional>

namespace troupe::api {

struct series_line {
  std::uint64_t row = 0; ///< row of the newest report that counts
  std::vector<double> x, y;
  void keep(std::optional<double> from, std::optional<double> to); ///< drops points whose x lies outside
};

class series_axis {
public:
  /// Reads "step", "time", "relative", "epoch" or "metric:NAME". Fails with errc::invalid for anything else.
  static result<series_axis> read(std::string_view text);
  const std::string& text() const { return text_; }

  /// What `line` needs to know of one trial.
  result<curve_source> source(const trial_row& of, const std::string& group, const std::string& metric,
                              series_columns& columns, const storage::reader& from) const;
  /// The curve of one trial, without archived reports.
  series_line line(const trial_row& of, const std::string& group, const curve_source& from) const;
  /// Whether the curve is made of its source alone. The running time follows from the trial's runs.
  bool of_source_alone() const { return kind_ != kind::relative; }

private:
  enum class kind { step, time, relative, metric };
  std::string text_;
  kind kind_ = kind::step;
  std::vector<std::string> metrics_; ///< names for x; the first that the same report has counts
};

} // namespace troupe::api
