#include "searchers/cma_es.hpp"

#include "model/rng.hpp"
#include "searchers/history.hpp"

#include <Eigen/Dense>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe::searchers {
namespace {

using matrix = Eigen::MatrixXd;
using vec = Eigen::VectorXd;

double normal(rng& random) {
  double u = 1 - random.unit();
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * random.unit());
}

/// Constants of one population size (Hansen's tutorial, with negative weights).
struct strategy {
  std::size_t lambda, mu;
  double mu_eff, c1, cmu, cs, ds, cc, chi;
  std::vector<double> weights;

  strategy(std::size_t d, std::size_t population) : lambda(population), mu(population / 2) {
    double n = static_cast<double>(d);
    std::vector<double> raw;
    double sum = 0, square = 0, low = 0, low_square = 0;
    for (std::size_t i = 0; i < lambda; ++i) {
      raw.push_back(std::log((static_cast<double>(lambda) + 1) / 2) - std::log(static_cast<double>(i) + 1));
      (i < mu ? sum : low) += raw[i];
      (i < mu ? square : low_square) += raw[i] * raw[i];
    }
    mu_eff = sum * sum / square;
    double mu_low = low_square > 0 ? low * low / low_square : 0;
    c1 = 2 / ((n + 1.3) * (n + 1.3) + mu_eff);
    cmu = std::min(1 - c1 - 1e-8, 2 * (mu_eff - 2 + 1 / mu_eff) / ((n + 2) * (n + 2) + mu_eff));
    double alpha = std::min({1 + c1 / cmu, 1 + 2 * mu_low / (mu_eff + 2), (1 - c1 - cmu) / (n * cmu)});
    double positive = 0, negative = 0;
    for (double w : raw)
      (w >= 0 ? positive : negative) += w;
    for (double w : raw)
      weights.push_back(w >= 0 ? w / positive : -alpha * w / negative);
    cs = (mu_eff + 2) / (n + mu_eff + 5);
    ds = 1 + 2 * std::max(0.0, std::sqrt((mu_eff - 1) / (n + 1)) - 1) + cs;
    cc = (4 + mu_eff / n) / (n + 4 + 2 * mu_eff / n);
    chi = std::sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n));
  }
};

class cma_es final : public sampler {
public:
  cma_es(cma_settings s, std::shared_ptr<const space> domain)
      : s_(s), domain_(std::move(domain)), history_(domain_->size()) {
    for (std::size_t j = 0; j < domain_->size(); ++j)
      (domain_->dimensions()[j].categorical() ? choices_ : numbers_).push_back(j);
    for (auto j : choices_) {
      auto n = domain_->dimensions()[j].choices.size();
      shares_.push_back(std::vector<double>(n, 1.0 / static_cast<double>(n)));
    }
    restart(first_population());
    mean_.assign(d(), 0.5);
  }

  point propose(ordinal fresh) override {
    auto p = domain_->sample(s_.seed, sample_stream, fresh);
    if (fresh > 0) {
      rng random(random_bits(s_.seed, model_stream, fresh));
      draw_numbers(random, p);
      draw_choices(random, p);
    }
    return p;
  }

  void started(ordinal fresh, const point& p) override { history_.add(fresh, p); }

  void observe(const report& r) override { history_.observe(r); }

  void left(ordinal trial, ending how) override {
    history_.settle(trial, how);
    pool_.push_back(trial);
    if (pool_.size() >= lambda_)
      update();
  }

  void persist(archive& ar) override {
    history_.persist(ar);
    ar(mean_, path_sigma_, path_c_, covariance_, shares_, pool_, recent_best_, sigma_, lambda_, generation_,
       restarts_);
    if (!ar.reading())
      return;
    bool fits = mean_.size() == d() && covariance_.size() == d() * d() && path_sigma_.size() == d() &&
                path_c_.size() == d() && shares_.size() == choices_.size() && lambda_ >= 2;
    for (auto t : pool_)
      fits = fits && t < history_.size();
    if (!fits)
      return ar.fail();
    decompose();
  }

private:
  std::size_t d() const { return numbers_.size(); }
  std::uint64_t first_population() const {
    if (s_.population_size > 0)
      return static_cast<std::uint64_t>(s_.population_size);
    return 4 + static_cast<std::uint64_t>(3 * std::log(std::max<double>(1, static_cast<double>(d()))));
  }

