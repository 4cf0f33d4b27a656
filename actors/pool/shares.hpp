#pragma once
// Weighted max-min shares of a pool's slots, in whole slots. Pure arithmetic.

#include <cstdint>
#include <vector>

namespace troupe {

struct share_demand {
  double weight = 1;
  int demand = 0; ///< slots it could use
  int held = 0;
  friend bool operator==(const share_demand&, const share_demand&) = default;
};

struct share_split {
  std::vector<int> shares; ///< in the order of the demands
  double level = 0;        ///< slots for a weight of 1, of those who demand more; infinite where nobody does
  bool even = true;        ///< what is held did not matter: no slots remained after rounding
};

/// The slots that each may hold, in the order given, which is that of age: it breaks ties, after holding.
/// Filled progressively: nobody gets more than it demands, and who demands more than the others get has as
/// much of what is left as its weight says. Rounded down; the slots that remain go to the largest remainders,
/// of equals first to who holds more than it would get without, then to the older. Weight 0 gets none.
share_split fair_shares(const std::vector<share_demand>& of, int slots);

/// Whether `split` may be another one after the demand at `index` has changed from `was` to `is`. True where
/// this is not certain.
bool changes(const share_split& split, std::size_t index, const share_demand& was, const share_demand& is);

} // namespace troupe
