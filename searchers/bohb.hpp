#pragma once
// The sampler of BOHB (Falkner et al., ICML 2018): per length of training a density of the good and one of
// the others; the longest length with enough results decides.

#include "searchers/sampler.hpp"
#include "searchers/settings.hpp"

namespace troupe::searchers {

struct bohb_settings {
  std::uint64_t seed = 0;
  std::int64_t startup_trials = 0; ///< results a length needs, at least; dimensions + 3 in any case
  std::int64_t candidates = 64;
  double random_fraction = 1.0 / 3;
  double bandwidth_factor = 3; ///< a candidate is drawn this much wider than its kernel
};

bohb_settings read_bohb(section& in, const settings& common);
/// `budgets`: the lengths of all rungs, rising.
std::unique_ptr<sampler> make_bohb(bohb_settings s, std::vector<std::int64_t> budgets,
                                   std::shared_ptr<const space> domain);

} // namespace troupe::searchers
