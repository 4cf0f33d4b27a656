#pragma once
// Where a new trial's hyperparameters come from. A method (how long trials run) is combined with any sampler.

#include "searchers/method.hpp"
#include "searchers/space.hpp"

#include <memory>

namespace troupe::searchers {

/// Random streams of a search: each consumer of counter-based numbers has its own.
enum stream : std::uint64_t { sample_stream = 1, seed_stream = 2, model_stream = 3, explore_stream = 4 };

class sampler {
public:
  virtual ~sampler() = default;
  /// A point for trial `fresh`.
  virtual point propose(ordinal fresh) = 0;
  /// Trial `fresh` starts at `p`, whoever proposed it; once per trial, in order.
  virtual void started(ordinal, const point&) {}
  point begin(ordinal fresh) {
    auto p = propose(fresh);
    started(fresh, p);
    return p;
  }
  virtual void observe(const report&) {}
  virtual void left(ordinal, ending) {}
  /// Whether a point depends on nothing that other trials report.
  virtual bool independent() const { return false; }
  virtual void persist(archive&) {}
};

std::unique_ptr<sampler> make_uniform(std::shared_ptr<const space> domain, std::uint64_t seed);

/// Every trial runs to its own end; budget and slots are all there is to it.
std::unique_ptr<method> make_plain(std::shared_ptr<const space> domain, std::unique_ptr<sampler> source);

/// The points of the grid in order, none of them held in memory.
std::unique_ptr<method> make_grid(std::shared_ptr<const space> domain);

} // namespace troupe::searchers
