#pragma once
// Weighted max-min shares of a pool's slots, in whole slots. Pure arithmetic.

#include <cstdint>
#include <vector>

namespace troupe {

struct share_demand {
  double weight = 1;
  int demand = 0; ///< number of slots that the job could use
  int held = 0;
  friend bool operator==(const share_demand&, const share_demand&) = default;
};

struct share_split {
  std::vector<int> shares; ///< slots of each job, in the order of the demands
  double level = 0;        ///< slots for a weight of 1, for jobs that demand more; infinite where no job does
  bool even = true;        ///< no slots remained after rounding, so it did not matter what jobs hold
};

/// The number of slots that each job may hold. The demands are given in the order of age. No job gets more
/// than it demands; what is left is shared among the jobs that demand more, in proportion to their weights.
/// Shares are rounded down, and the slots that remain go to the largest remainders. Of equal remainders, a
/// job that holds more than its rounded share comes first, and then the older job. Weight 0 gets no slots.
share_split fair_shares(const std::vector<share_demand>& of, int slots);

/// Whether `split` may change when the demand at `index` changes from `was` to `is`. True where this is not
/// certain.
bool changes(const share_split& split, std::size_t index, const share_demand& was, const share_demand& is);

} // namespace troupe
