#include "searchers/gp.hpp"

#include "model/rng.hpp"
#include "searchers/gaussian_process.hpp"
#include "searchers/history.hpp"
#include "searchers/tpe.hpp"
#include "searchers/warp.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::searchers {
namespace {

using vec = Eigen::VectorXd;
using matrix = Eigen::MatrixXd;

constexpr std::size_t most_points =
  400; ///< limit of the model's points: the best, the newest, and every k-th of the others

/// Up to this number of results the parameters are fitted anew at each proposal, and more places are tried.
/// Beyond it the cost of one proposal, which grows with the square and the cube of the results, is limited.
constexpr std::size_t few_results = 120;

/// Least correlation of the results with their predictions from all other results. Below it the model is not
/// used: the landscape may be rough on a finer scale than the trials can see, and the expected improvement is
/// then the same everywhere.
constexpr double least_correlation = 0.65;

/// The logarithm of the expected improvement where a standard normal must fall below z, and its slope.
double log_improvement(double z, double& slope) {
  if (z > -25) {
    double density = std::exp(-0.5 * z * z) * 0.3989422804014327,
           below = 0.5 * std::erfc(-z / std::sqrt(2.0));
    double h = std::max(z * below + density, 1e-300);
    slope = below / h;
    return std::log(h);
  }
  slope = -z - 2 / z;
  return -0.5 * z * z - 0.91893853320467274178 - 2 * std::log(-z);
}

class gp final : public sampler {
public:
  gp(gp_settings s, std::shared_ptr<const space> domain)
      : s_(s), domain_(std::move(domain)), history_(domain_->size()) {
    tpe_settings t;
    t.seed = s.seed;
    t.startup_trials = s.startup_trials;
    fallback_ = make_tpe(t, domain_);
    for (const auto& d : domain_->dimensions())
      categorical_.push_back(d.categorical());
    fitted_.reset(domain_->size());
  }

  point propose(ordinal fresh) override {
    auto p = domain_->sample(s_.seed, sample_stream, fresh);
    if (finished_.size() >= static_cast<std::size_t>(std::max<std::int64_t>(2, s_.startup_trials)) &&
        domain_->size() > 0)
      improve(fresh, p);
    return p;
  }

  void started(ordinal fresh, const point& p) override {
    history_.add(fresh, p);
    running_.push_back(fresh);
    fallback_->started(fresh, p);
  }

  void observe(const report& r) override {
    history_.observe(r);
    fallback_->observe(r);
  }

  void left(ordinal trial, ending how) override {
    history_.settle(trial, how);
    std::erase(running_, trial);
    finished_.push_back(trial);
    fallback_->left(trial, how);
  }

  void persist(archive& ar) override {
    history_.persist(ar);
    fallback_->persist(ar);
    ar(finished_, running_, fitted_.log_weights, fitted_.log_scale, fitted_.log_noise, fitted_at_);
    bool fits = fitted_.log_weights.size() == domain_->size();
    for (auto t : finished_)
      fits = fits && t < history_.size();
    for (auto t : running_)
      fits = fits && t < history_.size();
    if (!fits)
      ar.fail();
  }

private:
  vec row(ordinal trial) const {
    return Eigen::Map<const vec>(history_.at(trial), static_cast<Eigen::Index>(domain_->size()));
  }

  /// Trials, best first. A failed trial has no result and counts as the worst.
  std::vector<ordinal> by_worth() const {
    auto sorted = finished_;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [this](ordinal a, ordinal b) { return history_.worth(a) < history_.worth(b); });
    return sorted;
  }

  std::vector<ordinal> kept(const std::vector<ordinal>& sorted) const {
    if (sorted.size() <= most_points)
      return sorted;
    std::vector<ordinal> keep(sorted.begin(), sorted.begin() + most_points / 2);
    keep.insert(keep.end(), finished_.end() - most_points / 4, finished_.end());
    for (std::size_t i = most_points / 2; i < sorted.size(); i += 1 + sorted.size() / (most_points / 4))
      keep.push_back(sorted[i]);
    std::sort(keep.begin(), keep.end());
    keep.erase(std::unique(keep.begin(), keep.end()), keep.end());
    std::stable_sort(keep.begin(), keep.end(),
                     [this](ordinal a, ordinal b) { return history_.worth(a) < history_.worth(b); });
    return keep;
  }

