#include "searchers/gaussian_process.hpp"

#include <cmath>
#include <deque>
#include <limits>

namespace troupe::searchers {
namespace {

using matrix = Eigen::MatrixXd;
using vec = Eigen::VectorXd;

constexpr double least_noise = 1e-6;

/// The Matern 5/2 kernel k and its slope dk/dq, as functions of q, the squared scaled distance.
inline double matern(double q) {
  double r = std::sqrt(5 * q);
  return (1 + r + 5.0 / 3 * q) * std::exp(-r);
}
inline double matern_slope(double q) {
  double r = std::sqrt(5 * q);
  return -5.0 / 6 * (1 + r) * std::exp(-r);
}

/// Squared distance in one dimension; for a categorical 0 for a match, 1 for a mismatch.
inline double distance(double a, double b, bool categorical) {
  return categorical ? (a == b ? 0.0 : 1.0) : (a - b) * (a - b);
}

} // namespace

vec minimise(const std::function<double(const vec&, vec&)>& f, vec x, int most_steps, double tolerance,
             const box* bounds) {
  struct pair {
    vec s, y;
    double rho;
  };
  std::deque<pair> memory;
  auto inside = [&](const vec& v) -> vec {
    return bounds ? vec(v.cwiseMax(bounds->low).cwiseMin(bounds->high)) : v;
  };
  x = inside(x);
  vec g(x.size());
  double value = f(x, g);
  if (!std::isfinite(value))
    return x;
  for (int step = 0; step < most_steps; ++step) {
    vec free = g;
    if (bounds)
      for (Eigen::Index i = 0; i < x.size(); ++i)
        if ((x[i] <= bounds->low[i] && g[i] > 0) || (x[i] >= bounds->high[i] && g[i] < 0))
          free[i] = 0;
    if (free.lpNorm<Eigen::Infinity>() < tolerance)
      break;
    vec q = free;
    std::vector<double> a(memory.size());
    for (std::size_t i = memory.size(); i-- > 0;) {
      a[i] = memory[i].rho * memory[i].s.dot(q);
      q -= a[i] * memory[i].y;
    }
    if (memory.empty())
      q *= std::min(1.0, 0.5 / free.norm());
    else
      q *= 1 / (memory.back().rho * memory.back().y.squaredNorm());
    for (std::size_t i = 0; i < memory.size(); ++i)
      q += memory[i].s * (a[i] - memory[i].rho * memory[i].y.dot(q));
    for (Eigen::Index i = 0; i < x.size(); ++i)
      if (free[i] == 0)
        q[i] = 0;
    if (q.dot(g) <= 0)
      q = free;
    double along = -q.dot(g), t = 1;
    vec next, next_g(x.size());
    double next_value = 0;
    bool moved = false;
    for (int half = 0; half < 12; ++half, t *= 0.4) {
      next = inside(x - t * q);
      next_value = f(next, next_g);
      if (std::isfinite(next_value) && next_value <= value + 1e-4 * t * along) {
        moved = true;
        break;
      }
    }
    if (!moved)
      break;
    vec s = next - x, y = next_g - g;
    double sy = s.dot(y);
    if (sy > 1e-12) {
      memory.push_back({s, y, 1 / sy});
      if (memory.size() > 8)
        memory.pop_front();
    }
    bool flat = value - next_value < 1e-9 * (1 + std::abs(value));
    x = next;
    g = next_g;
    value = next_value;
    if (flat)
      break;
  }
  return x;
}

gaussian_process::gaussian_process(matrix x, vec y, std::vector<char> categorical)
    : x_(std::move(x)), y_(std::move(y)), categorical_(std::move(categorical)) {}

kernel_parameters gaussian_process::fit(const kernel_parameters& start, int most_steps) const {
  auto n = x_.rows(), d = x_.cols();
  std::vector<matrix> apart(static_cast<std::size_t>(d), matrix(n, n));
  for (Eigen::Index j = 0; j < d; ++j)
    for (Eigen::Index c = 0; c < n; ++c)
      for (Eigen::Index r = 0; r < n; ++r)
        apart[static_cast<std::size_t>(j)](r, c) =
          distance(x_(r, j), x_(c, j), categorical_[static_cast<std::size_t>(j)]);
  matrix k(n, n), slope(n, n), q(n, n);
  auto objective = [&](const vec& p, vec& g) {
    double bad = std::numeric_limits<double>::infinity();
    if (p.lpNorm<Eigen::Infinity>() > 25)
      return bad;
    double scale = std::exp(p[d]), extra = std::exp(p[d + 1]), noise = extra + least_noise;
    q.setZero();
    for (Eigen::Index j = 0; j < d; ++j)
      q += std::exp(p[j]) * apart[static_cast<std::size_t>(j)];
    for (Eigen::Index c = 0; c < n; ++c)
      for (Eigen::Index r = c; r < n; ++r) {
        double root = std::sqrt(5 * q(r, c)), e = std::exp(-root);
        k(r, c) = k(c, r) = scale * (1 + root + 5.0 / 3 * q(r, c)) * e;
        slope(r, c) = slope(c, r) = -5.0 / 6 * scale * (1 + root) * e;
      }
    matrix noisy = k;
    noisy.diagonal().array() += noise;
    Eigen::LLT<matrix> factor(noisy);
    if (factor.info() != Eigen::Success)
      return bad;
    vec alpha = factor.solve(y_);
    matrix inverse = factor.solve(matrix::Identity(n, n));
    double value = 0.5 * y_.dot(alpha) + factor.matrixLLT().diagonal().array().log().sum();
    matrix w = inverse - alpha * alpha.transpose(); // d value / dK = w / 2
    matrix ws = w.cwiseProduct(slope);
    for (Eigen::Index j = 0; j < d; ++j) {
      double weight = std::exp(p[j]);
      value += 0.1 / weight + 0.1 * weight;
      g[j] = 0.5 * weight * ws.cwiseProduct(apart[static_cast<std::size_t>(j)]).sum() - 0.1 / weight +
             0.1 * weight;
    }
    value += scale - p[d];
    g[d] = 0.5 * w.cwiseProduct(k).sum() + scale - 1;
    value += 30 * noise - 0.1 * std::log(noise);
    g[d + 1] = extra * (0.5 * w.trace() + 30 - 0.1 / noise);
    return value;
  };
  auto packed = [&](const kernel_parameters& s) {
    vec p(d + 2);
    for (Eigen::Index j = 0; j < d; ++j)
      p[j] = s.log_weights[static_cast<std::size_t>(j)];
    p[d] = s.log_scale;
    p[d + 1] = s.log_noise;
    return p;
  };
  auto best = minimise(objective, packed(start), most_steps, 1e-2);
  vec g(d + 2);
  kernel_parameters out = start;
  if (!std::isfinite(objective(best, g)))
    return out;
  for (Eigen::Index j = 0; j < d; ++j)
    out.log_weights[static_cast<std::size_t>(j)] = best[j];
  out.log_scale = best[d];
  out.log_noise = best[d + 1];
  return out;
}

bool gaussian_process::use(const kernel_parameters& p) {
  auto n = x_.rows(), d = x_.cols();
  weights_.resize(d);
  for (Eigen::Index j = 0; j < d; ++j)
    weights_[j] = std::exp(p.log_weights[static_cast<std::size_t>(j)]);
  scale_ = std::exp(p.log_scale);
  noise_ = std::exp(p.log_noise) + least_noise;
  matrix k(n, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    vec row = x_.row(i);
    k.col(i) = covariances(row);
  }
  for (double jitter = 0; jitter < 1e-2; jitter = jitter == 0 ? 1e-10 : jitter * 10) {
    matrix noisy = k;
    noisy.diagonal().array() += noise_ + jitter;
    Eigen::LLT<matrix> factor(noisy);
    if (factor.info() != Eigen::Success)
      continue;
    lower_ = factor.matrixL();
    alpha_ = factor.solve(y_);
    return true;
  }
  return false;
}

vec gaussian_process::covariances(const vec& x) const {
  auto n = x_.rows();
  vec q = vec::Zero(n);
  for (Eigen::Index j = 0; j < x_.cols(); ++j)
    if (categorical_[static_cast<std::size_t>(j)])
      q.array() += weights_[j] * (x_.col(j).array() != x[j]).cast<double>();
    else
      q.array() += weights_[j] * (x_.col(j).array() - x[j]).square();
  for (auto& v : q)
    v = scale_ * matern(v);
  return q;
}

void gaussian_process::believe(const vec& at) {
  auto n = x_.rows();
  vec k = covariances(at);
  double mean = k.dot(alpha_);
  vec row = lower_.triangularView<Eigen::Lower>().solve(k);
  double rest = std::sqrt(std::max(scale_ + noise_ - row.squaredNorm(), 1e-10));
  x_.conservativeResize(n + 1, Eigen::NoChange);
  x_.row(n) = at.transpose();
  y_.conservativeResize(n + 1);
  y_[n] = mean;
  lower_.conservativeResize(n + 1, n + 1);
  lower_.col(n).setZero();
  lower_.row(n).head(n) = row.transpose();
  lower_(n, n) = rest;
  vec solved = lower_.triangularView<Eigen::Lower>().solve(y_);
  alpha_ = lower_.transpose().triangularView<Eigen::Upper>().solve(solved);
}

gaussian_process::prediction gaussian_process::at(const vec& x) const {
  vec k = covariances(x);
  vec v = lower_.triangularView<Eigen::Lower>().solve(k);
  return {k.dot(alpha_), std::sqrt(std::max(scale_ - v.squaredNorm(), 1e-12))};
}

gaussian_process::prediction gaussian_process::at(const vec& x, vec& mean_slope, vec& deviation_slope) const {
  auto n = x_.rows(), d = x_.cols();
  vec q = vec::Zero(n);
  for (Eigen::Index j = 0; j < d; ++j)
    if (categorical_[static_cast<std::size_t>(j)])
      q.array() += weights_[j] * (x_.col(j).array() != x[j]).cast<double>();
    else
      q.array() += weights_[j] * (x_.col(j).array() - x[j]).square();
  vec k(n), slope(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    k[i] = scale_ * matern(q[i]);
    slope[i] = scale_ * matern_slope(q[i]);
  }
  vec v = lower_.triangularView<Eigen::Lower>().solve(k);
  vec solved = lower_.transpose().triangularView<Eigen::Upper>().solve(v);
  prediction p{k.dot(alpha_), std::sqrt(std::max(scale_ - v.squaredNorm(), 1e-12))};
  mean_slope = vec::Zero(d);
  deviation_slope = vec::Zero(d);
  for (Eigen::Index j = 0; j < d; ++j) {
    if (categorical_[static_cast<std::size_t>(j)])
      continue;
    vec dk = (2 * weights_[j]) * slope.cwiseProduct((x[j] - x_.col(j).array()).matrix());
    mean_slope[j] = dk.dot(alpha_);
    deviation_slope[j] = -dk.dot(solved) / p.deviation;
  }
  return p;
}

void gaussian_process::at(const matrix& rows, vec& mean, vec& deviation) const {
  matrix k(x_.rows(), rows.rows());
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    vec row = rows.row(i);
    k.col(i) = covariances(row);
  }
  mean = k.transpose() * alpha_;
  lower_.triangularView<Eigen::Lower>().solveInPlace(k);
  deviation = (scale_ - k.colwise().squaredNorm().transpose().array()).max(1e-12).sqrt();
}

vec gaussian_process::left_out() const {
  matrix inverse_lower =
    lower_.triangularView<Eigen::Lower>().solve(matrix::Identity(lower_.rows(), lower_.rows()));
  vec diagonal = inverse_lower.colwise().squaredNorm();
  return y_ - alpha_.cwiseQuotient(diagonal);
}

} // namespace troupe::searchers
