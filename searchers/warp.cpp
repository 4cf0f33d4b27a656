#include "searchers/warp.hpp"

#include <cmath>
#include <limits>

namespace troupe::searchers {
namespace {

using vec = Eigen::VectorXd;

double moved(double y, double lambda) {
  if (y >= 0)
    return std::abs(lambda) < 1e-9 ? std::log1p(y) : (std::pow(y + 1, lambda) - 1) / lambda;
  double m = 2 - lambda;
  return std::abs(m) < 1e-9 ? -std::log1p(-y) : -(std::pow(1 - y, m) - 1) / m;
}

vec standardised(const vec& y) {
  vec z = y.array() - y.mean();
  double deviation = std::sqrt(z.squaredNorm() / static_cast<double>(z.size()));
  return deviation > 1e-10 ? vec(z / deviation) : vec(vec::Zero(z.size()));
}

} // namespace

vec warped(const vec& y) {
  vec z = standardised(y);
  if (z.size() < 5 || z.squaredNorm() == 0)
    return z;
  double best = -std::numeric_limits<double>::infinity();
  vec chosen = z;
  auto n = static_cast<double>(z.size());
  for (double lambda = 1; lambda <= 3.01; lambda += 0.25) {
    vec t = z.unaryExpr([&](double v) { return moved(v, lambda); });
    double variance = (t.array() - t.mean()).square().sum() / n;
    double jacobian = 0;
    for (double v : z)
      jacobian += (lambda - 1) * std::copysign(std::log1p(std::abs(v)), v);
    double likelihood = -0.5 * n * std::log(variance) + jacobian;
    if (std::isfinite(likelihood) && likelihood > best) {
      best = likelihood;
      chosen = t;
    }
  }
  return standardised(chosen);
}

} // namespace troupe::searchers
