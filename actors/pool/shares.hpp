#pragma once
// Weighted max-min shares of a pool's slots, in whole slots. Pure arithmetic.

#include <array>
#include <cstdint>
#include <vector>

namespace troupe {

struct share_demand {
  double weight = 1;
  int demand = 0; ///< number of slots that the job could use
  int held = 0;
  std::array<int, 2> groups{-1, -1}; ///< indexes of the caps that the job shares with others; -1: none
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
/// `caps`: the most slots that the jobs of each group get together, shared among them in the same way
/// (progressive filling: the shares of all jobs grow until a demand is met or a cap is reached).
share_split fair_shares(const std::vector<share_demand>& of, int slots, const std::vector<int>& caps = {});

/// Whether `split` may change when the demand at `index` changes from `was` to `is`. True where this is not
/// certain.
bool changes(const share_split& split, std::size_t index, const share_demand& was, const share_demand& is);

} // namespace troupe
