#pragma once
// A monotone transform of results towards a normal distribution (Yeo and Johnson, Biometrika 2000), for a few
// results that are far better than a plateau of all others. It only ever draws the good end together: where
// it were stretched, unimportant differences among the best would hold the search on one hill.

#include <Eigen/Dense>

namespace troupe::searchers {

/// Has zero mean and unit variance; equal values give zeros.
Eigen::VectorXd warped(const Eigen::VectorXd& y);

} // namespace troupe::searchers
