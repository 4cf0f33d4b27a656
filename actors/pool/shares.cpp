#include "actors/pool/shares.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe {

share_split fair_shares(const std::vector<share_demand>& of, int slots) {
  share_split split;
  auto& share = split.shares;
  share.resize(of.size(), 0);
  std::vector<std::size_t> open;
  double weight = 0;
  for (std::size_t i = 0; i < of.size(); ++i)
    if (of[i].weight > 0 && of[i].demand > 0) {
      open.push_back(i);
      weight += of[i].weight;
    }
  // A job whose part satisfies it leaves the rest to the others. This is repeated until no more job is
  // satisfied.
  int left = std::max(0, slots);
  for (bool again = true; again && !open.empty();) {
    const double level = split.level = left / weight;
    int satisfied = 0;
    double theirs = 0;
    const auto before = open.size();
    std::erase_if(open, [&](std::size_t i) {
      const auto& x = of[i];
      if (x.demand > level * x.weight + 1e-9)
        return false;
      share[i] = x.demand;
      satisfied += x.demand;
      theirs += x.weight;
      return true;
    });
    left -= satisfied;
    weight -= theirs;
    again = open.size() < before;
  }
  if (open.empty()) {
    split.level = std::numeric_limits<double>::infinity();
    return split;
  }
  struct rest {
    std::size_t index;
    double remainder;
    bool holds;
  };
  std::vector<rest> rests;
  rests.reserve(open.size());
  int given = 0, whole = 0;
  double remainder = 0;
  for (std::size_t n = 0; n < open.size(); ++n) {
    const auto i = open[n];
    if (n == 0 || of[i].weight != of[open[n - 1]].weight) { // most jobs have the same weight
      const double exact = left * of[i].weight / weight;
      whole = static_cast<int>(std::floor(exact + 1e-9));
      // Remainders that differ by less than the rounding of arithmetic are equal.
      remainder = std::max(0.0, std::round((exact - whole) * 1e8));
    }
    share[i] = whole;
    given += whole;
    rests.push_back({i, remainder, of[i].held > whole});
  }
  split.even = given >= left;
  const auto first = [](const rest& a, const rest& b) {
    if (a.remainder != b.remainder)
      return a.remainder > b.remainder;
    return a.holds != b.holds ? a.holds : a.index < b.index;
  };
  if (const auto count = left - given; count > 0 && count < static_cast<int>(rests.size())) {
    std::nth_element(rests.begin(), rests.begin() + count, rests.end(), first);
    rests.resize(static_cast<std::size_t>(count));
  }
  for (const auto& r : rests)
    if (given < left && share[r.index] < of[r.index].demand) {
      ++share[r.index];
      ++given;
    }
  return split;
}

bool changes(const share_split& split, std::size_t index, const share_demand& was, const share_demand& is) {
  if (was == is || (was.weight <= 0 && is.weight <= 0))
    return false;
  if (was.weight != is.weight)
    return true;
  const double part = split.level * is.weight;
  if (was.demand == is.demand && is.demand <= part)
    return false;                 // the job has what it demands
  constexpr double margin = 1e-6; // larger than any error of arithmetic
  if (was.demand <= part + margin || is.demand <= part + margin)
    return true;
  // A job that demands more than its part has that part and maybe one of the slots that remain after
  // rounding, which depends on what the job holds.
  const int share = split.shares[index];
  return !split.even && was.held != is.held && std::max(was.held, is.held) >= share &&
         std::min(was.held, is.held) <= share;
}

} // namespace troupe