  void restart(std::uint64_t population) {
    lambda_ = population;
    sigma_ = s_.sigma;
    generation_ = 0;
    path_sigma_.assign(d(), 0);
    path_c_.assign(d(), 0);
    covariance_.assign(d() * d(), 0);
    for (std::size_t j = 0; j < d(); ++j)
      covariance_[j * d() + j] = 1;
    recent_best_.clear();
    decompose();
  }

  void decompose() {
    auto n = static_cast<Eigen::Index>(d());
    if (n == 0)
      return;
    Eigen::Map<matrix> c(covariance_.data(), n, n);
    c = (0.5 * (c + c.transpose())).eval();
    Eigen::SelfAdjointEigenSolver<matrix> solver(c);
    axes_ = solver.eigenvectors();
    lengths_ = solver.eigenvalues().cwiseMax(1e-20).cwiseSqrt();
  }

  void draw_numbers(rng& random, point& p) const {
    auto n = static_cast<Eigen::Index>(d());
    if (n == 0)
      return;
    vec mean = Eigen::Map<const vec>(mean_.data(), n), x;
    for (Eigen::Index attempt = 0; attempt < 10 * n; ++attempt) {
      vec z(n);
      for (auto& v : z)
        v = normal(random);
      x = mean + sigma_ * (axes_ * lengths_.cwiseProduct(z));
      if (x.minCoeff() >= 0 && x.maxCoeff() <= 1)
        break;
    }
    for (std::size_t j = 0; j < d(); ++j)
      p[numbers_[j]] =
        domain_->dimensions()[numbers_[j]].settle(std::clamp(x[static_cast<Eigen::Index>(j)], 0.0, 1.0));
  }

  void draw_choices(rng& random, point& p) const {
    for (std::size_t k = 0; k < choices_.size(); ++k) {
      double pick = random.unit();
      std::size_t i = 0;
      while (i + 1 < shares_[k].size() && (pick -= shares_[k][i]) >= 0)
        ++i;
      p[choices_[k]] = static_cast<double>(i);
    }
  }

  /// A generation is any lambda results: late results of an older generation enter with a bounded step.
  void update() {
    std::stable_sort(pool_.begin(), pool_.end(),
                     [this](ordinal a, ordinal b) { return history_.worth(a) < history_.worth(b); });
    if (d() > 0)
      move();
    for (std::size_t k = 0; k < choices_.size(); ++k) {
      auto& share = shares_[k];
      auto better = std::max<std::size_t>(1, pool_.size() / 2);
      constexpr double rate = 0.25;
      double least = 0.2 / static_cast<double>(share.size());
      for (auto& x : share)
        x *= 1 - rate;
      for (std::size_t i = 0; i < better; ++i)
        share[static_cast<std::size_t>(history_.at(pool_[i])[choices_[k]])] +=
          rate / static_cast<double>(better);
      double sum = 0;
      for (auto& x : share)
        sum += x = std::max(x, least);
      for (auto& x : share)
        x /= sum;
    }
    recent_best_.push_back(history_.worth(pool_.front()));
    pool_.clear();
    ++generation_;
    if (d() > 0 && stuck()) {
      restart(std::min<std::uint64_t>(lambda_ * 2, 4096));
      ++restarts_;
      for (std::size_t j = 0; j < d(); ++j)
        mean_[j] = unit(random_bits(s_.seed, model_stream, restarts_, j, 7));
    }
  }