  void improve(ordinal fresh, point& p) {
    auto data = kept(by_worth());
    double worst = -std::numeric_limits<double>::infinity();
    for (auto t : data)
      if (std::isfinite(history_.worth(t)))
        worst = std::max(worst, history_.worth(t));
    if (!std::isfinite(worst))
      return; // nothing has a result yet
    auto n = static_cast<Eigen::Index>(data.size());
    matrix x(n, static_cast<Eigen::Index>(domain_->size()));
    vec y(n);
    for (Eigen::Index i = 0; i < n; ++i) {
      auto t = data[static_cast<std::size_t>(i)];
      x.row(i) = row(t).transpose();
      y[i] = std::isfinite(history_.worth(t)) ? history_.worth(t) : worst;
    }
    y = warped(y);
    gaussian_process model(x, y, categorical_);
    auto count = finished_.size();
    if (fitted_at_ == 0 || count >= fitted_at_ + (count <= few_results ? 1 : count / 20)) {
      fitted_ = model.fit(fitted_, fitted_at_ == 0 ? 60 : 25);
      fitted_at_ = count;
    }
    if (!model.use(fitted_)) {
      fitted_.reset(domain_->size());
      if (!model.use(fitted_))
        return;
    }
    if (correlation(model.left_out(), y) < least_correlation) {
      p = fallback_->propose(fresh);
      return;
    }
    auto believed = running_.size() > 64 ? running_.end() - 64 : running_.begin();
    for (auto it = believed; it != running_.end(); ++it)
      model.believe(row(*it));
    p = best_point(model, y.minCoeff(), data, fresh);
  }

  static double correlation(const vec& a, const vec& b) {
    vec u = a.array() - a.mean(), v = b.array() - b.mean();
    double norms = u.norm() * v.norm();
    return norms > 1e-12 ? u.dot(v) / norms : 0;
  }

  double value(const gaussian_process& model, double best, const vec& at) const {
    auto [mean, deviation] = model.at(at);
    double slope = 0;
    return log_improvement((best - mean) / deviation, slope) + std::log(deviation);
  }

