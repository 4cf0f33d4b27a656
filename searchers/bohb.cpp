#include "searchers/bohb.hpp"

#include "searchers/history.hpp"

#include "model/rng.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::searchers {
namespace {

constexpr double least_width = 1e-3;
constexpr std::size_t most_points = 1024; ///< of each density: the best of the good, the first of the others

struct budget_results {
  std::vector<double> worth;
  std::vector<ordinal> trials; ///< sorted by worth, then by arrival
  void persist(archive& ar) { ar(worth, trials); }
};

/// The kernel densities of HpBandSter: normal-reference widths, and Aitchison-Aitken on categoricals.
class kernel_density {
public:
  kernel_density(const std::vector<dimension>& dimensions, std::vector<const double*> points)
      : dimensions_(dimensions), points_(std::move(points)) {
    auto m = static_cast<double>(points_.size());
    for (std::size_t j = 0; j < dimensions_.size(); ++j) {
      double mean = 0, square = 0;
      for (auto* p : points_)
        mean += p[j] / m;
      for (auto* p : points_)
        square += (p[j] - mean) * (p[j] - mean);
      double deviation = std::sqrt(square / std::max(1.0, m - 1));
      double width = 1.06 * deviation * std::pow(m, -1 / (4 + static_cast<double>(dimensions_.size())));
      double most =
        dimensions_[j].categorical() ? 1 - 1 / static_cast<double>(dimensions_[j].choices.size()) : 1e9;
      width_.push_back(std::clamp(width, std::min(least_width, most), most));
    }
  }
  double operator()(const double* x) const {
    double sum = 0;
    for (auto* p : points_) {
      double product = 1;
      for (std::size_t j = 0; j < dimensions_.size(); ++j)
        product *= kernel(j, x[j], p[j]);
      sum += product;
    }
    return sum / static_cast<double>(points_.size());
  }
  const double* pick(std::uint64_t bits) const { return points_[bits % points_.size()]; }
  double width(std::size_t j) const { return width_[j]; }

private:
  double kernel(std::size_t j, double x, double at) const {
    if (dimensions_[j].categorical()) {
      auto c = static_cast<double>(dimensions_[j].choices.size());
      return x == at ? 1 - width_[j] : width_[j] / std::max(1.0, c - 1);
    }
    double z = (x - at) / width_[j];
    return std::exp(-0.5 * z * z) / (width_[j] * std::sqrt(2 * M_PI));
  }
  const std::vector<dimension>& dimensions_;
  std::vector<const double*> points_;
  std::vector<double> width_;
};

class bohb final : public sampler {
public:
  bohb(bohb_settings s, std::vector<std::int64_t> budgets, std::shared_ptr<const space> domain)
      : s_(s), budgets_(std::move(budgets)), domain_(std::move(domain)), history_(domain_->size()),
        results_(budgets_.size()) {}

  point propose(ordinal fresh) override {
    auto p = domain_->sample(s_.seed, sample_stream, fresh);
    rng random(random_bits(s_.seed, model_stream, fresh));
    bool at_random = random.unit() < s_.random_fraction;
    if (!at_random && domain_->size() > 0)
      for (std::size_t b = budgets_.size(); b-- > 0;)
        if (enough(results_[b])) {
          propose_from(results_[b], random, p);
          break;
        }
    return p;
  }

  void started(ordinal fresh, const point& p) override {
    history_.add(fresh, p);
    reached_.push_back(0);
  }

  void observe(const report& r) override {
    history_.observe(r);
    for (auto& b = reached_[r.trial]; b < budgets_.size() && r.step >= static_cast<double>(budgets_[b]); ++b)
      insert(results_[b], r.worth, r.trial);
  }

  void left(ordinal trial, ending how) override {
    history_.settle(trial, how);
    // A crash counts as the worst result at the length that the trial was on its way to.
    if ((how == ending::errored || how == ending::invalid) && reached_[trial] < budgets_.size())
      insert(results_[reached_[trial]++], std::numeric_limits<double>::infinity(), trial);
  }

