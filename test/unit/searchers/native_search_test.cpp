#include "searchers/searcher.hpp"

#include <gtest/gtest.h>

namespace troupe::searchers {
namespace {

const value asha = {{"name", "async_halving"},
                    {"metric", "acc"},
                    {"smaller_is_better", false},
                    {"time_metric", "epochs"},
                    {"max_time", 16},
                    {"num_rungs", 3},
                    {"divisor", 4},
                    {"max_trials", 20},
                    {"max_concurrent_trials", 4}};
const value space_of_two = {
  {"lr", {{"type", "log"}, {"base", 10}, {"minval", -5}, {"maxval", 0}}},
  {"net", {{"width", {{"type", "int"}, {"minval", 1}, {"maxval", 8}}}, {"act", "relu"}}}};

std::string show(const search_action& action) {
  if (auto* x = std::get_if<create_trial>(&action))
    return "create " + x->trial;
  if (auto* x = std::get_if<stop_trial>(&action))
    return "stop " + x->trial + " {" + x->why + "}";
  if (auto* x = std::get_if<shut_down>(&action))
    return std::string("shutdown") + (x->cancel ? " cancel" : "") + (x->failure ? " failure" : "");
  if (auto* x = std::get_if<pause_trial>(&action))
    return "pause " + x->trial;
  if (auto* x = std::get_if<resume_trial>(&action))
    return "resume " + x->trial + " to " + to_json(x->until);
  return "?";
}

std::string show(const result<std::vector<search_action>>& r) {
  if (!r)
    return std::string(name(r.error().code));
  std::string text;
  for (const auto& a : *r)
    text += (text.empty() ? "" : ", ") + show(a);
  return text;
}

trial_validated at(const char* trial, double epochs, double acc) {
  return {trial, {{"epochs", epochs}, {"acc", acc}}};
}

TEST(NativeSearch, StopsAtRungsAndSaysWhy) {
  auto s = std::move(make_searcher(asha, space_of_two, 1)).value();
  struct {
    search_event event;
    std::string actions;
  } steps[] = {
    {search_started{}, "create 1, create 2, create 3, create 4"},
    {search_started{}, ""},
    {at("1", 1, 0.9), ""},
    {at("2", 1, 0.8), "stop 2 {rung 0 (1 epochs): 0.8, needed 0.9}, create 5"},
    {at("2", 2, 0.99), ""}, // the report is late
    // the trial was stopped, and then failed while it ended
    {trial_exited_early{"2", exit_reason::errored}, ""},
    {trial_exited{"2"}, ""},
    {trial_exited{"2"}, ""},
    // equal values are ranked in the order of their arrival
    {at("3", 1, 0.9), "stop 3 {rung 0 (1 epochs): 0.9, needed 0.9}, create 6"},
    {trial_exited{"4"}, "create 7"}, // the trial ended before its first rung
    {trial_validated{"5", {{"epochs", 1}, {"acc", "NaN"}}},
     "stop 5 {rung 0 (1 epochs): no usable metric (NaN, infinite or missing), so it ranks last}, create 8"},
    {trial_validated{"6", {{"acc", 0.95}}},
     "stop 6 {rung 0 (1 epochs): the report has no usable `epochs`, so it ranks last}, create 9"},
    {at("1", 16, 0.95), "stop 1 {rung 2 (16 epochs): full length reached}, create 10"},
    {trial_exited_early{"7", exit_reason::invalid_hp}, "create 11"},
    {trial_exited_early{"7", exit_reason::invalid_hp}, ""},
    {trial_exited_early{"8", exit_reason::errored}, "create 12"},
    {trial_exited{"99"}, "not_found"},
    {trial_exited{"01"}, "not_found"},
  };
  for (const auto& step : steps)
    EXPECT_EQ(show(s->apply(step.event)), step.actions);
}

// The time metric is not rounded to whole units, and may pass rungs or go back.
TEST(NativeSearch, ReadsTheTimeMetricAsItIs) {
  auto s = std::move(make_searcher(asha, space_of_two, 1)).value();
  ASSERT_TRUE(s->apply(search_started{}));
  struct {
    search_event event;
    std::string actions;
  } steps[] = {
    {at("1", 0.99, 0.9), ""},
    {at("1", 1.5, 0.9), ""},
    {at("2", 0.999, 0.1), ""}, // trial 2 has not reached the first rung
    {at("2", -3, 0.1), ""},
    {at("1", 0.5, 0.1), ""},   // the time went back, and the place of trial 1 at the rung stays
    {at("2", 4.25, 0.95), ""}, // the report passes two rungs at once
    {at("3", 1.25, 0.2), "stop 3 {rung 0 (1 epochs): 0.2, needed 0.95}, create 5"},
  };
  for (const auto& step : steps)
    EXPECT_EQ(show(s->apply(step.event)), step.actions);
}

TEST(NativeSearch, BoundsInvalidHyperparameters) {
  auto s =
    std::move(make_searcher({{"name", "random"}, {"metric", "loss"}, {"max_trials", 3}}, space_of_two, 1))
      .value();
  ASSERT_TRUE(s->apply(search_started{}));
  int created = 3;
  bool failed = false;
  for (int t = 1; t <= created && !failed; ++t) {
    auto actions = s->apply(trial_exited_early{std::to_string(t), exit_reason::init_invalid_hp}).value();
    for (const auto& a : actions) {
      created += std::holds_alternative<create_trial>(a);
      if (auto* x = std::get_if<shut_down>(&a))
        failed = x->failure;
    }
  }
  EXPECT_TRUE(failed);
  EXPECT_EQ(created, 103);
}

TEST(NativeSearch, NamesEveryFault) {
  auto r = make_searcher({{"name", "async_halving"}, {"divisor", 1}, {"max_trials", 0}},
                         {{"a", {{"type", "int"}, {"minval", 3}, {"maxval", 3}}},
                          {"b", {{"type", "categorical"}, {"vals", value::array()}}},
                          {"c", {{"type", "dobule"}}}},
                         0);
  ASSERT_FALSE(r);
  for (auto part : {"searcher.metric", "searcher.max_trials", "searcher.divisor", "searcher.max_time",
                    "searcher.time_metric", "hyperparameters.a", "hyperparameters.b", "hyperparameters.c"})
    EXPECT_NE(r.error().what.find(part), std::string::npos) << part << " in " << r.error().what;
}

TEST(NativeSearch, RefusesToStartMoreTrialsAtOnceThanMemoryHolds) {
  for (std::int64_t slots : {std::int64_t{0}, std::int64_t{900'000'000}})
    for (auto mode : {search_mode::native, search_mode::compat}) {
      auto r = make_searcher({{"name", "random"},
                              {"metric", "loss"},
                              {"max_trials", 1'000'000'000},
                              {"max_concurrent_trials", slots}},
                             value::object(), 0, mode);
      ASSERT_FALSE(r) << slots;
      EXPECT_NE(r.error().what.find("trials at once; 1000000 are the most"), std::string::npos)
        << r.error().what;
    }
}

TEST(NativeSearch, GridNeverBuildsItsPoints) {
  value axis{{"type", "int"}, {"minval", 0}, {"maxval", 9999}, {"count", 10000}};
  auto s = std::move(make_searcher({{"name", "grid"}, {"metric", "loss"}, {"max_concurrent_trials", 2}},
                                   {{"a", axis}, {"b", axis}, {"c", axis}}, 1))
             .value();
  auto first = s->apply(search_started{}).value();
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(std::get<create_trial>(first[1]).hparams, (value{{"a", 0}, {"b", 0}, {"c", 1}}));
  EXPECT_LT(s->snapshot().size(), 400u);
}

TEST(NativeSearch, CountsALateReportAtEveryRungOfASynchronousHalvingThatItHasReached) {
  value config{{"name", "sync_halving"},
               {"metric", "acc"},
               {"smaller_is_better", false},
               {"time_metric", "epochs"},
               {"max_time", 64},
               {"num_rungs", 3},
               {"divisor", 4},
               {"max_trials", 16},
               {"max_concurrent_trials", 16}};
  auto s = std::move(make_searcher(config, space_of_two, 1)).value();
  ASSERT_TRUE(s->apply(search_started{}));
  // Trials 1 to 15 report only once: trial 3 at rung 64, trial 5 at rung 16, the others at rung 4.
  for (int t = 1; t < 16; ++t)
    EXPECT_EQ(show(s->apply(at(std::to_string(t).c_str(),
                               t == 3   ? 64
                               : t == 5 ? 16
                                        : 4,
                               t * 0.01 + (t == 3) + (t == 5) * 0.5))),
              "pause " + std::to_string(t));
  auto said = show(s->apply(at("16", 4, 0.9)));
  // Trials 3 and 5 have already trained so long, and trial 16 just continues.
  EXPECT_EQ(said.substr(said.find("resume")), "resume 15 to 16.0");
  EXPECT_EQ(show(s->apply(at("16", 16, 0.95))), "pause 16");
  said = show(s->apply(at("15", 16, 0.2)));
  EXPECT_TRUE(said.starts_with("pause 15, stop 3 {rung 2 (64 epochs): full length reached}, stop 16 {rung 1 "
                               "(16 epochs): 0.95, needed 1.03}"))
    << said;
}

TEST(NativeSearch, LendsTheSlotsOfAFinishedBracket) {
  value config{{"name", "adaptive_asha"}, {"metric", "loss"}, {"time_metric", "epochs"},
               {"max_time", 64},          {"max_trials", 60}, {"max_concurrent_trials", 6}};
  auto s = std::move(make_searcher(config, space_of_two, 3)).value();
  std::vector<std::string> running;
  auto take = [&](std::vector<search_action> actions) {
    for (auto& a : actions) {
      if (auto* x = std::get_if<create_trial>(&a))
        running.push_back(x->trial);
      if (auto* x = std::get_if<stop_trial>(&a))
        std::erase(running, x->trial);
    }
  };
  take(s->apply(search_started{}).value());
  std::size_t created = running.size();
  for (int i = 0; created < 60; ++i) {
    auto trial = running[static_cast<std::size_t>(i) % running.size()];
    auto before = running;
    auto actions = s->apply(trial_exited{trial}).value();
    std::erase(running, trial);
    take(actions);
    created += actions.size();
    ASSERT_EQ(running.size(), 6u) << "after " << i;
  }
}

TEST(NativeSearch, IsContinuedAfterItsEnd) {
  const value random = {
    {"name", "random"}, {"metric", "acc"}, {"max_trials", 4}, {"max_concurrent_trials", 2}};
  auto s = std::move(make_searcher(random, space_of_two, 1)).value();
  struct {
    search_event event;
    const char* answer;
  } steps[] = {
    {search_started{}, "create 1, create 2"},
    {trial_exited_early{"1", exit_reason::errored}, "create 3"},
    {trial_exited{"1"}, ""},
    // A kill comes here, so the search does not hear that trials 2 and 3 ended.
    {search_continued{{"1", "2", "3"}}, ""}, // trials 2 and 3 run again and hold both slots
    {trial_exited{"2"}, "resume 1 to 0.0"},
    {trial_exited{"3"}, "create 4"},
    {trial_exited_early{"1", exit_reason::errored}, ""},
    {trial_exited{"1"}, ""},
    {trial_exited_early{"4", exit_reason::errored}, ""},
    {trial_exited{"4"}, "shutdown"},
    {search_continued{{"1", "4"}}, "resume 1 to 0.0, resume 4 to 0.0"},
    {trial_exited{"1"}, ""},
    {trial_exited{"4"}, "shutdown"},
    {search_continued{{"9"}}, "not_found"},
  };
  for (const auto& step : steps) {
    EXPECT_EQ(show(s->apply(step.event)), step.answer);
    auto again = load_searcher(random, space_of_two, 1, search_mode::native, s->snapshot());
    ASSERT_TRUE(again);
    s = std::move(*again);
  }
  auto halving = std::move(make_searcher(asha, space_of_two, 1)).value();
  EXPECT_EQ(show(halving->apply(search_continued{})), "unsupported") << "its trials compete";
}

TEST(NativeSearch, AContinuedTrialMayEndBeforeItsTurn) {
  const value random = {
    {"name", "random"}, {"metric", "acc"}, {"max_trials", 4}, {"max_concurrent_trials", 2}};
  auto s = std::move(make_searcher(random, space_of_two, 1)).value();
  const std::pair<search_event, const char*> steps[] = {
    {search_started{}, "create 1, create 2"},
    {trial_exited_early{"1", exit_reason::errored}, "create 3"},
    {trial_exited{"1"}, ""},
    {search_continued{{"1", "2", "3"}}, ""},
    {trial_exited_early{"1", exit_reason::user_canceled}, ""}, // a user kills it while it waits
    {trial_exited{"1"}, ""},
    {trial_exited{"2"}, "create 4"},
  };
  for (const auto& [event, answer] : steps)
    EXPECT_EQ(show(s->apply(event)), answer);
}

TEST(NativeSearch, ASingleTrialThatFailedMayStillComplete) {
  auto s = std::move(make_searcher({{"name", "single"}, {"metric", "acc"}}, space_of_two, 1)).value();
  EXPECT_EQ(show(s->apply(search_started{})), "create 1");
  EXPECT_EQ(show(s->apply(trial_exited_early{"1", exit_reason::errored})), "");
  EXPECT_EQ(show(s->apply(trial_exited{"1"})), "shutdown failure");
  EXPECT_EQ(show(s->apply(search_continued{{"1"}})), "resume 1 to 0.0");
  EXPECT_EQ(show(s->apply(trial_exited{"1"})), "shutdown");
}

} // namespace
} // namespace troupe::searchers
