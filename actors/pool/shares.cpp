#include "actors/pool/shares.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe {

std::vector<int> fair_shares(const std::vector<share_demand>& of, int slots) {
  std::vector<int> share(of.size(), 0);
  std::vector<std::size_t> open;
  double weight = 0;
  for (std::size_t i = 0; i < of.size(); ++i)
    if (of[i].weight > 0 && of[i].demand > 0) {
      open.push_back(i);
      weight += of[i].weight;
    }
  // Who is satisfied by its part leaves the rest to the others, until nobody is any more.
  int left = std::max(0, slots);
  for (bool again = true; again && !open.empty();) {
    const double level = left / weight;
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
  if (open.empty())
    return share;
  struct rest {
    std::size_t index;
    double remainder;
    bool holds;
  };
  std::vector<rest> rests;
  int given = 0;
  for (const auto i : open) {
    const double exact = left * of[i].weight / weight;
    const double whole = std::floor(exact + 1e-9);
    share[i] = static_cast<int>(whole);
    given += share[i];
    rests.push_back({i, exact - whole, of[i].held > share[i]});
  }
  for (auto& r : rests) // what differs by less than arithmetic does is equal
    r.remainder = std::max(0.0, std::round(r.remainder * 1e8));
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
  return share;
}

} // namespace troupe
