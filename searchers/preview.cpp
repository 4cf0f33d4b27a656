#include "searchers/preview.hpp"

#include <algorithm>
#include <map>

namespace troupe::searchers {

std::vector<std::int64_t> survivors(const bracket& b, double divisor) {
  std::vector<std::int64_t> reach;
  auto n = b.max_trials;
  for (std::size_t k = 0; k < b.units.size(); ++k) {
    reach.push_back(n);
    n = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(n) / divisor));
  }
  return reach;
}

namespace {

/// All brackets of a search of rounds, which repeats one round until the budget is used.
std::vector<bracket> all_brackets(const std::vector<bracket>& round, std::int64_t budget) {
  std::vector<bracket> all = round;
  for (const auto& b : round)
    budget -= b.max_trials;
  for (std::size_t i = 0; budget > 0 && !round.empty(); ++i) {
    all.push_back(round[i % round.size()]);
    all.back().max_trials = std::min(all.back().max_trials, budget);
    budget -= all.back().max_trials;
  }
  return all;
}

} // namespace

result<search_preview> preview_search(const value& config, const value& hyperparameters) {
  auto made = make_searcher(config, hyperparameters, 0);
  if (!made)
    return made.error();
  search_preview p;
  auto number = [&](const char* key) {
    return config.contains(key) && config[key].is_number() ? config[key].get<double>() : 0.0;
  };
  auto text = [&](const char* key) {
    return config.contains(key) && config[key].is_string() ? config[key].get<std::string>() : "";
  };
  p.name = text("name");
  p.time_metric = text("time_metric");
  p.max_trials = (*made)->max_trials();
  p.max_concurrent = config.contains("max_concurrent_trials")
                       ? static_cast<std::int64_t>(number("max_concurrent_trials"))
                       : 16;
  if (p.max_concurrent > 0)
    p.max_concurrent = std::min(p.max_concurrent, p.max_trials);
  p.brackets = all_brackets((*made)->brackets(), p.max_trials);
  if (p.brackets.empty()) {
    double length = number("max_time");
    p.rows = {{p.max_trials, 0}};
    p.total_units = length * static_cast<double>(p.max_trials);
    return p;
  }
  double divisor = config.contains("divisor") && config["divisor"].is_number() ? number("divisor") : 4;
  std::map<std::int64_t, std::int64_t> ends;
  for (const auto& b : p.brackets) {
    auto reach = survivors(b, divisor);
    for (std::size_t k = 0; k < reach.size(); ++k)
      ends[b.units[k]] += reach[k] - (k + 1 < reach.size() ? reach[k + 1] : 0);
  }
  for (auto [units, trials] : ends)
    if (trials > 0) {
      p.rows.push_back({trials, static_cast<double>(units)});
      p.total_units += static_cast<double>(units) * static_cast<double>(trials);
    }
  return p;
}

value to_determined(const search_preview& p) {
  value trials = value::array();
  for (const auto& row : p.rows) {
    value unit{{"maxLength", row.units == 0}};
    if (row.units != 0) {
      unit["name"] = p.time_metric;
      unit["value"] = static_cast<std::int64_t>(row.units);
    }
    trials.push_back({{"count", row.trials}, {"unit", unit}});
  }
  return {{"trials", trials}};
}

} // namespace troupe::searchers
