#include "runtime/api/importance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>
#include <optional>

namespace troupe::api {
namespace {

constexpr std::size_t steps = 50; ///< number of cells of a numeric hyperparameter
constexpr double prior_weight = 1, best_part = 0.1, least_density = 1e-12;
constexpr std::size_t least_best = 2;

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

std::vector<double> count(const std::vector<std::optional<std::size_t>>& cell, const std::vector<bool>& of,
                          std::size_t cells) {
  std::vector<double> n(cells, 0);
  for (std::size_t i = 0; i < cell.size(); ++i)
    if (of[i] && cell[i])
      ++n[*cell[i]];
  return n;
}

/// The density over cells, estimated with a kernel on each cell that has trials and with a flat prior. The
/// kernel's width follows Scott's rule.
std::vector<double> numeric_density(const std::vector<double>& counts) {
  const auto cells = counts.size();
  const double n = std::accumulate(counts.begin(), counts.end(), 0.0);
  std::vector<double> at, weight;
  for (std::size_t i = 0; i < cells; ++i)
    if (counts[i] > 0) {
      at.push_back(static_cast<double>(i));
      weight.push_back(counts[i]);
    }
  double width = 0;
  if (n > 0) {
    double mean = 0, spread = 0;
    for (std::size_t i = 0; i < at.size(); ++i)
      mean += at[i] * weight[i] / n;
    for (std::size_t i = 0; i < at.size(); ++i)
      spread += (at[i] - mean) * (at[i] - mean) * weight[i];
    const double deviation = std::sqrt(spread / std::max(1.0, n - 1));
    const auto quantile = [&](double wanted, bool beyond) {
      double sum = 0;
      for (std::size_t i = 0; i < at.size(); ++i) {
        sum += weight[i];
        if (beyond ? sum > wanted : sum >= wanted)
          return at[i];
      }
      return at.back();
    };
    const double between = quantile(std::floor(n * 3 / 4), true) - quantile(std::floor(n / 4), false);
    width = 1.059 * std::min(between / 1.34, deviation) * std::pow(n, -0.2);
  }
  const double least_width = 0.5 / 1.64;
  std::vector<double> widths(at.size(), std::max(width, least_width));
  const double low = -0.5, high = static_cast<double>(cells) - 0.5;
  at.push_back(0.5 * static_cast<double>(cells - 1));
  weight.push_back(prior_weight);
  widths.push_back(static_cast<double>(cells));
  std::vector<double> density(cells, 0);
  for (std::size_t k = 0; k < at.size(); ++k) {
    const auto below = [&](double x) { return normal_cdf((x - at[k]) / widths[k]); };
    const double whole = below(high) - below(low);
    for (std::size_t i = 0; i < cells; ++i)
      density[i] += weight[k] / (n + prior_weight) *
                    (below(static_cast<double>(i) + 0.5) - below(static_cast<double>(i) - 0.5)) / whole;
  }
  return density;
}

std::vector<double> categorical_density(const std::vector<double>& counts) {
  const auto choices = static_cast<double>(counts.size());
  double kernels = 1, n = 0;
  for (double c : counts) {
    kernels += c > 0;
    n += c;
  }
  const double flat = prior_weight / kernels, row = 1 + flat * choices;
  std::vector<double> density(counts.size(), prior_weight / (n + prior_weight) / choices);
  for (std::size_t k = 0; k < counts.size(); ++k)
    for (std::size_t i = 0; counts[k] > 0 && i < counts.size(); ++i)
      density[i] += counts[k] / (n + prior_weight) * (flat + (i == k ? 1 : 0)) / row;
  return density;
}

double divergence(const std::vector<double>& best, const std::vector<double>& all) {
  double sum = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double q = all[i] + least_density, ratio = (best[i] + least_density) / q - 1;
    sum += q * ratio * ratio;
  }
  return sum;
}

std::vector<bool> best_of(const std::vector<double>& loss) {
  auto sorted = loss;
  std::sort(sorted.begin(), sorted.end());
  const auto tenth = static_cast<std::size_t>(std::ceil(best_part * static_cast<double>(sorted.size()))) - 1;
  const double limit = sorted[std::min(sorted.size() - 1, std::max(least_best - 1, tenth))];
  std::vector<bool> out;
  for (double x : loss)
    out.push_back(x <= limit);
  return out;
}

struct cells {
  std::vector<std::optional<std::size_t>> of; ///< cell of each trial
  std::size_t count = 0;
  bool numeric = false;
};

/// Puts each trial's value into a cell; gives no cells where all trials have the same value.
cells cells_of(const importance_input& hp) {
  cells out;
  std::vector<std::optional<double>> numbers;
  bool all_numbers = true, whole = true;
  for (const auto& v : hp.values) {
    auto x = v.is_boolean() ? std::nullopt : number_in(v);
    all_numbers = all_numbers && (v.is_null() || (x && std::isfinite(*x)));
    whole = whole && (v.is_null() || v.is_number_integer());
    numbers.push_back(x);
  }
  if (all_numbers) {
    const bool log = hp.logarithmic &&
                     std::all_of(numbers.begin(), numbers.end(), [](const auto& x) { return !x || *x > 0; });
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (auto& x : numbers)
      if (x) {
        x = log ? std::log(*x) : *x;
        low = std::min(low, *x);
        high = std::max(high, *x);
      }
    if (!(low < high))
      return out;
    out.numeric = true;
    out.count =
      whole && !log ? std::min<std::size_t>(steps, static_cast<std::size_t>(high - low) + 1) : steps;
    const double step = (high - low) / static_cast<double>(out.count - 1);
    for (const auto& x : numbers)
      out.of.push_back(
        x ? std::optional(std::min(out.count - 1, static_cast<std::size_t>((*x - low + 0.5 * step) / step)))
          : std::nullopt);
    return out;
  }
  std::map<std::string, std::size_t> choices;
  for (const auto& v : hp.values)
    out.of.push_back(v.is_null() ? std::nullopt
                                 : std::optional(choices.emplace(to_json(v), choices.size()).first->second));
  out.count = choices.size() > 1 ? choices.size() : 0;
  return out;
}

} // namespace

std::vector<importance_entry> ped_anova(const std::vector<importance_input>& hparams,
                                        const std::vector<double>& loss) {
  const auto best = best_of(loss);
  const std::vector<bool> all(loss.size(), true);
  std::vector<importance_entry> out;
  double sum = 0;
  for (const auto& hp : hparams) {
    const auto c = cells_of(hp);
    if (c.count == 0)
      continue;
    const auto density = [&](const std::vector<bool>& of) {
      const auto n = count(c.of, of, c.count);
      return c.numeric ? numeric_density(n) : categorical_density(n);
    };
    out.push_back({hp.name, divergence(density(best), density(all))});
    sum += out.back().importance;
  }
  for (auto& one : out)
    one.importance = sum > 0 ? one.importance / sum : 1.0 / static_cast<double>(out.size());
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.importance > b.importance; });
  return out;
}

} // namespace troupe::api
