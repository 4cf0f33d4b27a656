#include "actors/pool/shares.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>

namespace troupe {
namespace {

/// Fills the demands of jobs that share caps. The slots of the pool are the cap that all jobs share.
class filling {
public:
  filling(const std::vector<share_demand>& of, int slots, const std::vector<int>& caps)
      : of_(of), exact_(of.size(), 0), open_(of.size(), false) {
    for (const int cap : caps)
      groups_.push_back({static_cast<double>(std::max(0, cap))});
    groups_.push_back({static_cast<double>(std::max(0, slots))});
    for (std::size_t i = 0; i < of.size(); ++i)
      if (of[i].weight > 0 && of[i].demand > 0) {
        open_[i] = true;
        by_level_.push_back(i);
        each_group(i, [&](group& g) {
          g.weight += of[i].weight;
          g.jobs.push_back(i);
          ++g.open;
        });
      }
    std::stable_sort(by_level_.begin(), by_level_.end(), [&](auto a, auto b) { return full(a) < full(b); });
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      groups_[g].all = groups_[g].weight;
      push(g);
    }
  }

  /// The exact share of each job.
  std::vector<double> result() {
    auto next = by_level_.begin();
    while (next != by_level_.end()) {
      if (!open_[*next]) {
        ++next;
        continue;
      }
      const auto [level, at] = reached_.top();
      auto& g = groups_[at];
      if (g.open == 0 || level < level_of(g) - tiny) { // the group has changed since it was pushed
        reached_.pop();
        push(at);
      } else if (full(*next) <= level + tiny) {
        close(*next, of_[*next].demand);
      } else {
        for (const auto i : std::vector(g.jobs))
          if (open_[i])
            close(i, level * of_[i].weight);
      }
    }
    return exact_;
  }

private:
  static constexpr double tiny = 1e-9;
  struct group {
    double left = 0;      ///< slots of the cap that no closed job has
    double weight = 0;    ///< of its open jobs
    double all = 0;       ///< weight of all its jobs
    std::size_t open = 0; ///< number of its open jobs
    std::vector<std::size_t> jobs = {};
  };
  using reached = std::pair<double, std::size_t>; ///< level at which the cap of a group is reached

  template <class Use>
  void each_group(std::size_t job, Use use) {
    for (const int g : of_[job].groups)
      if (g >= 0)
        use(groups_[static_cast<std::size_t>(g)]);
    use(groups_.back());
  }
  double full(std::size_t job) const { return of_[job].demand / of_[job].weight; }
  static double level_of(const group& g) { return std::max(0.0, g.left) / g.weight; }
  void push(std::size_t g) {
    if (groups_[g].open > 0)
      reached_.emplace(level_of(groups_[g]), g);
  }
  void close(std::size_t job, double share) {
    open_[job] = false;
    exact_[job] = share;
    each_group(job, [&](group& g) {
      g.left -= share;
      --g.open;
      g.weight -= of_[job].weight;
      if (g.weight < g.all * 1e-6) { // what is left is no larger than the errors of arithmetic
        g.weight = 0;
        for (const auto i : g.jobs)
          if (open_[i])
            g.weight += of_[i].weight;
        g.all = g.weight;
      }
    });
  }

  const std::vector<share_demand>& of_;
  std::vector<double> exact_;
  std::vector<bool> open_;            ///< jobs whose shares still grow
  std::vector<std::size_t> by_level_; ///< jobs by the level at which they have all that they demand
  std::vector<group> groups_;         ///< one for each cap, and last that of all jobs
  std::priority_queue<reached, std::vector<reached>, std::greater<>> reached_;
};

share_split capped_shares(const std::vector<share_demand>& of, int slots, const std::vector<int>& caps) {
  share_split split;
  split.even = false;
  const auto exact = filling(of, slots, caps).result();
  auto left = caps; // and last the slots of the pool
  left.push_back(std::max(0, slots));
  struct rest {
    std::size_t index;
    double remainder;
    bool holds;
  };
  std::vector<rest> rests;
  const auto groups_of = [&](std::size_t i) {
    return std::array{of[i].groups[0], of[i].groups[1], static_cast<int>(caps.size())};
  };
  for (std::size_t i = 0; i < of.size(); ++i) {
    const int whole = static_cast<int>(std::floor(exact[i] + 1e-9));
    split.shares.push_back(whole);
    for (const int g : groups_of(i))
      if (g >= 0)
        left[static_cast<std::size_t>(g)] -= whole;
    if (of[i].weight > 0 && whole < of[i].demand)
      rests.push_back({i, std::max(0.0, std::round((exact[i] - whole) * 1e8)), of[i].held > whole});
  }
  std::sort(rests.begin(), rests.end(), [](const auto& a, const auto& b) {
    return std::tuple{-a.remainder, !a.holds, a.index} < std::tuple{-b.remainder, !b.holds, b.index};
  });
  for (const auto& r : rests) {
    const auto groups = groups_of(r.index);
    if (std::any_of(groups.begin(), groups.end(),
                    [&](int g) { return g >= 0 && left[static_cast<std::size_t>(g)] <= 0; }))
      continue;
    ++split.shares[r.index];
    for (const int g : groups)
      if (g >= 0)
        --left[static_cast<std::size_t>(g)];
  }
  return split;
}

} // namespace

share_split fair_shares(const std::vector<share_demand>& of, int slots, const std::vector<int>& caps) {
  if (!caps.empty())
    return capped_shares(of, slots, caps);
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