  point best_point(const gaussian_process& model, double best, const std::vector<ordinal>& data,
                   ordinal fresh) const {
    rng random(random_bits(s_.seed, model_stream, fresh));
    auto d = static_cast<Eigen::Index>(domain_->size());
    auto rows = candidates(data, random);
    vec mean, deviation;
    model.at(rows, mean, deviation);
    std::vector<std::pair<double, Eigen::Index>> ranked;
    for (Eigen::Index i = 0; i < rows.rows(); ++i) {
      double slope = 0;
      ranked.push_back(
        {-(log_improvement((best - mean[i]) / deviation[i], slope) + std::log(deviation[i])), i});
    }
    std::sort(ranked.begin(), ranked.end());
    // Takes the best start, and draws others by their improvement without repeats (Gumbel noise on its
    // logarithm): the best few alone would all lie on one hill.
    for (std::size_t i = 1; i < ranked.size(); ++i)
      ranked[i].first += std::log(-std::log(1 - random.unit()));
    std::sort(ranked.begin() + 1, ranked.end());
    const std::size_t starts = data.size() <= few_results ? 8 : 4;
    vec chosen = rows.row(ranked[0].second).transpose();
    double chosen_value = -std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < starts && k < ranked.size(); ++k) {
      vec at = refined(model, best, rows.row(ranked[k].second).transpose());
      double v = value(model, best, at);
      if (v > chosen_value && !seen(at, data)) {
        chosen_value = v;
        chosen = at;
      }
    }
    point p(static_cast<std::size_t>(d));
    for (Eigen::Index j = 0; j < d; ++j)
      p[static_cast<std::size_t>(j)] = domain_->dimensions()[static_cast<std::size_t>(j)].settle(chosen[j]);
    return p;
  }

  bool seen(const vec& at, const std::vector<ordinal>& data) const {
    auto same = [&](ordinal t) { return row(t) == at; };
    return std::any_of(data.begin(), data.end(), same) || std::any_of(running_.begin(), running_.end(), same);
  }

  /// Half of the candidates lie anywhere, half around the best trials: a few dimensions are moved, near or
  /// far.
  matrix candidates(const std::vector<ordinal>& data, rng& random) const {
    const auto& dimensions = domain_->dimensions();
    auto d = dimensions.size();
    matrix rows(data.size() <= few_results ? s_.candidates : (s_.candidates + 2) / 3,
                static_cast<Eigen::Index>(d));
    for (Eigen::Index i = 0; i < rows.rows(); ++i) {
      bool local = i % 2 == 1;
      auto centre = data[random.below(std::min<std::size_t>(data.size(), 5))];
      double reach = std::pow(10.0, -0.5 - 2.5 * random.unit());
      double share = std::min(1.0, 3.0 / static_cast<double>(d));
      for (std::size_t j = 0; j < d; ++j) {
        auto bits = random();
        double gauss = std::sqrt(-2 * std::log(1 - random.unit())) * std::cos(2 * M_PI * random.unit());
        double x = domain_->sample_dimension(j, bits);
        if (local && random.unit() >= share)
          x = history_.at(centre)[j];
        else if (local && !dimensions[j].categorical())
          x = dimensions[j].settle(std::clamp(history_.at(centre)[j] + reach * gauss, 0.0, 1.0));
        rows(i, static_cast<Eigen::Index>(j)) = x;
      }
    }
    return rows;
  }

  /// Makes gradient steps on the real numbers, then tries each discrete dimension; twice.
  vec refined(const gaussian_process& model, double best, vec at) const {
    const auto& dimensions = domain_->dimensions();
    auto d = at.size();
    for (int sweep = 0; sweep < 2; ++sweep) {
      box bounds{vec::Zero(d), vec::Ones(d)};
      bool smooth = false;
      for (Eigen::Index j = 0; j < d; ++j) {
        if (dimensions[static_cast<std::size_t>(j)].values() > 0)
          bounds.low[j] = bounds.high[j] = at[j];
        else
          smooth = true;
      }
      if (smooth)
        at = minimise(
          [&](const vec& v, vec& g) {
            vec dm, ds;
            auto [mean, deviation] = model.at(v, dm, ds);
            double slope = 0, z = (best - mean) / deviation;
            double h = log_improvement(z, slope) + std::log(deviation);
            g = -(slope * (-dm / deviation - (z / deviation) * ds) + ds / deviation);
            return -h;
          },
          at, 20, 1e-3, &bounds);
      bool changed = false;
      for (Eigen::Index j = 0; j < d; ++j) {
        const auto& dim = dimensions[static_cast<std::size_t>(j)];
        auto n = dim.values();
        if (n == 0)
          continue;
        double now = value(model, best, at);
        auto tries = std::min<std::uint64_t>(n, 16);
        vec other = at;
        for (std::uint64_t k = 0; k < tries; ++k) {
          double share = (static_cast<double>(k) + 0.5) / static_cast<double>(tries);
          // A long integer dimension tries both neighbours first, then an even spread.
          double x = dim.categorical()    ? static_cast<double>(k)
                     : n > tries && k < 2 ? dim.settle(at[j] + (k == 0 ? 1 : -1) / static_cast<double>(n))
                                          : dim.settle(share);
          if (x == at[j])
            continue;
          other[j] = x;
          if (double v = value(model, best, other); v > now + 1e-12) {
            now = v;
            at[j] = x;
            changed = true;
          }
        }
      }
      if (!changed)
        break;
    }
    return at;
  }

  gp_settings s_;
  std::shared_ptr<const space> domain_;
  trial_history history_;
  std::vector<char> categorical_;
  std::vector<ordinal> finished_, running_; ///< in the order of their ends, and of their starts
  std::unique_ptr<sampler> fallback_;       ///< asked while the model predicts nothing
  kernel_parameters fitted_;
  std::uint64_t fitted_at_ = 0; ///< number of finished trials when the parameters were fitted; 0: never
};

} // namespace

gp_settings read_gp(section& in, const settings& common) {
  gp_settings s;
  s.seed = common.seed;
  s.startup_trials = in.integer("startup_trials", s.startup_trials, 0);
  s.candidates = in.integer("candidates", s.candidates, 8, 100'000);
  return s;
}

std::unique_ptr<sampler> make_gp(gp_settings s, std::shared_ptr<const space> domain) {
  return std::make_unique<gp>(s, std::move(domain));
}

} // namespace troupe::searchers
