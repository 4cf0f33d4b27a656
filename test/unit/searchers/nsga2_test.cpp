#include "searchers/nsga2.hpp"

#include <gtest/gtest.h>

namespace troupe::searchers {
namespace {

TEST(Nsga2, RanksByDomination) {
  std::vector<std::vector<double>> rows{{1, 4}, {2, 2}, {4, 1}, {2, 3}, {5, 5}, {1, 4}};
  EXPECT_EQ(non_dominated_ranks(rows), (std::vector<std::size_t>{0, 0, 0, 1, 2, 0}));
  EXPECT_EQ(pareto_front(rows), (std::vector<std::size_t>{0, 1, 2, 5}));
}

/// Returns the area that the front dominates below (1.1, 7) for ZDT1 in six dimensions after 400 trials.
double area(const std::string& name, std::uint64_t seed) {
  value domain = value::object();
  for (auto x : {"a", "b", "c", "d", "e", "f"})
    domain[x] = {{"type", "double"}, {"minval", 0}, {"maxval", 1}};
  value config{{"name", name},
               {"metric", "f1"},
               {"metrics", {"f1", "f2"}},
               {"max_trials", 400},
               {"max_concurrent_trials", 4},
               {"population_size", 20}};
  auto s = std::move(make_searcher(config, domain, seed)).value();
  std::vector<create_trial> queue;
  auto take = [&](std::vector<search_action> actions) {
    for (auto& a : actions)
      if (auto* x = std::get_if<create_trial>(&a))
        queue.push_back(*x);
  };
  std::vector<std::vector<double>> rows;
  take(s->apply(search_started{}).value());
  for (std::size_t i = 0; i < queue.size(); ++i) {
    double f1 = queue[i].hparams["a"].get<double>(), g = 1;
    for (auto x : {"b", "c", "d", "e", "f"})
      g += 9.0 / 5 * queue[i].hparams[x].get<double>();
    double f2 = g * (1 - std::sqrt(f1 / g));
    rows.push_back({f1, f2});
    take(s->apply(trial_validated{queue[i].trial, {{"f1", f1}, {"f2", f2}}}).value());
    take(s->apply(trial_exited{queue[i].trial}).value());
  }
  std::vector<std::vector<double>> front;
  for (auto i : pareto_front(rows))
    front.push_back(rows[i]);
  std::sort(front.begin(), front.end());
  double sum = 0, below = 7;
  for (const auto& p : front) {
    sum += std::max(0.0, 1.1 - p[0]) * std::max(0.0, below - p[1]);
    below = std::min(below, p[1]);
  }
  return sum;
}

TEST(Nsga2, DominatesFarMoreThanRandomSearch) {
  double ours = 0, random = 0;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    ours += area("nsga2", seed) / 5;
    random += area("random", seed) / 5;
  }
  EXPECT_GT(ours, random + 0.5);
}

} // namespace
} // namespace troupe::searchers
