#pragma once
// What a model-based sampler remembers of the trials: their points and their results.

#include "searchers/sampler.hpp"

#include <cmath>
#include <limits>

namespace troupe::searchers {

enum class trial_fate : std::uint8_t { running, complete, pruned, failed };

class trial_history {
public:
  explicit trial_history(std::size_t dimensions) : dimensions_(dimensions) {}

  std::size_t size() const { return results_.size(); }
  const double* at(ordinal trial) const { return coordinates_.data() + trial * dimensions_; }
  double worth(ordinal trial) const {
    return results_[trial].worth;
  } ///< the best so far; +infinity where there is none
  double step(ordinal trial) const { return results_[trial].step; }
  trial_fate fate(ordinal trial) const { return results_[trial].fate; }

  void add(ordinal trial, const point& p) {
    // A trial that another sampler proposed in between keeps its place, as unknown.
    results_.resize(trial + 1u);
    coordinates_.resize(results_.size() * dimensions_);
    std::copy(p.begin(), p.end(), coordinates_.begin() + static_cast<std::ptrdiff_t>(trial * dimensions_));
  }
  void observe(const report& r) {
    auto& x = results_[r.trial];
    x.worth = std::min(x.worth, r.worth);
    if (!std::isnan(r.step))
      x.step = r.step;
  }
  void settle(ordinal trial, ending how) {
    auto& x = results_[trial];
    bool known = std::isfinite(x.worth);
    bool cut = how == ending::stopped || how == ending::requested || how == ending::canceled;
    bool failed = how == ending::errored || how == ending::invalid || !known;
    x.fate = failed ? trial_fate::failed : cut ? trial_fate::pruned : trial_fate::complete;
  }
  void persist(archive& ar) {
    ar(results_, coordinates_);
    if (coordinates_.size() != results_.size() * dimensions_)
      ar.fail();
  }

private:
  struct result {
    double worth = std::numeric_limits<double>::infinity();
    double step = 0;
    trial_fate fate = trial_fate::running;
    std::uint8_t spare[7] = {};
  };
  std::size_t dimensions_;
  std::vector<result> results_;
  std::vector<double> coordinates_;
};

} // namespace troupe::searchers
