#pragma once
// NSGA-II, for several metrics at once. Elites are chosen by non-dominated sorting and crowding; children
// come from uniform crossover of two tournament winners and mutation of single values.

#include "searchers/sampler.hpp"
#include "searchers/settings.hpp"

namespace troupe::searchers {

struct objective {
  std::string metric;
  bool smaller_is_better = true;
};

struct nsga2_settings {
  std::uint64_t seed = 0;
  std::vector<objective> objectives;
  std::int64_t population_size = 50;
  double crossover = 0.9, swap = 0.5;
};

nsga2_settings read_nsga2(section& in, const settings& common);
std::unique_ptr<sampler> make_nsga2(nsga2_settings s, std::shared_ptr<const space> domain);

/// Indexes, in order, of the rows that no other row dominates. A row has one value for each objective;
/// smaller is better.
std::vector<std::size_t> pareto_front(const std::vector<std::vector<double>>& rows);
/// The number of each row's front, from 0.
std::vector<std::size_t> non_dominated_ranks(const std::vector<std::vector<double>>& rows);

} // namespace troupe::searchers
