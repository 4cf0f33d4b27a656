#include "troupe/study.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace {

troupe::study_options over_x(std::string searcher, int trials) {
  return {.searcher = std::move(searcher),
          .metric = "loss",
          .max_trials = trials,
          .space = {{"x", troupe::parameter::json{R"({"type": "double", "minval": -1, "maxval": 1})"}},
                    {"kind", "fixed"}}};
}

double train(const troupe::proposal& p) { return std::pow(p.number("x") - 0.3, 2); }

TEST(Study, FindsAMinimumByAskAndTell) {
  for (const char* searcher : {"random", "tpe"}) {
    auto study = troupe::study::make(over_x(searcher, 40));
    ASSERT_TRUE(study) << study.error().message;
    int trials = 0;
    while (auto next = study->ask()) {
      ++trials;
      EXPECT_EQ(next->text("kind"), "fixed");
      EXPECT_TRUE(std::isnan(next->number("nothing")));
      auto said = study->tell(next->trial, {{"loss", train(*next)}});
      ASSERT_TRUE(said) << said.error().message;
      ASSERT_TRUE(study->finish(next->trial));
    }
    EXPECT_EQ(trials, 40) << searcher;
    EXPECT_TRUE(study->over());
    auto best = study->best();
    ASSERT_TRUE(best);
    EXPECT_LT(best->metric, 0.01) << searcher;
  }
}

TEST(Study, StopsBadTrialsEarly) {
  auto o = over_x(
    R"({"name": "adaptive_asha", "max_time": 16, "divisor": 4, "max_concurrent_trials": 4, "mode": "aggressive"})",
    24);
  o.time_metric = "epoch";
  auto study = troupe::study::make(o);
  ASSERT_TRUE(study) << study.error().message;
  int stopped = 0, whole = 0;
  while (auto next = study->ask()) {
    auto verdict = troupe::verdict::go_on;
    int epoch = 0;
    while (verdict == troupe::verdict::go_on && epoch < 16) {
      ++epoch;
      auto said = study->tell(next->trial, {{"loss", train(*next) + 1.0 / epoch}, {"epoch", epoch}});
      ASSERT_TRUE(said) << said.error().message;
      verdict = *said;
    }
    (epoch < 16 ? stopped : whole) += 1;
    ASSERT_TRUE(study->finish(next->trial));
  }
  EXPECT_GT(stopped, 5);
  EXPECT_GT(whole, 0);
  EXPECT_TRUE(study->over());
}

TEST(Study, GoesOnFromItsBytesExactly) {
  auto a = troupe::study::make(over_x("tpe", 30));
  ASSERT_TRUE(a);
  for (int i = 0; i < 12; ++i) {
    auto next = a->ask();
    ASSERT_TRUE(next);
    ASSERT_TRUE(a->tell(next->trial, {{"loss", train(*next)}}));
    ASSERT_TRUE(a->finish(next->trial));
  }
  auto b = troupe::study::load(over_x("tpe", 30), a->save());
  ASSERT_TRUE(b) << b.error().message;
  for (;;) {
    auto one = a->ask(), other = b->ask();
    ASSERT_EQ(one.has_value(), other.has_value());
    if (!one)
      break;
    EXPECT_EQ(one->hparams, other->hparams);
    for (auto* s : {&*a, &*b}) {
      ASSERT_TRUE(s->tell(one->trial, {{"loss", train(*one)}}));
      ASSERT_TRUE(s->finish(one->trial));
    }
  }
  EXPECT_EQ(a->best()->metric, b->best()->metric);
  for (const std::string& bytes : {std::string("nonsense"), a->save().substr(0, 40)})
    EXPECT_EQ(troupe::study::load(over_x("tpe", 30), bytes).error().code, troupe::errc::corrupt);
}

TEST(Study, BadInputNamesThePlace) {
  auto wrong = [](const troupe::study_options& o) {
    auto made = troupe::study::make(o);
    return made ? std::string("made") : made.error().message;
  };
  auto o = over_x("random", 5);
  o.searcher = "nonsense";
  EXPECT_NE(wrong(o).find("nonsense"), std::string::npos) << wrong(o);
  o = over_x("{name: random, max_trials: [", 5);
  EXPECT_NE(wrong(o), "made");
  o = over_x("random", 5);
  o.space = {{"x", troupe::parameter::json{R"({"type": "double", "minval": 2, "maxval": 1})"}}};
  EXPECT_NE(wrong(o).find("x"), std::string::npos) << wrong(o);
  auto study = troupe::study::make(over_x("random", 2));
  ASSERT_TRUE(study);
  EXPECT_EQ(study->tell("99", {{"loss", 1}}).error().code, troupe::errc::not_found);
  EXPECT_EQ(study->finish("99").error().code, troupe::errc::not_found);
  auto next = study->ask();
  ASSERT_TRUE(next);
  EXPECT_TRUE(study->tell(next->trial, {{"loss", std::nan("")}})) << "NaN ranks last and fails nothing";
  EXPECT_FALSE(study->best());
  ASSERT_TRUE(study->finish(next->trial, true));
  ASSERT_TRUE(study->finish(next->trial, true)) << "a repeat";
}

} // namespace
