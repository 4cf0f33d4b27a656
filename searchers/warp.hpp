#pragma once
// A monotone transform of results towards a normal distribution (Yeo and Johnson, Biometrika 2000), for a few
// results far better than a plateau of all others. It only ever draws the good end together: stretched,
// differences among the best that nobody would notice hold the search at the hill it is on.

#include <Eigen/Dense>

namespace troupe::searchers {

/// Zero mean, unit variance; all equal values give zeros.
Eigen::VectorXd warped(const Eigen::VectorXd& y);

} // namespace troupe::searchers
