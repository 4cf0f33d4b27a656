#pragma once
// Where a new trial's hyperparameters come from. Any sampler goes with any method, which says how long trials
// run.

#include "searchers/method.hpp"
#include "searchers/space.hpp"

#include <memory>

namespace troupe::searchers {

/// Random streams of a search: each consumer of counter-based numbers has its own.
enum stream : std::uint64_t { sample_stream = 1, seed_stream = 2, model_stream = 3, explore_stream = 4 };

class sampler {
public:
  virtual ~sampler() = default;
  /// Proposes a point for trial `fresh`.
  virtual point propose(ordinal fresh) = 0;
  /// Says that trial `fresh` starts at `p`, whoever proposed it; called once for each trial, in order.
  virtual void started(ordinal, const point&) {}
  point begin(ordinal fresh) {
    auto p = propose(fresh);
    started(fresh, p);
    return p;
  }
  virtual void observe(const report&) {}
  virtual void left(ordinal, ending) {}
  /// Whether points depend on nothing that other trials report.
  virtual bool independent() const { return false; }
  virtual void persist(archive&) {}
};

std::unique_ptr<sampler> make_uniform(std::shared_ptr<const space> domain, std::uint64_t seed);

/// Every trial runs to its own end; only budget and slots limit the search.
std::unique_ptr<method> make_plain(std::shared_ptr<const space> domain, std::unique_ptr<sampler> source);

/// Runs the points of the grid in order, and holds none of them in memory.
std::unique_ptr<method> make_grid(std::shared_ptr<const space> domain);

} // namespace troupe::searchers
