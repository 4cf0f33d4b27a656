#pragma once
// What a curve is drawn over: steps, wall time, time that it ran, epochs, or another metric of the same
// report.

#include "runtime/api/series_columns.hpp"

#include <optional>

namespace troupe::api {

struct series_line {
  std::uint64_t row = 0; ///< the newest report that counts
  std::vector<double> x, y;
  void keep(std::optional<double> from, std::optional<double> to); ///< drops what lies outside
};

class series_axis {
public:
  /// "step", "time", "relative", "epoch", "metric:NAME"; errc::invalid for another.
  static result<series_axis> read(std::string_view text);
  const std::string& text() const { return text_; }

  /// The curve of one trial, without the reports of runs that were given up.
  result<series_line> line(const trial_row& of, const std::string& group, const std::string& metric,
                           series_columns& columns, const storage::reader& from) const;

private:
  enum class kind { step, time, relative, metric };
  std::string text_;
  kind kind_ = kind::step;
  std::vector<std::string> metrics_; ///< of the same report: the first that it has
};

} // namespace troupe::api
