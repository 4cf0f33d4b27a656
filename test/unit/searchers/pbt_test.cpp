// Tests the toy problem of Jaderberg et al. 2017, fig. 2: 1.2 - (a^2 + b^2) is maximised through the
// surrogate 1.2 - (h0 a^2 + h1 b^2), with gradient steps of 0.01 from (0.9, 0.9) and a report every five
// steps.

#include "searchers/searcher.hpp"

#include <gtest/gtest.h>

#include <map>

namespace troupe::searchers {
namespace {

struct weights {
  double a = 0.9, b = 0.9;
};

double train(int population, double truncate, std::uint64_t seed, int steps) {
  value range{{"type", "double"}, {"minval", 0}, {"maxval", 1}};
  value config{{"name", "pbt"},
               {"metric", "q"},
               {"smaller_is_better", false},
               {"time_metric", "steps"},
               {"population_size", population},
               {"max_concurrent_trials", population},
               {"interval", 5},
               {"truncate_fraction", truncate}};
  auto s = std::move(make_searcher(config, {{"h0", range}, {"h1", range}}, seed)).value();
  std::map<std::string, weights> at, saved;
  std::map<std::string, value> h;
  auto first = s->apply(search_started{}).value();
  for (auto& a : first) {
    auto& x = std::get<create_trial>(a);
    h[x.trial] = x.hparams;
    at[x.trial] = {};
  }
  double best = 0;
  std::map<std::string, int> clock;
  for (int step = 1; step <= steps; ++step)
    for (auto& [trial, w] : at) {
      ++clock[trial];
      w.a -= 0.01 * 2 * h[trial]["h0"].get<double>() * w.a;
      w.b -= 0.01 * 2 * h[trial]["h1"].get<double>() * w.b;
      double q = 1.2 - (w.a * w.a + w.b * w.b);
      best = std::max(best, q);
      auto id = trial + "@" + std::to_string(clock[trial]);
      saved[id] = w;
      EXPECT_TRUE(s->apply(trial_checkpointed{trial, static_cast<double>(clock[trial]), id}));
      auto got = s->apply(trial_validated{trial, {{"q", q}, {"steps", clock[trial]}}}).value();
      for (auto& a : got) {
        auto& x = std::get<perturb_trial>(a);
        w = saved.at(x.checkpoint);
        clock[trial] = std::stoi(x.checkpoint.substr(x.checkpoint.find('@') + 1));
        h[trial] = x.hparams;
      }
    }
  return best;
}

TEST(Pbt, BeatsThePopulationThatDoesNotExploit) {
  double with = 0, without = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    with += train(10, 0.2, seed, 60) / 20;
    without += train(10, 0.0, seed, 60) / 20;
  }
  EXPECT_GT(with, without + 0.02);
}

TEST(Pbt, NeverExploitsWithoutACheckpointAndStartsOnATie) {
  value config{{"name", "pbt"},
               {"metric", "q"},
               {"time_metric", "steps"},
               {"population_size", 2},
               {"truncate_fraction", 0.5}};
  auto s =
    std::move(make_searcher(config, {{"h", {{"type", "double"}, {"minval", 0}, {"maxval", 1}}}}, 1)).value();
  ASSERT_TRUE(s->apply(search_started{}));
  EXPECT_TRUE(s->apply(trial_validated{"1", {{"q", 1}, {"steps", 1}}}).value().empty());
  EXPECT_TRUE(s->apply(trial_validated{"2", {{"q", 1}, {"steps", 1}}}).value().empty());
  ASSERT_TRUE(s->apply(trial_checkpointed{"1", 1, "c1"}));
  // both trials have exactly the same value
  auto got = s->apply(trial_validated{"2", {{"q", 1}, {"steps", 2}}}).value();
  ASSERT_EQ(got.size(), 1u);
  auto& x = std::get<perturb_trial>(got[0]);
  EXPECT_EQ(x.trial + x.source + x.checkpoint, "21c1");
  // The clone continues from step 1, behind its own last report, and its report still counts.
  ASSERT_TRUE(s->apply(trial_checkpointed{"1", 2, "c2"}));
  EXPECT_TRUE(s->apply(trial_validated{"1", {{"q", 0.5}, {"steps", 2}}}).value().empty());
  EXPECT_EQ(s->apply(trial_validated{"2", {{"q", 1}, {"steps", 2}}}).value().size(), 1u);
}

TEST(Pbt, ReplacesAFailedMemberByAChildOfTheBest) {
  value config{
    {"name", "pbt"}, {"metric", "q"}, {"time_metric", "steps"}, {"max_trials", 4}, {"population_size", 3}};
  auto s =
    std::move(make_searcher(config, {{"h", {{"type", "double"}, {"minval", 0}, {"maxval", 1}}}}, 1)).value();
  ASSERT_TRUE(s->apply(search_started{}));
  ASSERT_TRUE(s->apply(trial_checkpointed{"3", 1, "c3"}));
  ASSERT_TRUE(s->apply(trial_validated{"3", {{"q", 0.1}, {"steps", 1}}}));
  auto got = s->apply(trial_exited_early{"1", exit_reason::errored}).value();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(std::get<create_trial>(got[0]).source_checkpoint, "c3");
}

} // namespace
} // namespace troupe::searchers
