#include "searchers/halving.hpp"

#include "searchers/portable_math.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::searchers {
namespace {

/// The largest k with divisor^k <= x.
int whole_log(double x, double divisor, rung_count how) {
  if (how == rung_count::as_determined)
    return static_cast<int>(portable_log(x) / portable_log(divisor));
  int k = 0;
  for (double power = divisor; power <= x * (1 + 1e-12) && k < 1000; power *= divisor)
    ++k;
  return k;
}

} // namespace

std::vector<std::int64_t> rung_units(int rungs, double max_time, double divisor) {
  std::vector<std::int64_t> units;
  for (int k = 0; k < rungs; ++k)
    units.push_back(std::max<std::int64_t>(1, static_cast<std::int64_t>(max_time / portable_pow(divisor, rungs - 1 - k))));
  return units;
}

std::vector<std::int64_t> bracket_trials(std::int64_t max_trials, double divisor, const std::vector<int>& rungs) {
  std::vector<double> weights;
  double sum = 0;
  for (int r : rungs) {
    weights.push_back(portable_pow(divisor, r - 1) / r);
    sum += weights.back();
  }
  std::vector<std::int64_t> trials;
  std::int64_t given = 0;
  for (double w : weights) {
    trials.push_back(std::max<std::int64_t>(1, static_cast<std::int64_t>(w / sum * static_cast<double>(max_trials))));
    given += trials.back();
  }
  trials[0] += std::max<std::int64_t>(0, max_trials - given);
  return trials;
}

std::vector<std::int64_t> bracket_slots(std::int64_t max_concurrent, double divisor,
                                        const std::vector<std::int64_t>& trials) {
  auto n = static_cast<std::int64_t>(trials.size());
  if (max_concurrent == 0)
    return std::vector<std::int64_t>(trials.size(), std::max(trials.back(), static_cast<std::int64_t>(divisor)));
  auto slots = std::max(max_concurrent, n);
  std::vector<std::int64_t> share(trials.size(), slots / n);
  for (std::int64_t i = 0; i < slots % n; ++i)
    ++share[static_cast<std::size_t>(i)];
  return share;
}

halving_settings read_halving(section& in, const settings& common) {
  halving_settings h;
  h.divisor = in.number("divisor", 4, 1, 1e6);
  if (!(h.divisor > 1))
    in.fault("divisor", "must be above 1");
  if (!in.has("max_time"))
    in.fault("max_time", "is needed: the length of a full trial, in units of `time_metric`");
  if (common.time_metric.empty())
    in.fault("time_metric", "is needed: the name of the metric that counts the length of a trial");
  h.max_time = static_cast<double>(in.integer("max_time", 1, 1, std::int64_t{1} << 53));
  h.num_rungs = static_cast<int>(in.integer("num_rungs", 5, 1, 60));
  h.max_rungs = static_cast<int>(in.integer("max_rungs", 5, 1, 60));
  h.mode = in.one_of("mode", {"aggressive", "standard", "conservative"}, "standard");
  h.bracket_rungs = in.integers("bracket_rungs", 1);
  return h;
}

std::vector<bracket> adaptive_brackets(const settings& common, const halving_settings& h, rung_count how) {
  std::vector<int> rungs(h.bracket_rungs.begin(), h.bracket_rungs.end());
  if (rungs.empty()) {
    int most = std::min({h.max_rungs, whole_log(h.max_time, h.divisor, how) + 1,
                         whole_log(static_cast<double>(common.max_trials), h.divisor, how) + 1});
    int least = h.mode == "aggressive" ? most : h.mode == "standard" ? (most - 1) / 2 + 1 : 1;
    for (int r = least; r <= most; ++r)
      rungs.push_back(r);
  }
  std::sort(rungs.rbegin(), rungs.rend());
  // More brackets than trials would exceed the budget: natively the least stopping ones go.
  if (how == rung_count::exact && static_cast<std::int64_t>(rungs.size()) > common.max_trials)
    rungs.resize(static_cast<std::size_t>(common.max_trials));
  auto trials = bracket_trials(common.max_trials, h.divisor, rungs);
  auto slots = bracket_slots(common.max_concurrent, h.divisor, trials);
  std::vector<bracket> list;
  for (std::size_t b = 0; b < rungs.size(); ++b)
    list.push_back({rungs[b], trials[b], slots[b], rung_units(rungs[b], h.max_time, h.divisor)});
  return list;
}

std::vector<bracket> single_bracket(const settings& common, const halving_settings& h) {
  auto full = std::min(portable_pow(h.divisor, h.num_rungs - 1), 1e15);
  auto slots = common.max_concurrent > 0
                 ? std::min(common.max_concurrent, common.max_trials)
                 : std::clamp<std::int64_t>(static_cast<std::int64_t>(full), 1, common.max_trials);
  return {{h.num_rungs, common.max_trials, slots, rung_units(h.num_rungs, h.max_time, h.divisor)}};
}

} // namespace troupe::searchers
