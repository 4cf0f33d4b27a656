#include "searchers/tpe.hpp"

#include "searchers/history.hpp"
#include "searchers/parzen.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::searchers {
namespace {

constexpr std::size_t most_points =
  256; ///< limit of the points in one density; above it older trials are thinned out
constexpr std::size_t newest = 25; ///< trials that are always kept, at full weight
constexpr std::size_t most_good = 25;

class tpe final : public sampler {
public:
  tpe(tpe_settings s, std::shared_ptr<const space> domain)
      : s_(s), domain_(std::move(domain)), history_(domain_->size()) {}

  point propose(ordinal fresh) override {
    if (finished_.size() < static_cast<std::size_t>(s_.startup_trials) || domain_->size() == 0)
      return domain_->sample(s_.seed, sample_stream, fresh);
    return best_of_candidates(fresh);
  }

  void started(ordinal fresh, const point& p) override {
    history_.add(fresh, p);
    running_.push_back(fresh);
  }

  void observe(const report& r) override { history_.observe(r); }

  void left(ordinal trial, ending how) override {
    history_.settle(trial, how);
    std::erase(running_, trial);
    auto place = std::upper_bound(finished_.begin(), finished_.end(), trial,
                                  [this](ordinal a, ordinal b) { return better(a, b); });
    finished_.insert(place, trial);
  }

  void persist(archive& ar) override {
    history_.persist(ar);
    ar(finished_, running_);
    for (auto t : finished_)
      if (t >= history_.size())
        return ar.fail();
    for (auto t : running_)
      if (t >= history_.size())
        return ar.fail();
  }

private:
  /// Orders complete trials by value, then stopped trials by how far they got, then failed trials.
  bool better(ordinal a, ordinal b) const {
    auto fate_a = history_.fate(a), fate_b = history_.fate(b);
    if (fate_a != fate_b)
      return fate_a < fate_b;
    if (fate_a == trial_fate::pruned && history_.step(a) != history_.step(b))
      return history_.step(a) > history_.step(b);
    if (history_.worth(a) != history_.worth(b))
      return history_.worth(a) < history_.worth(b);
    return a < b;
  }

  /// Older trials count less, down to 1/n. Of many trials the newest are taken, and every k-th older one,
  /// which counts for k.
  parzen density(std::vector<ordinal> trials, const std::vector<dimension>& dimensions,
                 std::size_t offset = 0) const {
    std::sort(trials.begin(), trials.end());
    std::vector<const double*> points;
    std::vector<double> weights;
    auto n = trials.size();
    auto older = n > newest ? n - newest : 0;
    auto stride = n > most_points ? (older + most_points - newest - 1) / (most_points - newest) : 1;
    for (std::size_t i = 0; i < n; ++i) {
      if (i < older && i % stride != 0)
        continue;
      points.push_back(history_.at(trials[i]) + offset);
      double ramp = older <= 1 ? 1.0 / static_cast<double>(n)
                               : 1.0 / static_cast<double>(n) + (1 - 1.0 / static_cast<double>(n)) *
                                                                  static_cast<double>(i) /
                                                                  static_cast<double>(older - 1);
      weights.push_back(i < older ? ramp * static_cast<double>(std::min(stride, older - i)) : 1.0);
    }
    return {dimensions, points, std::move(weights), shape_};
  }

  /// `best` is in order; the better half shares the weight, by the logarithm of the rank.
  parzen good_density(const std::vector<ordinal>& best, const std::vector<dimension>& dimensions,
                      std::size_t offset = 0) const {
    std::vector<const double*> points;
    std::vector<double> weights;
    double sum = 0, n = static_cast<double>(best.size());
    for (std::size_t i = 0; i < best.size(); ++i) {
      points.push_back(history_.at(best[i]) + offset);
      weights.push_back(std::max(0.01, std::log(n / 2 + 1) - std::log(static_cast<double>(i) + 1)));
      sum += weights.back();
    }
    for (auto& w : weights)
      w *= n / sum;
    return {dimensions, points, std::move(weights), shape_};
  }

  point best_of_candidates(ordinal fresh) const {
    auto n = finished_.size();
    auto good =
      std::min({static_cast<std::size_t>(std::ceil(s_.gamma * static_cast<double>(n))), most_good, n});
    std::vector<ordinal> below(finished_.begin(), finished_.begin() + static_cast<std::ptrdiff_t>(good));
    std::vector<ordinal> above(finished_.begin() + static_cast<std::ptrdiff_t>(good), finished_.end());
    if (s_.constant_liar)
      above.insert(above.end(), running_.begin(), running_.end());
    rng random(random_bits(s_.seed, model_stream, fresh));
    if (s_.multivariate)
      return choose(good_density(below, domain_->dimensions()), density(above, domain_->dimensions()),
                    domain_->size(), random);
    point p;
    for (std::size_t j = 0; j < domain_->size(); ++j) {
      std::vector<dimension> one{domain_->dimensions()[j]};
      p.push_back(choose(good_density(below, one, j), density(above, one, j), 1, random)[0]);
    }
    return p;
  }

  point choose(const parzen& good, const parzen& others, std::size_t d, rng& random) const {
    std::vector<double> candidates(static_cast<std::size_t>(s_.candidates) * d);
    for (std::size_t at = 0; at < candidates.size(); at += d)
      good.sample(random, s_.moved, &candidates[at]);
    auto l = good.log_density(candidates), g = others.log_density(candidates);
    std::size_t best = 0;
    for (std::size_t i = 1; i < l.size(); ++i)
      if (l[i] - g[i] > l[best] - g[best])
        best = i;
    auto first = candidates.begin() + static_cast<std::ptrdiff_t>(best * d);
    return point(first, first + static_cast<std::ptrdiff_t>(d));
  }

  tpe_settings s_;
  parzen_shape shape_;
  std::shared_ptr<const space> domain_;
  trial_history history_;
  std::vector<ordinal> finished_; ///< best first
  std::vector<ordinal> running_;
};

} // namespace

tpe_settings read_tpe(section& in, const settings& common) {
  tpe_settings s;
  s.seed = common.seed;
  s.startup_trials = in.integer("startup_trials", s.startup_trials, 0);
  s.candidates = in.integer("candidates", s.candidates, 1, 100'000);
  s.gamma = in.number("gamma", s.gamma, 1e-6, 1);
  s.moved = in.number("moved_dimensions", s.moved, 1e-3);
  s.multivariate = in.flag("multivariate", s.multivariate);
  s.constant_liar = in.flag("constant_liar", s.constant_liar);
  return s;
}

std::unique_ptr<sampler> make_tpe(tpe_settings s, std::shared_ptr<const space> domain) {
  return std::make_unique<tpe>(s, std::move(domain));
}

} // namespace troupe::searchers
