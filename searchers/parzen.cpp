#include "searchers/parzen.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace troupe::searchers {
namespace {

/// The normal distribution function from a table. Its error stays below 1e-10, which does not matter beside
/// the prior kernel's share of any density.
class normal_table {
public:
  normal_table() {
    for (int i = 0; i <= size; ++i)
      value_[static_cast<std::size_t>(i)] = 0.5 * std::erfc(-x(i) / std::sqrt(2.0));
    for (int i = 0; i <= size; ++i)
      slope_[static_cast<std::size_t>(i)] = std::exp(-0.5 * x(i) * x(i)) / std::sqrt(2 * M_PI) * step;
  }
  double operator()(double z) const {
    if (!(z > -reach))
      return 0;
    if (z >= reach)
      return 1;
    double at = (z + reach) / step;
    auto i = static_cast<std::size_t>(at);
    double t = at - static_cast<double>(i), t2 = t * t, t3 = t2 * t;
    return value_[i] * (2 * t3 - 3 * t2 + 1) + slope_[i] * (t3 - 2 * t2 + t) +
           value_[i + 1] * (3 * t2 - 2 * t3) + slope_[i + 1] * (t3 - t2);
  }

private:
  static constexpr int size = 2048;
  static constexpr double reach = 8.0, step = 2 * reach / size;
  static double x(int i) { return -reach + i * step; }
  std::array<double, size + 1> value_{}, slope_{};
};

double normal_cdf(double z) {
  static const normal_table table;
  return table(z);
}

/// The inverse of the standard normal distribution (Acklam); one Newton step reaches the table's precision.
double normal_quantile(double p) {
  constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                          1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                          6.680131188771972e+01, -1.328068155288572e+01};
  constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                          -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                          3.754408661907416e+00};
  p = std::clamp(p, 1e-15, 1 - 1e-15);
  if (p < 0.02425 || p > 1 - 0.02425) {
    double q = std::sqrt(-2 * std::log(std::min(p, 1 - p)));
    double x = (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
               ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
    return p < 0.5 ? x : -x;
  }
  double q = p - 0.5, r = q * q;
  return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
         (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
}

constexpr double log_root_two_pi = 0.91893853320467274178;

} // namespace

parzen::parzen(const std::vector<dimension>& dimensions, const std::vector<const double*>& points,
               std::vector<double> weights, const parzen_shape& shape)
    : dimensions_(dimensions), weights_(std::move(weights)), axes_(dimensions.size()) {
  weights_.push_back(shape.prior_weight);
  double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  for (auto& w : weights_) {
    w /= sum;
    log_weights_.push_back(std::log(w));
  }
  for (std::size_t j = 0; j < axes_.size(); ++j)
    if (dimensions_[j].categorical())
      fit_categorical(j, points, shape);
    else
      fit_number(j, points, shape);
}

/// A kernel reaches to the farther of its two neighbours; the outermost kernels reach to their inner
/// neighbour.
void parzen::fit_number(std::size_t j, const std::vector<const double*>& points, const parzen_shape& shape) {
  auto& axis = axes_[j];
  auto m = points.size();
  std::vector<std::pair<double, std::uint32_t>> sorted(m);
  for (std::size_t i = 0; i < m; ++i)
    sorted[i] = {points[i][j], static_cast<std::uint32_t>(i)};
  std::sort(sorted.begin(), sorted.end());
  axis.center.resize(m + 1);
  axis.inverse_width.resize(m + 1);
  axis.log_scale.resize(m + 1);
  double least = 1.0 / std::min(shape.least_share, static_cast<double>(m) + 2);
  if (auto n = dimensions_[j].values(); n > 0)
    axis.cell = 1.0 / static_cast<double>(n);
  for (std::size_t k = 0; k <= m; ++k) {
    auto i = k < m ? sorted[k].second : m;
    double center = 0.5, width = 1;
    if (k < m) {
      center = sorted[k].first;
      double left = center - (k > 0 ? sorted[k - 1].first : 0.0);
      double right = (k + 1 < m ? sorted[k + 1].first : 1.0) - center;
      if (m >= 2 && k == 0)
        left = 0;
      if (m >= 2 && k + 1 == m)
        right = 0;
      width = std::clamp(std::max(left, right), least, 1.0);
    }
    double mass = normal_cdf((1 - center) / width) - normal_cdf(-center / width);
    axis.center[i] = center;
    axis.inverse_width[i] = 1 / width;
    axis.log_scale[i] = -std::log(mass) - (axis.cell > 0 ? 0 : std::log(width) + log_root_two_pi);
  }
}

