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
  // By demand for each unit of weight: who is satisfied first leaves the rest to the others.
  std::stable_sort(open.begin(), open.end(), [&](std::size_t a, std::size_t b) {
    return of[a].demand * of[b].weight < of[b].demand * of[a].weight;
  });
  int left = std::max(0, slots);
  std::size_t next = 0;
  for (; next < open.size(); ++next) {
    const auto& x = of[open[next]];
    if (x.demand * weight > left * x.weight + 1e-9 * weight)
      break;
    share[open[next]] = x.demand;
    left -= x.demand;
    weight -= x.weight;
  }
  open.erase(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(next));
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
  std::sort(rests.begin(), rests.end(), [](const rest& a, const rest& b) {
    if (std::abs(a.remainder - b.remainder) > 1e-9)
      return a.remainder > b.remainder;
    return a.holds != b.holds ? a.holds : a.index < b.index;
  });
  for (const auto& r : rests)
    if (given < left && share[r.index] < of[r.index].demand) {
      ++share[r.index];
      ++given;
    }
  return share;
}

} // namespace troupe