  void persist(archive& ar) override {
    history_.persist(ar);
    ar(results_, reached_);
    bool fits = results_.size() == budgets_.size() && reached_.size() == history_.size();
    for (const auto& r : results_)
      for (auto t : r.trials)
        fits = fits && t < history_.size();
    if (!fits)
      ar.fail();
  }

private:
  std::size_t least_points() const {
    return std::max<std::size_t>(domain_->size() + 1, static_cast<std::size_t>(s_.startup_trials));
  }
  /// Whether both densities get more points than there are dimensions.
  bool enough(const budget_results& r) const { return r.trials.size() >= least_points() + 2; }

  static void insert(budget_results& r, double worth, ordinal trial) {
    auto at = std::upper_bound(r.worth.begin(), r.worth.end(), worth) - r.worth.begin();
    r.worth.insert(r.worth.begin() + at, worth);
    r.trials.insert(r.trials.begin() + at, trial);
  }

  void propose_from(const budget_results& r, rng& random, point& p) const {
    auto n = r.trials.size(), least = domain_->size() + 1;
    auto good = std::min(
      {std::max(least, static_cast<std::size_t>(0.15 * static_cast<double>(n))), most_points, n - 1});
    auto bad = std::min(
      {std::max(least, static_cast<std::size_t>(0.85 * static_cast<double>(n))), most_points, n - good});
    auto points = [&](std::size_t from, std::size_t count) {
      std::vector<const double*> list;
      for (std::size_t i = from; i < from + count; ++i)
        list.push_back(history_.at(r.trials[i]));
      return list;
    };
    const auto& dimensions = domain_->dimensions();
    kernel_density l(dimensions, points(0, good)), g(dimensions, points(good, bad));
    double best = std::numeric_limits<double>::infinity();
    point x(dimensions.size());
    for (std::int64_t k = 0; k < s_.candidates; ++k) {
      const double* from = l.pick(random());
      for (std::size_t j = 0; j < x.size(); ++j)
        x[j] = near(j, from[j], l.width(j), random);
      double ratio = std::max(g(x.data()), 1e-32) / std::max(l(x.data()), 1e-32);
      if (ratio < best) {
        best = ratio;
        p = x;
      }
    }
  }

  double near(std::size_t j, double from, double width, rng& random) const {
    const auto& d = domain_->dimensions()[j];
    if (d.categorical())
      return random.unit() < 1 - width ? from : domain_->sample_dimension(j, random());
    for (int i = 0; i < 100; ++i) { // draws from a normal distribution that is cut to [0, 1]
      double z = std::sqrt(-2 * std::log(1 - random.unit())) * std::cos(2 * M_PI * random.unit());
      double x = from + s_.bandwidth_factor * width * z;
      if (x >= 0 && x <= 1)
        return d.settle(x);
    }
    return from;
  }

  bohb_settings s_;
  std::vector<std::int64_t> budgets_;
  std::shared_ptr<const space> domain_;
  trial_history history_;
  std::vector<budget_results> results_;
  std::vector<std::uint8_t> reached_; ///< by trial: number of its next budget
};

} // namespace

bohb_settings read_bohb(section& in, const settings& common) {
  bohb_settings s;
  s.seed = common.seed;
  s.startup_trials = in.integer("startup_trials", 0, 0);
  s.candidates = in.integer("candidates", 64, 1, 100'000);
  s.random_fraction = in.number("random_fraction", s.random_fraction, 0, 1);
  s.bandwidth_factor = in.number("bandwidth_factor", s.bandwidth_factor, 1e-3);
  return s;
}

std::unique_ptr<sampler> make_bohb(bohb_settings s, std::vector<std::int64_t> budgets,
                                   std::shared_ptr<const space> domain) {
  return std::make_unique<bohb>(s, std::move(budgets), std::move(domain));
}

} // namespace troupe::searchers