void parzen::fit_categorical(std::size_t j, const std::vector<const double*>& points,
                             const parzen_shape& shape) {
  auto& axis = axes_[j];
  auto m = points.size();
  auto choices = static_cast<double>(dimensions_[j].choices.size());
  double each = shape.category_weight / (static_cast<double>(m) + 1);
  double sum = 1 + choices * each;
  axis.center.assign(m + 1, -1.0);
  axis.log_scale.assign(m + 1, std::log(each / sum));
  axis.hit.assign(m + 1, std::log((1 + each) / sum));
  for (std::size_t i = 0; i < m; ++i)
    axis.center[i] = points[i][j];
  axis.log_scale[m] = axis.hit[m] = -std::log(choices);
}

void parzen::sample(rng& random, double moved, double* into) const {
  double pick = random.unit();
  std::size_t i = 0;
  while (i + 1 < weights_.size() && (pick -= weights_[i]) >= 0)
    ++i;
  for (std::size_t j = 0; j < axes_.size(); ++j) {
    const auto& axis = axes_[j];
    double u = random.unit();
    bool keeps = random.unit() * static_cast<double>(axes_.size()) >= moved;
    if (keeps && i + 1 < weights_.size()) {
      into[j] = axis.center[i];
      continue;
    }
    if (dimensions_[j].categorical()) {
      auto n = static_cast<double>(dimensions_[j].choices.size());
      double own = axis.center[i] < 0 ? 0 : std::exp(axis.hit[i]) - std::exp(axis.log_scale[i]);
      into[j] = u < own ? axis.center[i] : std::min(std::floor((u - own) / (1 - own) * n), n - 1);
      continue;
    }
    double width = 1 / axis.inverse_width[i];
    double low = normal_cdf(-axis.center[i] / width), high = normal_cdf((1 - axis.center[i]) / width);
    double x = axis.center[i] + width * normal_quantile(low + (high - low) * u);
    into[j] = dimensions_[j].settle(std::clamp(x, 0.0, 1.0));
  }
}

std::vector<double> parzen::log_density(std::span<const double> points) const {
  auto d = axes_.size();
  auto kernels = weights_.size();
  std::vector<double> result, exponent(kernels), factor(kernels);
  for (std::size_t at = 0; at + d <= points.size(); at += d) {
    std::copy(log_weights_.begin(), log_weights_.end(), exponent.begin());
    bool factored = false;
    for (std::size_t j = 0; j < d; ++j) {
      const auto& axis = axes_[j];
      double x = points[at + j];
      const double *center = axis.center.data(), *inverse = axis.inverse_width.data(),
                   *scale = axis.log_scale.data();
      double* sum = exponent.data();
      if (dimensions_[j].categorical()) {
        const double* hit = axis.hit.data();
        for (std::size_t i = 0; i < kernels; ++i)
          sum[i] += center[i] == x ? hit[i] : scale[i];
      } else if (axis.cell == 0) {
        for (std::size_t i = 0; i < kernels; ++i) {
          double z = (x - center[i]) * inverse[i];
          sum[i] += scale[i] - 0.5 * z * z;
        }
      } else {
        if (!std::exchange(factored, true))
          std::fill(factor.begin(), factor.end(), 1.0);
        double low = x - axis.cell / 2, high = x + axis.cell / 2;
        for (std::size_t i = 0; i < kernels; ++i) {
          factor[i] *=
            normal_cdf((high - center[i]) * inverse[i]) - normal_cdf((low - center[i]) * inverse[i]);
          sum[i] += scale[i];
        }
      }
    }
    double top = *std::max_element(exponent.begin(), exponent.end());
    double total = 0;
    for (std::size_t i = 0; i < kernels; ++i)
      if (exponent[i] > top - 40) // smaller terms add nothing that a double could hold
        total += std::exp(exponent[i] - top) * (factored ? factor[i] : 1.0);
    result.push_back(top + std::log(std::max(total, 1e-300)));
  }
  return result;
}

} // namespace troupe::searchers
