#pragma once
// The searchers of Determined 0.38 with its rules, order and omissions: a report after a stop decides again,
// and a trial that exits before a rung is not replaced. Native mode does not do so.

#include "searchers/archive.hpp"
#include "searchers/halving.hpp"
#include "searchers/method.hpp"

#include <memory>
#include <optional>

namespace troupe::searchers {

/// What a compat method may order during an event. Every `create` draws from the shared random stream at
/// once.
class compat_orders {
public:
  virtual ~compat_orders() = default;
  virtual ordinal create() = 0;                    ///< creates a trial from a random sample
  virtual ordinal create_point(std::uint64_t) = 0; ///< creates a trial from a point of the grid
  virtual void stop(ordinal trial, stop_trial reason) = 0;
};

struct compat_tally {
  double reported = 0; ///< sum over the known trials; each that closed adds 1
  std::uint64_t known = 0;
};

class compat_method {
public:
  virtual ~compat_method() = default;
  virtual void start(compat_orders& out) = 0;
  virtual void reported(const report&, compat_orders&) {}
  virtual void exited_early(ordinal trial, bool invalid, compat_orders& out) = 0;
  virtual void exited(ordinal trial, compat_orders& out) = 0;
  virtual double progress(const compat_tally& tally) const = 0;
  virtual std::vector<bracket> brackets() const { return {}; }
  virtual void persist(archive& ar) = 0;
};

struct compat_random_plan {
  std::uint64_t max_trials = 1, max_concurrent = 16;
  bool replaces_invalid = true;
  bool over_grid = false; ///< whether it hands out the points of the grid, from its end
};
std::unique_ptr<compat_method> make_compat_random(compat_random_plan plan);
/// One bracket makes `async_halving`, several make the tournament of `adaptive_asha`.
std::unique_ptr<compat_method> make_compat_halving(halving_plan plan);

} // namespace troupe::searchers
