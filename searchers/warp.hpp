#pragma once
// A monotone transform of results towards a normal distribution (Yeo and Johnson, Biometrika 2000), so that a
// few huge losses do not flatten the differences among the good ones.

#include <Eigen/Dense>

namespace troupe::searchers {

/// Zero mean, unit variance; all equal values give zeros.
Eigen::VectorXd warped(const Eigen::VectorXd& y);

} // namespace troupe::searchers
