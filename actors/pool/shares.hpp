#pragma once
// Weighted max-min shares of a pool's slots, in whole slots. Pure arithmetic.

#include <cstdint>
#include <vector>

namespace troupe {

struct share_demand {
  double weight = 1;
  int demand = 0; ///< slots it could use
  int held = 0;
};

/// The slots that each may hold, in the order given, which is that of age: it breaks ties, after holding.
/// Filled progressively: nobody gets more than it demands, and who demands more than the others get has as
/// much of what is left as its weight says. Rounded down; the slots that remain go to the largest remainders,
/// of equals first to who holds more than it would get without, then to the older. Weight 0 gets none.
std::vector<int> fair_shares(const std::vector<share_demand>& of, int slots);

} // namespace troupe
