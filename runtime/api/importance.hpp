#pragma once
// Which hyperparameters matter: PED-ANOVA (Watanabe, Bansal, Hutter 2023). Pure.

#include "model/value.hpp"

#include <string>
#include <vector>

namespace troupe::api {

/// One hyperparameter of a set of trials.
struct importance_input {
  std::string name;
  bool logarithmic = false;
  std::vector<value> values; ///< of each trial; null where it has none
};
struct importance_entry {
  std::string name;
  double importance = 0;
};

/// How much the best tenth of the trials differs from all of them in the density of each hyperparameter, as
/// parts of 1, largest first. `loss`: of each trial, smaller is better, all finite. What has one value alone
/// is left out.
std::vector<importance_entry> ped_anova(const std::vector<importance_input>& hparams,
                                        const std::vector<double>& loss);

} // namespace troupe::api
