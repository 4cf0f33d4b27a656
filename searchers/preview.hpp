#pragma once
// What a search would run if nothing went wrong: how many trials end at which length.

#include "searchers/searcher.hpp"

namespace troupe::searchers {

struct preview_row {
  std::int64_t trials = 0;
  double units = 0; ///< length at which they end, in units of the time metric; 0: their own full length
};

struct search_preview {
  std::string name;
  std::string time_metric;
  std::int64_t max_trials = 0, max_concurrent = 0; ///< 0 concurrent: no limit
  std::vector<bracket> brackets;
  std::vector<preview_row> rows; ///< rising units, full length last
  double total_units = 0;        ///< over all trials; 0 where lengths are not known
};

/// Fails as `make_searcher` does.
result<search_preview> preview_search(const value& config, const value& hyperparameters);

/// One bracket: how many of its trials reach each rung.
std::vector<std::int64_t> survivors(const bracket& b, double divisor);

/// The answer of Determined's `preview-hp-search`: `{"trials": [{"count", "unit": {"name", "value",
/// "maxLength"}}]}`.
value to_determined(const search_preview& p);

} // namespace troupe::searchers
