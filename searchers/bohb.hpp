#pragma once
// The sampler of BOHB (Falkner et al., ICML 2018). For each length of training it has a density of the good
// results and one of the others; the longest length with enough results decides.

#include "searchers/sampler.hpp"
#include "searchers/settings.hpp"

namespace troupe::searchers {

struct bohb_settings {
  std::uint64_t seed = 0;
  std::int64_t startup_trials = 0; ///< results that a length needs; it always needs at least dimensions + 3
  std::int64_t candidates = 64;
  double random_fraction = 1.0 / 3;
  double bandwidth_factor = 3; ///< a candidate is drawn this many times wider than its kernel
};

bohb_settings read_bohb(section& in, const settings& common);
/// `budgets` holds the lengths of all rungs, rising.
std::unique_ptr<sampler> make_bohb(bohb_settings s, std::vector<std::int64_t> budgets,
                                   std::shared_ptr<const space> domain);

} // namespace troupe::searchers
