#include "searchers/searcher.hpp"

#include <gtest/gtest.h>

namespace troupe::searchers {
namespace {

/// Reports for trial 1 at steps 1, 2, ... and returns the step and the sentence with which the search stops
/// it, or "".
std::string stopped_by(value policies, const std::vector<value>& metrics, bool smaller_is_better = true,
                       const std::vector<double>& completed = {}) {
  policies["time_metric"] = "epochs"; // a random search has no such key itself
  value config{{"name", "random"},
               {"metric", "m"},
               {"max_trials", 20},
               {"max_concurrent_trials", 10},
               {"smaller_is_better", smaller_is_better},
               {"early_stopping", std::move(policies)}};
  auto made = make_searcher(config, value::object(), 1);
  EXPECT_TRUE(made) << made.error().what;
  auto& s = *made;
  EXPECT_TRUE((*s).apply(search_started{}));
  int other = 2;
  for (double m : completed) {
    auto key = std::to_string(other++);
    for (int step = 1; step <= 3; ++step)
      EXPECT_TRUE(s->apply(trial_validated{key, {{"m", m}, {"epochs", step}}}));
    EXPECT_TRUE(s->apply(trial_exited{key}));
  }
  int step = 0;
  for (const auto& m : metrics) {
    auto actions = s->apply(trial_validated{"1", {{"m", m}, {"epochs", ++step}}}).value();
    if (!actions.empty())
      return std::to_string(step) + ": " + std::get<stop_trial>(actions[0]).why;
  }
  return "";
}

TEST(EarlyStopping, DecidesWithAReason) {
  value patience{{"patience", {{"reports", 2}, {"min_delta", 0.1}}}};
  value threshold{{"threshold", {{"lower", 0.1}, {"upper", 5}, {"warmup", 2}}}};
  value median{{"median", {{"min_trials", 3}, {"warmup", 2}}}};
  struct {
    value policies;
    std::vector<value> metrics;
    bool smaller;
    std::vector<double> completed;
    std::string said;
  } rows[] = {
    {patience, {3, 2, 1, 0.5, 0.3}, true, {}, ""},
    {patience, {3, 2, 1.95, 1.99, 1}, true, {}, "4: patience: no better than 2 for 2 reports"},
    {patience, {3, 4, 3.9, 4.05}, false, {}, "4: patience: no better than 4 for 2 reports"},
    {patience, {"NaN", "NaN", "NaN"}, true, {}, "3: patience: no better than inf for 2 reports"},
    {threshold, {9, 4, 5, 5.5}, true, {}, "4: threshold: 5.5 is above 5"},
    {threshold, {1, 0.05}, true, {}, "2: threshold: 0.05 is below 0.1"},
    {threshold, {"NaN", "NaN"}, true, {}, "2: threshold: no usable metric"},
    {{{"max_time", 3}}, {1, 1, 1}, true, {}, "3: maximum time: 3 epochs reached"},
    {median, {9, 9, 9}, true, {1, 2, 3}, "2: median: best 9, the median of 3 trials at this point is 2"},
    {median, {9, 2, 2}, true, {1, 2, 3}, ""},
    {median, {9, 9, 9}, true, {1, 2}, ""},
    {median, {1, 1}, false, {1, 2, 3}, "2: median: best 1, the median of 3 trials at this point is 2"},
  };
  for (const auto& row : rows)
    EXPECT_EQ(stopped_by(row.policies, row.metrics, row.smaller, row.completed), row.said)
      << to_json(row.policies);
}

} // namespace
} // namespace troupe::searchers
