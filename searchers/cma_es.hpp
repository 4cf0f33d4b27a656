#pragma once
// CMA-ES with restarts for the numbers of a space. Categoricals follow the choices of the better half.

#include "searchers/sampler.hpp"
#include "searchers/settings.hpp"

namespace troupe::searchers {

struct cma_settings {
  std::uint64_t seed = 0;
  std::int64_t population_size = 0; ///< 0: 4 + 3 ln d
  double sigma = 1.0 / 6;           ///< the first step, as a share of the range
};

cma_settings read_cma(section& in, const settings& common);
std::unique_ptr<sampler> make_cma_es(cma_settings s, std::shared_ptr<const space> domain);

} // namespace troupe::searchers
