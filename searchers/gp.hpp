#pragma once
// Bayesian optimisation by expected improvement over a Gaussian process of all finished trials. A running
// trial counts as if it had ended at its predicted mean.

#include "searchers/sampler.hpp"
#include "searchers/settings.hpp"

namespace troupe::searchers {

struct gp_settings {
  std::uint64_t seed = 0;
  std::int64_t startup_trials = 10;
  std::int64_t candidates =
    1000; ///< looked at before a few are refined; a third of them where there are many results
};

gp_settings read_gp(section& in, const settings& common);
std::unique_ptr<sampler> make_gp(gp_settings s, std::shared_ptr<const space> domain);

} // namespace troupe::searchers
