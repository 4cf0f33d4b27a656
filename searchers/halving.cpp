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
    units.push_back(
      std::max<std::int64_t>(1, static_cast<std::int64_t>(max_time / portable_pow(divisor, rungs - 1 - k))));
  return units;
}

std::vector<std::int64_t> bracket_trials(std::int64_t max_trials, double divisor,
                                         const std::vector<int>& rungs) {
  std::vector<double> weights;
  double sum = 0;
  for (int r : rungs) {
    weights.push_back(portable_pow(divisor, r - 1) / r);
    sum += weights.back();
  }
  std::vector<std::int64_t> trials;
  std::int64_t given = 0;
  for (double w : weights) {
    trials.push_back(
      std::max<std::int64_t>(1, static_cast<std::int64_t>(w / sum * static_cast<double>(max_trials))));
    given += trials.back();
  }
  trials[0] += std::max<std::int64_t>(0, max_trials - given);
  return trials;
}

std::vector<std::int64_t> bracket_slots(std::int64_t max_concurrent, double divisor,
                                        const std::vector<std::int64_t>& trials) {
  auto n = static_cast<std::int64_t>(trials.size());
  if (max_concurrent == 0)
    return std::vector<std::int64_t>(trials.size(),
                                     std::max(trials.back(), static_cast<std::int64_t>(divisor)));
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
  bool derived = common.name != "async_halving";
  h.num_rungs = static_cast<int>(in.integer("num_rungs", derived ? 0 : 5, 1, 60));
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
  // More brackets than trials would exceed the budget: native mode drops those that stop least.
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

namespace {

int rungs_of(const halving_settings& h) {
  return h.num_rungs > 0 ? h.num_rungs
                         : std::min(h.max_rungs, whole_log(h.max_time, h.divisor, rung_count::exact) + 1);
}

/// Equal lengths would decide twice; the shortest rungs are dropped.
bracket tidy(bracket b) {
  b.units.erase(std::unique(b.units.begin(), b.units.end()), b.units.end());
  b.rungs = static_cast<int>(b.units.size());
  return b;
}

/// Takes brackets in order until the budget is used.
std::vector<bracket> cut(std::vector<bracket> round, std::int64_t budget) {
  std::vector<bracket> kept;
  for (auto& b : round) {
    if (budget <= 0)
      break;
    b.max_trials = std::min(b.max_trials, budget);
    budget -= b.max_trials;
    kept.push_back(tidy(std::move(b)));
  }
  return kept;
}

std::int64_t slots_of(const settings& common) {
  return common.max_concurrent > 0 ? std::min(common.max_concurrent, common.max_trials) : common.max_trials;
}

} // namespace

std::vector<bracket> promotion_bracket(const settings& common, const halving_settings& h) {
  int rungs = rungs_of(h);
  return {tidy({rungs, common.max_trials, slots_of(common), rung_units(rungs, h.max_time, h.divisor)})};
}

std::vector<bracket> sync_round(const settings& common, const halving_settings& h) {
  int rungs = rungs_of(h);
  auto n = static_cast<std::int64_t>(std::min(portable_pow(h.divisor, rungs - 1) * (1 + 1e-12), 1e15));
  return cut(
    {{rungs, std::max<std::int64_t>(1, n), slots_of(common), rung_units(rungs, h.max_time, h.divisor)}},
    common.max_trials);
}

std::vector<bracket> hyperband_round(const settings& common, const halving_settings& h) {
  int most = rungs_of(h) - 1;
  std::vector<bracket> round;
  for (int s = most; s >= 0; --s) { // JMLR 18: n = ceil((s_max + 1) / (s + 1) * eta^s)
    double n = std::ceil((most + 1.0) / (s + 1.0) * portable_pow(h.divisor, s) * (1 - 1e-12));
    round.push_back({s + 1, static_cast<std::int64_t>(std::min(n, 1e15)), slots_of(common),
                     rung_units(s + 1, h.max_time, h.divisor)});
  }
  return cut(std::move(round), common.max_trials);
}

} // namespace troupe::searchers
