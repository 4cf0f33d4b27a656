#pragma once
// Population based training: at each interval a member of the worst part takes the weights of a member of the
// best part that has a committed checkpoint, and its hyperparameters, perturbed.

#include "searchers/sampler.hpp"
#include "searchers/settings.hpp"

namespace troupe::searchers {

struct pbt_settings {
  std::uint64_t seed = 0;
  std::string time_metric;
  std::int64_t population = 8;
  double max_time = 0; ///< a trial stops there; 0: at its own end
  double interval = 1; ///< between two comparisons of a member, in units of the time metric
  double burn_in = 0;  ///< before the first comparison
  double truncate_fraction = 0.2;
  double resample_probability = 0.25;
  double perturb_factor = 0.2; ///< a value is multiplied by (1 - f) or (1 + f)
};

pbt_settings read_pbt(section& in, const settings& common);
std::unique_ptr<method> make_pbt(pbt_settings s, std::shared_ptr<const space> domain,
                                 std::unique_ptr<sampler> source);

} // namespace troupe::searchers