  void move() {
    auto n = static_cast<Eigen::Index>(d());
    strategy st(d(), pool_.size());
    Eigen::Map<vec> mean(mean_.data(), n), ps(path_sigma_.data(), n), pc(path_c_.data(), n);
    Eigen::Map<matrix> c(covariance_.data(), n, n);
    matrix inverse_root = axes_ * lengths_.cwiseInverse().asDiagonal() * axes_.transpose();
    matrix steps(n, static_cast<Eigen::Index>(pool_.size()));
    double longest =
      std::sqrt(static_cast<double>(n)) + 2.0 * static_cast<double>(n) / (static_cast<double>(n) + 2);
    for (std::size_t k = 0; k < pool_.size(); ++k) {
      vec y(n);
      for (std::size_t j = 0; j < d(); ++j)
        y[static_cast<Eigen::Index>(j)] = (history_.at(pool_[k])[numbers_[j]] - mean_[j]) / sigma_;
      double length = (inverse_root * y).norm();
      steps.col(static_cast<Eigen::Index>(k)) = length > 2 * longest ? vec(y * (2 * longest / length)) : y;
    }
    vec yw = vec::Zero(n);
    for (std::size_t k = 0; k < st.mu; ++k)
      yw += st.weights[k] * steps.col(static_cast<Eigen::Index>(k));
    mean += sigma_ * yw;
    mean = mean.cwiseMax(0).cwiseMin(1).eval();
    ps = ((1 - st.cs) * ps + std::sqrt(st.cs * (2 - st.cs) * st.mu_eff) * (inverse_root * yw)).eval();
    double norm = ps.norm();
    sigma_ = std::clamp(sigma_ * std::exp(std::min(1.0, st.cs / st.ds * (norm / st.chi - 1))), 1e-20, 1.0);
    double left = std::sqrt(1 - std::pow(1 - st.cs, 2.0 * static_cast<double>(generation_ + 1)));
    double h = norm / left < (1.4 + 2 / (static_cast<double>(n) + 1)) * st.chi ? 1 : 0;
    pc = ((1 - st.cc) * pc + h * std::sqrt(st.cc * (2 - st.cc) * st.mu_eff) * yw).eval();
    double sum = std::accumulate(st.weights.begin(), st.weights.end(), 0.0);
    matrix next =
      (1 + st.c1 * (1 - h) * st.cc * (2 - st.cc) - st.c1 - st.cmu * sum) * c + st.c1 * pc * pc.transpose();
    for (std::size_t k = 0; k < pool_.size(); ++k) {
      vec y = steps.col(static_cast<Eigen::Index>(k));
      double w = st.weights[k];
      if (w < 0)
        w *= static_cast<double>(n) / ((inverse_root * y).squaredNorm() + 1e-8);
      next += st.cmu * w * y * y.transpose();
    }
    c = next;
    decompose();
  }

  bool stuck() const {
    if (sigma_ * lengths_.maxCoeff() < 1e-12 * s_.sigma || lengths_.maxCoeff() > 1e7 * lengths_.minCoeff())
      return true;
    auto window = 10 + static_cast<std::size_t>(
                         std::ceil(30.0 * static_cast<double>(d()) / static_cast<double>(lambda_)));
    if (recent_best_.size() < window)
      return false;
    auto [low, high] =
      std::minmax_element(recent_best_.end() - static_cast<std::ptrdiff_t>(window), recent_best_.end());
    return !(*high - *low > 1e-12);
  }

  cma_settings s_;
  std::shared_ptr<const space> domain_;
  trial_history history_;
  std::vector<std::size_t> numbers_, choices_; ///< indexes of numeric and of categorical dimensions
  std::vector<double> mean_, path_sigma_, path_c_, covariance_;
  std::vector<std::vector<double>> shares_; ///< probability of each choice
  std::vector<ordinal> pool_;               ///< results of the current generation
  std::vector<double> recent_best_;
  double sigma_ = 0;
  std::uint64_t lambda_ = 0, generation_ = 0, restarts_ = 0;
  matrix axes_; ///< eigenvectors of the covariance and roots of its eigenvalues
  vec lengths_;
};

} // namespace

cma_settings read_cma(section& in, const settings& common) {
  cma_settings s;
  s.seed = common.seed;
  s.population_size = in.integer("population_size", 0, 2, 100'000);
  s.sigma = in.number("sigma", s.sigma, 1e-6, 10);
  return s;
}

std::unique_ptr<sampler> make_cma_es(cma_settings s, std::shared_ptr<const space> domain) {
  return std::make_unique<cma_es>(s, std::move(domain));
}

} // namespace troupe::searchers
