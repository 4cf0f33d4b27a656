#include "searchers/searcher.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::searchers {
namespace {

const value domain = parse_json(R"({"lr": {"type": "log", "base": 10, "minval": -5, "maxval": 0},
  "layers": {"type": "int", "minval": 1, "maxval": 8}, "opt": {"type": "categorical", "vals": ["sgd", "adam", "lion"]},
  "dropout": {"type": "double", "minval": 0, "maxval": 0.7}})")
                       .value();

double loss(const value& h) {
  double a = std::log10(h["lr"].get<double>()) + (h["opt"] == "adam" ? 3.2 : 1.5),
         b = h["layers"].get<double>() - 5;
  double c = h["dropout"].get<double>() - 0.2;
  return a * a + 0.1 * b * b + c * c + (h["opt"] == "adam" ? 0 : 0.3);
}

/// Returns the best result of `trials` trials, of which `slots` run at a time and which end in the order in
/// which they began.
double best_of(const std::string& name, int trials, int slots, std::uint64_t seed) {
  value config{{"name", name}, {"metric", "loss"}, {"max_trials", trials}, {"max_concurrent_trials", slots}};
  auto s = std::move(make_searcher(config, domain, seed)).value();
  std::vector<create_trial> queue;
  double best = 1e9;
  auto take = [&](std::vector<search_action> actions) {
    for (auto& a : actions)
      if (auto* x = std::get_if<create_trial>(&a))
        queue.push_back(*x);
  };
  take(s->apply(search_started{}).value());
  for (std::size_t i = 0; i < queue.size(); ++i) {
    double y = loss(queue[i].hparams);
    best = std::min(best, y);
    take(s->apply(trial_validated{queue[i].trial, {{"loss", y}}}).value());
    take(s->apply(trial_exited{queue[i].trial}).value());
  }
  return best;
}

double mean_best(const std::string& name, int trials, int slots) {
  double sum = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    sum += best_of(name, trials, slots, seed) / 10;
  return sum;
}

class ModelSearch : public ::testing::TestWithParam<const char*> {};

TEST_P(ModelSearch, IsAheadOfRandomOneByOneAndEightAtOnce) {
  double random = mean_best("random", 60, 1);
  EXPECT_LT(mean_best(GetParam(), 60, 1), 0.9 * random);
  EXPECT_LT(mean_best(GetParam(), 60, 8), 0.9 * random);
}

INSTANTIATE_TEST_SUITE_P(Every, ModelSearch, ::testing::Values("tpe", "cma_es", "gp"),
                         [](const auto& each) { return std::string(each.param); });

} // namespace
} // namespace troupe::searchers
