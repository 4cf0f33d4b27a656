#pragma once
// Tree-structured Parzen estimator: a density of the good trials over a density of the others, multivariate.
// Running trials count among the others (the constant liar).
//
// This goes beyond the published estimator, as perf/searchers measures: better good trials weigh more, and a
// candidate keeps most coordinates of the good trial that it starts from. The latter helps most in more than
// a few dimensions and among categoricals.

#include "searchers/sampler.hpp"
#include "searchers/settings.hpp"

namespace troupe::searchers {

struct tpe_settings {
  std::uint64_t seed = 0;
  std::int64_t startup_trials = 10;
  std::int64_t candidates = 24;
  double gamma = 0.15; ///< the share of the finished trials that counts as good, at most 25 trials
  double moved = 4;    ///< dimensions that a candidate changes of the good trial it starts from, on average
  bool multivariate = true;
  bool constant_liar = true;
};

tpe_settings read_tpe(section& in, const settings& common);
std::unique_ptr<sampler> make_tpe(tpe_settings s, std::shared_ptr<const space> domain);

} // namespace troupe::searchers
