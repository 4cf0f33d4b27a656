#pragma once
// How much each hyperparameter matters, by PED-ANOVA (Watanabe, Bansal, Hutter 2023). Pure.

#include "model/value.hpp"

#include <string>
#include <vector>

namespace troupe::api {

/// One hyperparameter of a set of trials.
struct importance_input {
  std::string name;
  bool logarithmic = false;
  std::vector<value> values; ///< value of each trial; null where the trial has none
};
struct importance_entry {
  std::string name;
  double importance = 0;
};

/// How much the best tenth of the trials differs from all of them in the density of each hyperparameter, as
/// fractions that add up to 1, largest first. `loss` has a finite number for each trial; smaller is better. A
/// hyperparameter with only one value is left out.
std::vector<importance_entry> ped_anova(const std::vector<importance_input>& hparams,
                                        const std::vector<double>& loss);

} // namespace troupe::api
