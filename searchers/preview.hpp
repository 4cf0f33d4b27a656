#pragma once
// What a search would run if nothing failed: how many trials end at which length.

#include "searchers/searcher.hpp"

namespace troupe::searchers {

struct preview_row {
  std::int64_t trials = 0;
  double units = 0; ///< length at which they end, in units of the time metric; 0: their own full length
};

struct search_preview {
  std::string name;
  std::string time_metric;
  std::int64_t max_trials = 0, max_concurrent = 0; ///< max_concurrent 0: no limit
  std::vector<bracket> brackets;
  std::vector<preview_row> rows; ///< by rising units; full length is last
  double total_units = 0;        ///< of all trials; 0 where lengths are not known
};

/// Fails as `make_searcher` does.
result<search_preview> preview_search(const value& config, const value& hyperparameters);

/// How many trials of one bracket reach each rung.
std::vector<std::int64_t> survivors(const bracket& b, double divisor);

/// The preview as Determined's `preview-hp-search` answers: `{"trials": [{"count", "unit": {"name", "value",
/// "maxLength"}}]}`.
value to_determined(const search_preview& p);

} // namespace troupe::searchers
