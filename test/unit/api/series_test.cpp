// Tests curves, summaries and importance, from which charts are drawn.

#include "table.hpp"

#include "runtime/api/importance.hpp"
#include "runtime/api/live_stream.hpp"
#include "runtime/api/search_story.hpp"
#include "runtime/api/series_columns.hpp"

#include <cmath>
#include <functional>
#include <gmock/gmock.h>
#include <limits>
#include <random>
#include <sstream>

namespace troupe::api {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

void report(fake_reader& r, std::uint64_t trial, const std::string& group, std::int64_t steps,
            const value& metrics, std::uint32_t run = 1) {
  std::lock_guard lock{r.mutex};
  auto& rows = r.metric_rows[trial];
  rows.push_back(
    {rows.size() + 1, group, steps, {run}, t0 + std::chrono::seconds(steps), to_msgpack(metrics)});
}

value asked(table& t, const std::string& target, unsigned status = 200) {
  auto got = t.ask("GET", target, t.user());
  EXPECT_EQ(got.status, status) << target << "\n" << got.body;
  return *parse_json(got.body);
}

TEST(MetricKind, IsThatOfTheValue) {
  const struct {
    const char *reported, *kind;
  } rows[] = {{"0.5", "number"},
              {R"("NaN")", "number"},
              {R"("words")", "text"},
              {"[[1, 2], [3, 4]]", "matrix"},
              {R"({"matrix": [[1]], "labels": ["a"]})", "matrix"},
              {"[1, 2, 3]", "vector"},
              {R"({"columns": ["a"], "rows": [[1], [2]]})", "table"},
              {R"([{"a": 1, "b": 2}, {"b": 3, "a": 4}])", "table"},
              {R"([{"a": 1}, {"b": 2}])", "other"},
              {R"([{"a": 1}, {"a": 1, "b": 2}])", "table"},
              {R"([{"a": 1, "b": 2}, {"a": 1, "c": 2}])", "other"},
              {R"([{"a": 1}, 2])", "other"},
              {"[]", "other"},
              {R"({"a": {"b": 1}})", "other"}};
  for (const auto& row : rows)
    EXPECT_STREQ(name(kind_of(*parse_json(row.reported))), row.kind) << row.reported;
}

TEST(Series, ReportsOfARunThatWasGivenUpAreLeftOut) {
  table t;
  auto x = asked(t, "/troupe/v1/series?trials=12&group=training&metric=loss");
  ASSERT_EQ(x["series"].size(), 1u);
  EXPECT_EQ(x["series"][0]["x"], value({50})) << "step 150 was of run 1, and run 2 began at 100";
  EXPECT_EQ(x["series"][0]["y"], value({0.5}));
  EXPECT_EQ(x["series"][0]["count"], 1);
  EXPECT_EQ(x["series"][0]["row"], 1);
}

TEST(Series, AScriptThatBeginsAnewInALaterRunDrawsItsStepsOnce) {
  table t;
  t.reader->trial_rows[13].runs = {{.run = {1}, .started = t0, .ended = t0 + 10s},
                                   {.run = {2}, .started = t0 + 100s, .from_steps = 8}};
  for (int step = 1; step <= 9; ++step)
    report(*t.reader, 13, "training", step, {{"loss", step}}, 1);
  const auto line = [&] {
    return asked(t, "/troupe/v1/series?trials=13&group=training&metric=loss")["series"][0];
  };
  EXPECT_EQ(line()["x"], value({1, 2, 3, 4, 5, 6, 7, 8})) << "up to its checkpoint";
  report(*t.reader, 13, "training", 3, {{"loss", 30}}, 2); // run 2 did not load the checkpoint
  report(*t.reader, 13, "training", 4, {{"loss", 40}}, 2);
  EXPECT_EQ(line()["x"], value({1, 2, 3, 4}));
  EXPECT_EQ(line()["y"], value({1, 2, 30, 40}));
  report(*t.reader, 13, "training", 2, {{"other", 1}}, 2);
  EXPECT_EQ(line()["x"], value({1, 3, 4})) << "the metric itself has no new report";
}

TEST(Series, OfAStepThatARunReportsTwiceTheLaterValueIsDrawn) {
  table t;
  t.reader->trial_rows[13].runs = {{.run = {1}, .started = t0}};
  for (const auto* group : {"training", "own", "profiler"}) {
    report(*t.reader, 13, group, 1, {{"loss", 10}, {"epoch", 0.1}});
    report(*t.reader, 13, group, 2, {{"loss", 20}, {"epoch", 0.2}});
    report(*t.reader, 13, "validation", 2, {{"loss", 0}});
    report(*t.reader, 13, group, 2, {{"other", 7}});
    report(*t.reader, 13, group, 2, {{"loss", 21}, {"epoch", 0.3}});
    report(*t.reader, 13, group, 3, {{"loss", 30}});
  }
  const auto line = [&](const std::string& query) {
    return asked(t, "/troupe/v1/series?trials=13&metric=loss&group=" + query)["series"][0];
  };
  EXPECT_EQ(line("training")["x"], value({1, 2, 3}));
  EXPECT_EQ(line("training")["y"], value({10, 21, 30}));
  EXPECT_EQ(line("training")["count"], 3);
  EXPECT_EQ(line("training&x=epoch")["x"], value({0.1, 0.3}));
  EXPECT_EQ(line("training&x=epoch")["y"], value({10, 21}));
  EXPECT_EQ(line("own")["y"], value({10, 21, 30}));
  EXPECT_EQ(line("profiler")["y"], value({10, 20, 21, 30})) << "samples, not steps";
  report(*t.reader, 13, "own", 0, {{"plain", 1}});
  report(*t.reader, 13, "own", 0, {{"plain", 2}});
  EXPECT_EQ(asked(t, "/troupe/v1/series?trials=13&metric=plain&group=own")["series"][0]["y"], value({1, 2}))
    << "reports without a step";
}

TEST(Workloads, ReportsOfOneStepAreOneToTheirReaders) {
  table t;
  t.reader->trial_rows[13].runs = {{.run = {1}, .started = t0}};
  report(*t.reader, 13, "validation", 1, {{"acc", 1}});
  report(*t.reader, 13, "training", 1, {{"a", 2}});
  report(*t.reader, 13, "validation", 1, {{"f1", 5}});
  report(*t.reader, 13, "training", 1, {{"b", 3}});
  report(*t.reader, 13, "validation", 2, {{"acc", 7}});
  const auto all = asked(t, "/api/v1/trials/13/workloads")["workloads"];
  ASSERT_EQ(all.size(), 3u) << all.dump();
  EXPECT_EQ(all[0]["training"]["metrics"]["avgMetrics"], value({{"a", 2}, {"b", 3}}));
  EXPECT_EQ(all[1]["validation"]["metrics"]["avgMetrics"], value({{"acc", 1}, {"f1", 5}}));
  EXPECT_EQ(all[2]["validation"]["metrics"]["avgMetrics"], value({{"acc", 7}}));
  t.reader->trial_rows[13].latest = {.row = 3, .steps = 1, .at = t0, .run = {1}};
  EXPECT_EQ(asked(t, "/api/v1/trials/13")["trial"]["latestValidation"]["metrics"]["avgMetrics"],
            value({{"acc", 1}, {"f1", 5}}));
}

TEST(Series, TimeThatATrialWaitedForSlotsIsNoTimeThatItRan) {
  table t;
  t.reader->trial_rows[13].runs = {
    {.run = {1}, .started = t0 - 50s, .ended = t0 + 10s, .on = {{"a", {0}}}, .placed = t0},
    {.run = {2}, .started = t0 + 10s, .ended = t0 + 90s, .from_steps = 5}, // this run never got slots
    {.run = {3}, .started = t0 + 90s, .from_steps = 5, .on = {{"a", {0}}}, .placed = t0 + 100s}};
  report(*t.reader, 13, "training", 5, {{"loss", 1}}, 1);
  report(*t.reader, 13, "training", 110, {{"loss", 2}}, 3);
  EXPECT_EQ(asked(t, "/troupe/v1/series?trials=13&group=training&metric=loss&x=relative")["series"][0]["x"],
            value({5, 20}));
}

TEST(Series, WhatComesLaterIsReadOnceAndShownAtOnce) {
  table t;
  asked(t, "/troupe/v1/series?trials=12&group=training&metric=loss");
  report(*t.reader, 12, "training", 150, {{"loss", 0.3}}, 2);
  auto x = asked(t, "/troupe/v1/series?trials=12&group=training&metric=loss");
  EXPECT_EQ(x["series"][0]["x"], value({50, 150}));
  EXPECT_EQ(x["series"][0]["row"], 4);
}

TEST(Series, NoSpikeIsLostAndNoPointIsMadeUp) {
  table t;
  std::mt19937_64 dice(3);
  std::vector<double> all;
  for (int i = 0; i < 5000; ++i) {
    all.push_back(i == 2503 ? 1e6 : i == 4001 ? -1e6 : i == 777 ? nan : static_cast<double>(dice() % 1000));
    report(*t.reader, 13, "training", i, {{"loss", all.back()}});
  }
  for (int points : {2, 3, 5, 17, 100, 4999, 5000}) {
    auto x =
      asked(t, "/troupe/v1/series?trials=13&group=training&metric=loss&points=" + std::to_string(points));
    const auto& line = x["series"][0];
    EXPECT_EQ(line["count"], 5000);
    ASSERT_LE(line["y"].size(), static_cast<std::size_t>(points));
    ASSERT_GE(line["y"].size(), static_cast<std::size_t>(std::min(points, 2)));
    std::set<double> kept;
    double before = -1;
    for (std::size_t i = 0; i < line["y"].size(); ++i) {
      const auto step = line["x"][i].get<double>();
      EXPECT_GT(step, before) << "x rises";
      before = step;
      const auto y = *number_in(line["y"][i]);
      const auto was = all[static_cast<std::size_t>(step)];
      EXPECT_TRUE(y == was || (std::isnan(y) && std::isnan(was))) << "a point that was never reported";
      kept.insert(y);
    }
    EXPECT_EQ(line["x"].front(), 0);
    EXPECT_EQ(line["x"].back(), 4999);
    if (points >= 5) {
      EXPECT_TRUE(kept.contains(1e6)) << points;
      EXPECT_TRUE(kept.contains(-1e6)) << points;
    }
  }
}

TEST(Series, MoreTrialsThanAreAnsweredAreRefusedBeforeOneIsLookedFor) {
  table t;
  std::string ids = "1";
  for (int i = 2; i <= 1001; ++i)
    ids += "," + std::to_string(i);
  asked(t, "/troupe/v1/series?trials=" + ids + "&group=training&metric=loss", 400);
}

TEST(LogSearch, KnowsLevelsAndRanks) {
  table t;
  for (const char* wrong : {"levels=bogus", "levels=INFO,x", "ranks=x", "ranks=0,-1", "ranks=1e3"})
    EXPECT_EQ(t.ask("GET", std::string("/troupe/v1/logs/search?q=a&trial=12&") + wrong, t.user()).status,
              400u)
      << wrong;
  for (const char* fine : {"levels=INFO,error&levels=LOG_LEVEL_DEBUG", "levels=UNSPECIFIED",
                           "ranks=0,1&ranks=2", "levels=&ranks="})
    EXPECT_EQ(t.ask("GET", std::string("/troupe/v1/logs/search?q=a&trial=12&") + fine, t.user()).status, 200u)
      << fine;
}

TEST(Series, NumbersThatJsonDoesNotHave) {
  table t;
  report(*t.reader, 13, "validation", 1, {{"acc", nan}});
  report(*t.reader, 13, "validation", 2, {{"acc", inf}});
  report(*t.reader, 13, "validation", 3, {{"acc", -inf}});
  report(*t.reader, 13, "validation", 4, {{"acc", "NaN"}});
  report(*t.reader, 13, "validation", 5, {{"acc", {{1, 2}}}});
  auto x = asked(t, "/troupe/v1/series?trials=13&group=validation&metric=acc");
  EXPECT_EQ(x["series"][0]["y"], value({"NaN", "Infinity", "-Infinity", "NaN"}));
}

TEST(Series, OtherAxes) {
  table t;
  auto& runs = t.reader->trial_rows[13].runs;
  runs = {{.run = {1}, .started = t0, .ended = t0 + 10s},
          {.run = {2}, .started = t0 + 100s, .from_steps = 50}};
  report(*t.reader, 13, "training", 5, {{"loss", 1}, {"epoch", 1}}, 1);
  report(*t.reader, 13, "training", 110, {{"loss", 2}, {"epoch", 2.5}}, 2);
  report(*t.reader, 13, "training", 120, {{"loss", 3}}, 2);
  const auto line = [&](const std::string& x) {
    return asked(t, "/troupe/v1/series?trials=13&group=training&metric=loss&x=" + x)["series"][0];
  };
  EXPECT_EQ(line("time")["x"], value({1'700'000'005, 1'700'000'110, 1'700'000'120}));
  EXPECT_EQ(line("relative")["x"], value({5, 20, 30})) << "90 s between the runs are left out";
  EXPECT_EQ(line("epoch")["x"], value({1, 2.5}));
  EXPECT_EQ(line("epoch")["y"], value({1, 2}));
  EXPECT_EQ(line("metric:epoch")["x"], value({1, 2.5}));
  report(*t.reader, 13, "odd", 5, {{"", 7}}, 2);
  EXPECT_EQ(asked(t, "/troupe/v1/series?trials=13&group=odd&metric=")["series"][0]["y"], value({7.0}));
  report(*t.reader, 13, "odd", 6, {{"", 8}, {"a", 2}}, 2);
  EXPECT_EQ(asked(t, "/troupe/v1/series?trials=13&group=odd&metric=a&x=metric:")["series"][0]["x"],
            value({8.0}));
  EXPECT_EQ(asked(t, "/troupe/v1/experiments/7/trials?metrics=odd.")["trials"].size(), 1u);
  EXPECT_TRUE(live_topics::read("series/7/odd/"));
  auto part = asked(t, "/troupe/v1/series?trials=13&group=training&metric=loss&from=6&to=115");
  EXPECT_EQ(part["series"][0]["x"], value({110}));
}

TEST(MetricsStreams, TellNothingOfArchivedReports) {
  table t;
  t.reader->experiment_rows[7].state = experiment_state::completed;
  report(*t.reader, 12, "training", 160, {{"loss", 0.3}, {"old", 1}}, 1);
  report(*t.reader, 12, "training", 170, {{"old", 1}}, 1);
  const std::string of_one = "/api/v1/experiments/7/metrics-stream/";
  const auto told = [&](const std::string& target) { return asked(t, target)["result"]; };
  EXPECT_EQ(told(of_one + "batches?group=training&metricName=loss")["batches"], value({50}));
  EXPECT_EQ(told(of_one + "batches?group=training&metricName=old")["batches"], value::array());
  EXPECT_EQ(told("/api/v1/experiments/metrics-stream/metric-names?ids=7")["trainingMetrics"],
            value({"loss"}));
  EXPECT_EQ(told(of_one + "trials-snapshot?group=training&metricName=loss&batchesProcessed=150")["trials"],
            value::array());
  EXPECT_EQ(told(of_one + "trials-sample?group=training&metricName=loss")["trials"][0]["data"].size(), 1u);
}

TEST(MetricsStreams, EndWithinSecondsForWhoMayNotSeeTheExperimentAnyMore) {
  table t;
  report(*t.reader, 13, "training", 10, {{"loss", 3}}, 1);
  auto let_in =
    t.api.admit({"GET",
                 "/api/v1/experiments/8/metrics-stream/batches?group=training&metricName=loss&periodSeconds="
                 "600",
                 t.user("admin")});
  response got;
  t.api.run(std::move(std::get<admission>(let_in)), "", reply{[&](response x) { got = std::move(x); }});
  ASSERT_TRUE(got.stream) << got.body;
  EXPECT_FALSE(got.stream->next(t0 + 60s)->last);
  const auto pause = got.stream->next(t0 + 61s)->pause.value_or(1h);
  EXPECT_LE(pause, 5s);
  t.reader->experiment_rows.erase(8);
  EXPECT_TRUE(got.stream->next(t0 + 61s + pause)->last);
}

TEST(MetricsStreams, ASampleTellsOfStepsThatAreTrainedAgain) {
  table t;
  report(*t.reader, 13, "training", 10, {{"loss", 3}}, 1);
  report(*t.reader, 13, "training", 20, {{"loss", 2}}, 1);
  t.reader->trial_rows[13].best = {.row = 1, .steps = 10, .metric = 0.5, .at = t0, .run = {1}};
  auto let_in = t.api.admit(
    {"GET",
     "/api/v1/experiments/8/metrics-stream/trials-sample?group=training&metricName=loss&periodSeconds=1",
     t.user("admin")});
  response got;
  t.api.run(std::move(std::get<admission>(let_in)), "", reply{[&](response x) { got = std::move(x); }});
  ASSERT_TRUE(got.stream) << got.body;
  const auto steps = [&](std::chrono::seconds at) {
    std::string out;
    const auto said = *parse_json(got.stream->next(t0 + at)->bytes);
    for (const auto& one : said["result"]["trials"][0]["data"])
      out += to_json(one["batches"]) + " ";
    return out;
  };
  EXPECT_EQ(steps(60s), "10 20 ");
  t.reader->trial_rows[13].runs.push_back({.run = {2}, .started = t0 + 60s, .from_steps = 10});
  report(*t.reader, 13, "training", 15, {{"loss", 1}}, 2);
  EXPECT_EQ(steps(62s), "15 ");
  EXPECT_EQ(steps(64s), "");
}

TEST(Series, NamesOfSamplesForWhoAsksForTheirGroup) {
  table t;
  report(*t.reader, 12, "system", 0, {{"cpu_percent", 1}});
  report(*t.reader, 12, "system", 0, {{"a/0/gpu_percent", 2}});
  report(*t.reader, 13, "system", 0, {{"b/0/gpu_percent", 2}});
  const auto names = [&](const std::string& query, std::uint64_t experiment = 7) {
    std::string out;
    const auto got = asked(t, "/troupe/v1/experiments/" + std::to_string(experiment) + "/metrics" + query);
    for (const auto& one : got["metrics"])
      out += one["group"].get<std::string>() + "." + one["name"].get<std::string>() + " ";
    return out;
  };
  EXPECT_THAT(names(""), testing::Not(testing::HasSubstr("system")));
  EXPECT_EQ(names("?group=system"), "system.a/0/gpu_percent system.cpu_percent ");
  EXPECT_EQ(names("?group=system&trial=12"), "system.a/0/gpu_percent system.cpu_percent ");
  report(*t.reader, 12, "system", 0, {{"c/1/gpu_percent", 2}}); // the value of a later run on another agent
  EXPECT_THAT(names("?group=system&trial=12"), testing::HasSubstr("c/1/gpu_percent"));
  EXPECT_EQ(names("?group=system", 8), "system.b/0/gpu_percent ");
  EXPECT_EQ(names("?group=training"), "training.loss ");
  EXPECT_EQ(names("?group=none"), "");
  asked(t, "/troupe/v1/experiments/7/metrics?trial=13", 404);
  asked(t, "/troupe/v1/experiments/7/metrics?trial=x", 404);
}

TEST(Series, WrongQuestions) {
  table t;
  for (const char* query :
       {"trials=12&group=training", "trials=12&metric=loss", "group=training&metric=loss",
        "trials=12&experiment=7&group=training&metric=loss", "trials=x&group=training&metric=loss",
        "trials=12&group=training&metric=loss&points=", "trials=12&group=training&metric=loss&x=moon",
        "trials=12&group=training&metric=loss&points=1", "trials=12&group=training&metric=loss&points=10001",
        "trials=12&group=training&metric=loss&from=a", "experiment=abc&group=training&metric=loss"})
    asked(t, std::string("/troupe/v1/series?") + query, 400);
  asked(t, "/troupe/v1/series?trials=12,99&group=training&metric=loss", 404);
  asked(t, "/troupe/v1/series?experiment=99&group=training&metric=loss", 404);
  EXPECT_EQ(asked(t, "/troupe/v1/series?experiment=7&group=training&metric=loss")["series"].size(), 1u);
}

TEST(Summaries, LastLowestAndHighestBesideEachTrial) {
  table t;
  for (double y : {0.5, nan, 0.2, 0.9, 0.4})
    report(*t.reader, 13, "validation", static_cast<int>(t.reader->metric_rows[13].size()), {{"acc", y}});
  auto x = asked(t, "/troupe/v1/experiments/8/trials?metrics=validation.acc,training.loss");
  EXPECT_EQ(x["trials"][0]["metrics"],
            value({{"validation.acc", {{"last", 0.4}, {"min", 0.2}, {"max", 0.9}}}}));
  // A report adds no fact, and the stored answer must still not be given.
  report(*t.reader, 13, "validation", 9, {{"acc", 7}});
  x = asked(t, "/troupe/v1/experiments/8/trials?metrics=validation.acc,training.loss");
  EXPECT_EQ(x["trials"][0]["metrics"]["validation.acc"]["max"], 7);
  EXPECT_FALSE(asked(t, "/troupe/v1/experiments/8/trials")["trials"][0].contains("metrics"));
  asked(t, "/troupe/v1/experiments/8/trials?metrics=acc", 400);
}

TEST(Summaries, ARunThatIsGivenUpTakesItsNumbersWithIt) {
  table t;
  auto before = asked(t, "/troupe/v1/experiments/7/trials?metrics=training.loss");
  EXPECT_EQ(before["trials"][0]["metrics"]["training.loss"]["last"], 0.5);
  report(*t.reader, 12, "training", 110, {{"loss", 0.01}}, 2);
  t.reader->trial_rows[12].runs.push_back({.run = {3}, .started = t0 + 40s, .from_steps = 100});
  auto after = asked(t, "/troupe/v1/experiments/7/trials?metrics=training.loss");
  EXPECT_EQ(after["trials"][0]["metrics"]["training.loss"]["min"], 0.5);
}

TEST(Metrics, ASummaryHasTheMeanOfNumbersAndTheLastOfTexts) {
  table t;
  for (int step = 1; step <= 3; ++step)
    report(*t.reader, 13, "validation", step,
           {{"acc", step == 2 ? value("NaN") : value(0.5 * step)}, {"note", "word " + std::to_string(step)}});
  const auto got = asked(t, "/api/v1/trials/13")["trial"]["summaryMetrics"]["validation_metrics"];
  EXPECT_EQ(got["acc"], (value{{"type", "number"},
                               {"count", 3},
                               {"min", 0.5},
                               {"max", 1.5},
                               {"sum", 2.0},
                               {"mean", 1.0},
                               {"last", 1.5}}));
  EXPECT_EQ(got["note"], (value{{"type", "string"}, {"count", 3}, {"last", "word 3"}}));
}

TEST(Metrics, ASummaryCountsAStepOnce) {
  table t;
  auto& runs = t.reader->trial_rows[13].runs;
  runs = {{.run = {1}, .started = t0}};
  const auto told = [&] { return asked(t, "/api/v1/trials/13")["trial"]["summaryMetrics"]["avg_metrics"]; };
  report(*t.reader, 13, "training", 1, {{"loss", 4}});
  report(*t.reader, 13, "training", 2, {{"loss", 9}, {"note", "a"}});
  EXPECT_EQ(told()["loss"]["max"], 9);
  report(*t.reader, 13, "validation", 2, {{"loss", 1}}); // another group
  report(*t.reader, 13, "training", 2, {{"acc", 0.5}});  // another metric
  report(*t.reader, 13, "training", 2, {{"loss", 2}, {"note", "b"}});
  report(*t.reader, 13, "training", 2, {{"loss", 3}});
  const value loss{{"type", "number"}, {"count", 2},  {"min", 3}, {"max", 4},
                   {"sum", 7},         {"mean", 3.5}, {"last", 3}};
  EXPECT_EQ(told()["loss"], loss);
  EXPECT_EQ(told()["note"], (value{{"type", "string"}, {"count", 1}, {"last", "b"}}));
  EXPECT_EQ(told()["acc"]["count"], 1);
  runs.push_back({.run = {2}, .started = t0 + 9s, .from_steps = 2});
  report(*t.reader, 13, "training", 2, {{"loss", 3}}, 2); // a run that goes on there reports its step again
  EXPECT_EQ(told()["loss"], loss);
  for (int i = 0; i < 2; ++i) // a report without a step is of step 0
    report(*t.reader, 13, "other", 0, {{"loss", 1}}, 2);
  EXPECT_EQ(asked(t, "/api/v1/trials/13")["trial"]["summaryMetrics"]["other"]["loss"]["count"], 2);
}

TEST(Metrics, ASummaryTellsALastNumberThatIsNotFinite) {
  table t;
  report(*t.reader, 13, "validation", 1, {{"acc", 0.5}, {"worst", "-Infinity"}});
  report(*t.reader, 13, "validation", 2, {{"acc", "NaN"}});
  const auto got = asked(t, "/api/v1/trials/13")["trial"]["summaryMetrics"]["validation_metrics"];
  EXPECT_EQ(got["acc"]["last"], "NaN");
  EXPECT_EQ(got["acc"]["max"], 0.5);
  EXPECT_EQ(got["worst"]["last"], "-Infinity");
  EXPECT_FALSE(got["worst"].contains("max"));
}

/// A trial's reports as each of their readers tells them: "1 2 3", the steps of those that count.
struct told_steps {
  table& t;
  std::string of(const std::string& target, const std::function<void(const value&, value&)>& take) {
    value steps = value::array();
    auto got = t.ask("GET", target, t.user());
    EXPECT_EQ(got.status, 200u) << got.body;
    if (const auto whole = parse_json(got.body)) {
      take(*whole, steps);
      return steps.dump();
    }
    std::istringstream lines(got.body); // a stream has a value in each line
    for (std::string line; std::getline(lines, line);)
      if (const auto one = parse_json(line))
        take(*one, steps);
      else
        ADD_FAILURE() << target << ": " << one.error().what << ": " << line;
    return steps.dump();
  }
  std::string lines(const std::string& group) {
    return of("/api/v1/trials/metrics/trial_metrics?trialIds=13&group=" + group,
              [](const value& line, value& steps) {
                for (const auto& one : line["result"]["metrics"])
                  steps.push_back(one["totalBatches"]);
              });
  }
  std::string workloads(const std::string& group) {
    return of("/api/v1/trials/13/workloads?group=" + group, [&](const value& all, value& steps) {
      for (const auto& one : all["workloads"])
        if (one.contains(group))
          steps.push_back(one[group]["totalBatches"]);
    });
  }
  std::string series(const std::string& group) {
    return of("/troupe/v1/series?trials=13&group=" + group + "&metric=loss",
              [](const value& all, value& steps) {
                for (const auto& x : all["series"][0]["x"])
                  steps.push_back(x.get<int>());
              });
  }
  value count(const std::string& key) {
    return asked(t, "/api/v1/trials/13")["trial"]["summaryMetrics"][key]["loss"]["count"];
  }
};

TEST(Rollback, IsOneRuleForAllReaders) {
  table t;
  told_steps told{t};
  auto& runs = t.reader->trial_rows[13].runs;
  runs = {{.run = {1}, .started = t0, .ended = t0 + 5s}};
  const auto both = [&](int step, std::uint32_t run) {
    report(*t.reader, 13, "training", step, {{"loss", step}}, run);
    report(*t.reader, 13, "validation", step, {{"loss", step}}, run);
  };
  const auto expect = [&](const std::string& training, const std::string& validation, std::size_t count,
                          const char* when) {
    for (const auto& [group, steps] : {std::pair{"training", training}, {"validation", validation}}) {
      EXPECT_EQ(told.lines(group), steps) << when;
      EXPECT_EQ(told.workloads(group), steps) << when;
      EXPECT_EQ(told.series(group), steps) << when;
    }
    EXPECT_EQ(told.count("validation_metrics"), count) << when;
  };
  for (int step = 1; step <= 4; ++step)
    both(step, 1);
  expect("[1,2,3,4]", "[1,2,3,4]", 4, "of the first run");
  runs.push_back({.run = {2}, .started = t0 + 9s, .from_checkpoint = "c", .from_steps = 2});
  expect("[1,2]", "[1,2]", 2, "it started from step 2");
  report(*t.reader, 13, "validation", 2, {{"loss", 9}}, 2);
  expect("[1,2]", "[1,2]", 2, "the same step again, in one group");
  both(3, 2);
  expect("[1,2,3]", "[1,2,3]", 3, "of both runs");
  runs.push_back({.run = {3}, .started = t0 + 20s});
  expect("[1,2,3]", "[1,2,3]", 3, "it started from no checkpoint, and has reported nothing");
  report(*t.reader, 13, "other", 0, {{"loss", 1}}, 3);
  report(*t.reader, 13, "system", 0, {{"cpu_percent", 1}}, 3);
  expect("[1,2,3]", "[1,2,3]", 3, "what has no step archives nothing");
  both(5, 3);
  expect("[1,2,3,5]", "[1,2,3,5]", 4, "it went on");
  runs.push_back({.run = {4}, .started = t0 + 30s});
  report(*t.reader, 13, "training", 2, {{"loss", 1}}, 4);
  expect("[1,2]", "[1,2]", 2, "above it, all groups; at it, its own");
  const auto own = asked(t, "/troupe/v1/trials/13/metrics?group=training");
  value marks = value::array();
  for (const auto& one : own)
    marks.push_back(one["archived"]);
  EXPECT_EQ(marks, value({false, true, true, true, true, true, false})) << "its own form marks them";
}

TEST(Metrics, ASummaryTellsTheTypeAndTheLastOfAllElse) {
  table t;
  const value many(std::vector<int>(5000, 1));
  for (int step = 1; step <= 2; ++step)
    report(*t.reader, 13, "validation", step,
           {{"fine", step == 1},
            {"none", nullptr},
            {"when", "2026-11-0" + std::to_string(step) + "T00:00:00Z"},
            {"pair", {step, "x"}},
            {"tree", {{"a", {{"b", step}}}}},
            {"many", many}});
  report(*t.reader, 13, "profiler", 0, {{"samples", {1, 2}}});
  const auto got = asked(t, "/api/v1/trials/13")["trial"]["summaryMetrics"];
  EXPECT_FALSE(got.contains("profiler"));
  const auto is = [](const char* type, value last) {
    return value{{"type", type}, {"count", 2}, {"last", std::move(last)}};
  };
  EXPECT_EQ(got["validation_metrics"], (value{{"fine", is("boolean", false)},
                                              {"none", is("null", nullptr)},
                                              {"when", is("date", "2026-11-02T00:00:00Z")},
                                              {"pair", is("array", {2, "x"})},
                                              {"tree", is("object", {{"a", {{"b", 2}}}})},
                                              {"many", {{"type", "array"}, {"count", 2}}}}));
}

TEST(Metrics, KindsAreToldByTheirForm) {
  table t;
  report(*t.reader, 13, "validation", 1,
         {{"acc", 0.5},
          {"confusion", {{3, 1}, {0, 4}}},
          {"named", {{"matrix", {{1}}}, {"labels", {"a"}}}},
          {"per_class", {0.1, "NaN", 3}},
          {"rows", {{{"a", 1}}, {{"a", 2}}}},
          {"sheet", {{"columns", {"a"}}, {"rows", {{1}}}}},
          {"note", "text"},
          {"ragged", {{1, 2}, {3}}},
          {"tree", {{"a", {{"b", 1}}}}}});
  auto x = asked(t, "/troupe/v1/experiments/8/metrics");
  std::map<std::string, std::string> kinds;
  for (const auto& m : x["metrics"])
    kinds[m["name"]] = m["kind"];
  EXPECT_EQ(kinds, (std::map<std::string, std::string>{{"acc", "number"},
                                                       {"confusion", "matrix"},
                                                       {"named", "matrix"},
                                                       {"note", "text"},
                                                       {"per_class", "vector"},
                                                       {"ragged", "other"},
                                                       {"rows", "table"},
                                                       {"sheet", "table"},
                                                       {"tree", "other"}}));
  report(*t.reader, 13, "validation", 5, {{"acc", 0.25}});
  x = asked(t, "/troupe/v1/experiments/8/metrics");
  for (const auto& m : x["metrics"])
    EXPECT_EQ(m["lastReport"], to_rfc3339(t0 + std::chrono::seconds(m["name"] == "acc" ? 5 : 1))) << m;
}

TEST(MsgpackColumns, EveryTagIsPassedOver) {
  value odd = {
    {"a", {nullptr, true, false, -1, -200, -70000, -5'000'000'000, 5, 200, 70000, 5'000'000'000, 1.5}},
    {"b", std::string(40, 'x')},
    {"c", std::string(300, 'x')},
    {"d", std::string(70'000, 'x')},
    {"e", value::binary({1, 2, 3})},
    {"f", value::array()},
    {"z", 42.5}};
  for (int i = 0; i < 70'000; ++i)
    odd["f"].push_back(i);
  EXPECT_EQ(number_of(to_msgpack(odd), "z"), 42.5);
  EXPECT_EQ(number_of(to_msgpack(odd), "b"), std::nullopt);
  EXPECT_EQ(number_of(to_msgpack({{"n", -5'000'000'000}}), "n"), -5e9);
  const auto whole = to_msgpack({{"a", {1, 2, 3}}, {"z", 1.0}});
  // A value that is cut short anywhere gives no number and no crash.
  for (std::size_t cut = 0; cut < whole.size(); ++cut)
    EXPECT_FALSE(number_of(std::string_view(whole).substr(0, cut), "z")) << cut;
}

// ---- importance

TEST(Importance, ThePlantedOrderIsFound) {
  std::mt19937_64 dice(11);
  std::uniform_real_distribution<double> any(0, 1);
  // The loss depends on a strongly, on b weakly, and not on c.
  std::vector<importance_input> in = {
    {"c", false, {}}, {"b", false, {}}, {"a", false, {}}, {"same", false, {}}};
  std::vector<double> loss;
  for (int i = 0; i < 400; ++i) {
    const double a = any(dice), b = any(dice), c = any(dice);
    in[0].values.push_back(c);
    in[1].values.push_back(b);
    in[2].values.push_back(a);
    in[3].values.push_back(7);
    loss.push_back(10 * (a - 0.3) * (a - 0.3) + (b - 0.8) * (b - 0.8));
  }
  auto out = ped_anova(in, loss);
  ASSERT_EQ(out.size(), 3u) << "what has one value alone is left out";
  EXPECT_EQ(out[0].name, "a");
  EXPECT_EQ(out[1].name, "b");
  EXPECT_EQ(out[2].name, "c");
  EXPECT_GT(out[0].importance, 0.5);
  EXPECT_LT(out[2].importance, 0.1);
  EXPECT_NEAR(out[0].importance + out[1].importance + out[2].importance, 1, 1e-12);
}

TEST(Importance, CategoriesAndLogarithms) {
  std::mt19937_64 dice(5);
  std::uniform_real_distribution<double> any(0, 1);
  std::vector<importance_input> in = {{"lr", true, {}}, {"opt", false, {}}, {"noise", false, {}}};
  std::vector<double> loss;
  for (int i = 0; i < 300; ++i) {
    const double e = -5 + 5 * any(dice);
    const bool adam = any(dice) < 0.5;
    in[0].values.push_back(std::pow(10, e));
    in[1].values.push_back(adam ? "adam" : "sgd");
    in[2].values.push_back(any(dice));
    loss.push_back((e + 3) * (e + 3) + (adam ? 0 : 0.3));
  }
  auto out = ped_anova(in, loss);
  EXPECT_EQ(out[0].name, "lr");
  EXPECT_EQ(out[1].name, "opt");
}

TEST(Importance, OverTheRouteAndBelowEightTrials) {
  table t;
  auto few = asked(t, "/troupe/v1/experiments/7/importance", 400);
  EXPECT_EQ(few["error"]["reason"], "FailedPrecondition");
  for (std::uint64_t i = 100; i < 140; ++i) {
    auto& row = t.reader->trial_rows[i] = t.reader->trial_rows[12];
    row.id = {i};
    row.hparams = {{"net", {{"depth", i % 5}}}, {"lr", 0.001 * static_cast<double>((i * 37) % 41)}};
    row.best.metric = static_cast<double>(i % 5);
  }
  auto x = asked(t, "/troupe/v1/experiments/7/importance");
  EXPECT_EQ(x["method"], "PED-ANOVA");
  EXPECT_EQ(x["trials"], 41);
  std::string some = "100";
  for (int i = 101; i < 110; ++i)
    some += "," + std::to_string(i);
  EXPECT_EQ(asked(t, "/troupe/v1/experiments/7/importance?trials=" + some)["trials"], 10);
  asked(t, "/troupe/v1/experiments/7/importance?trials=100,101", 400);
  asked(t, "/troupe/v1/experiments/7/importance?trials=100,x", 400);
  asked(t, "/troupe/v1/experiments/7/importance?trials=9999", 404);
  EXPECT_EQ(x["hparams"][0]["name"], "net.depth") << x.dump();
  const auto own = t.reader->experiment_rows[7].metric;
  EXPECT_EQ(asked(t, "/troupe/v1/experiments/7/importance?metric=" + own), x);
  EXPECT_EQ(asked(t, "/troupe/v1/experiments/7/importance?metric=validation." + own), x)
    << "the name of its column";
}

// ---- the story of a search

struct story_reader : fake_reader {
  std::vector<std::string> stored;
  result<std::vector<std::string>> facts_of(std::string_view, std::uint64_t) const override { return stored; }
};

/// A search with the rungs of 4 and 16 epochs.
experiment_row halving() {
  experiment_row e;
  e.id = {7};
  e.metric = "loss";
  e.config = value{{"searcher",
                    {{"name", "adaptive_asha"},
                     {"metric", "loss"},
                     {"time_metric", "epoch"},
                     {"smaller_is_better", true},
                     {"max_time", 16},
                     {"max_trials", 4},
                     {"max_concurrent_trials", 4},
                     {"divisor", 4},
                     {"num_rungs", 2},
                     {"max_rungs", 2},
                     {"mode", "aggressive"}}},
                   {"hyperparameters", {{"x", {{"type", "double"}, {"minval", 0}, {"maxval", 1}}}}}};
  return e;
}

TEST(Story, RungsSayWhoEnteredWhoStoppedAndByWhat) {
  story_reader r;
  const auto e = halving();
  const auto add = [&](search_stepped s) {
    s.at = t0;
    r.stored.push_back(encode(fact{s}));
  };
  search_stepped first;
  for (std::uint64_t i = 1; i <= 2; ++i)
    first.created.push_back({{i}, std::to_string(i), {{"x", 0.5}}});
  add(first);
  search_stepped one;
  one.input = search_input::validated;
  one.trial = {1};
  one.metrics = {{"loss", 0.25}, {"epoch", 4}};
  add(one);
  search_stepped two = one;
  two.trial = {2};
  two.metrics = {{"loss", 0.75}, {"epoch", 4}};
  two.stopped = {{{2}, "not among the best quarter", 0, 4, 0.75, 0.25}};
  add(two);
  auto x = search_story(e, r);
  ASSERT_TRUE(x) << x.error().what;
  ASSERT_EQ((*x)["brackets"].size(), 1u) << x->dump(1);
  const auto& rung = (*x)["brackets"][0]["rungs"][0];
  EXPECT_EQ(rung["units"], 4);
  EXPECT_EQ(rung["entered"], 2);
  EXPECT_EQ(rung["stopped"], 1);
  EXPECT_EQ(rung["needed"], 0.25);
  EXPECT_EQ(rung["trials"][0]["fate"], "runs");
  EXPECT_EQ(rung["trials"][0]["needed"], 0.25) << "by which value it went on";
  EXPECT_EQ(rung["trials"][1]["fate"], "stopped");
  EXPECT_EQ(rung["trials"][1]["needed"], 0.25);
  const auto& went = (*x)["decisions"][2];
  EXPECT_EQ(went["what"], "went on") << went.dump();
  EXPECT_EQ(went["why"], "rung 0 (4 epoch): 0.25, needed 0.25");
  EXPECT_EQ(went["rung"], 0);
  EXPECT_EQ(went["trial"], 1);
  const auto& last = (*x)["decisions"].back();
  EXPECT_EQ(last["what"], "stopped");
  EXPECT_EQ(last["metric"], 0.75);
  EXPECT_EQ(last["needed"], 0.25);
  EXPECT_EQ(last["sequence"], 3);
  search_stepped full = one;
  full.metrics = {{"loss", 0.125}, {"epoch", 16}};
  full.stopped = {{{1}, "", 1, 16, 0.125, std::numeric_limits<double>::quiet_NaN()}};
  add(full);
  x = search_story(e, r);
  ASSERT_TRUE(x) << x.error().what;
  const auto& top = (*x)["brackets"][0]["rungs"][1];
  EXPECT_EQ(top["stopped"], 0);
  EXPECT_EQ(top["trials"][0]["fate"], "finished");
  EXPECT_EQ((*x)["decisions"].back()["what"], "finished") << "as the rungs say";
  EXPECT_EQ((*x)["decisions"].back()["rung"], 1);
  search_stepped three;
  three.input = search_input::exited;
  three.trial = {2};
  three.created = {{{3}, "3", value{{"n", 2}}, 17, ""}};
  three.shut_down = true;
  add(three);
  x = search_story(e, r);
  ASSERT_TRUE(x) << x.error().what;
  const auto& decisions = (*x)["decisions"];
  EXPECT_EQ(decisions[decisions.size() - 2]["why"], "trial 2 has ended");
  EXPECT_EQ(decisions.back()["what"], "finished");
  EXPECT_EQ(decisions.back()["why"], "trial 2 has ended");
  search_stepped alone = one; // of a search without rungs
  alone.trial = {3};
  alone.stopped = {{{3}, "full length reached", -1, 16, 0.125, std::numeric_limits<double>::quiet_NaN()}};
  add(alone);
  x = search_story(e, r);
  ASSERT_TRUE(x) << x.error().what;
  EXPECT_EQ((*x)["decisions"].back()["what"], "finished");
  EXPECT_EQ((*x)["decisions"].back()["why"], "full length reached");
}

TEST(Story, WhoIsPromotedGoesOnAgainstTheBoundOfThatMoment) {
  auto promotes = halving();
  auto config = promotes.config.get();
  config["searcher"]["name"] = "asha_promotion";
  config["searcher"]["divisor"] = 2;
  config["searcher"].erase("max_rungs");
  promotes.config = config;
  story_reader r;
  search_stepped begins, first, second;
  for (std::uint64_t i = 1; i <= 2; ++i)
    begins.created.push_back({{i}, std::to_string(i), {{"x", 0.5}}});
  first.input = second.input = search_input::validated;
  first.trial = {1};
  first.metrics = {{"loss", 0.25}, {"epoch", 8}};
  first.paused = {{1}};
  second.trial = {2};
  second.metrics = {{"loss", 0.75}, {"epoch", 8}};
  second.paused = {{2}};
  second.resumed = {{{1}, 16}};
  for (const auto& one : {begins, first, second})
    r.stored.push_back(encode(fact{one}));
  const auto x = search_story(promotes, r);
  ASSERT_TRUE(x) << x.error().what;
  const auto& last = (*x)["decisions"].back();
  EXPECT_EQ(last["what"], "resumed") << x->dump(1);
  EXPECT_EQ(last["metric"], 0.25);
  EXPECT_EQ(last["needed"], 0.25);
  EXPECT_EQ((*x)["brackets"][0]["rungs"][0]["needed"], 0.25);
}

TEST(Story, EachBracketOfARoundHasItsOwnBounds) {
  auto rounds = halving();
  auto config = rounds.config.get();
  config["searcher"]["name"] = "sync_halving"; // brackets of two trials, one after the other
  config["searcher"]["divisor"] = 2;
  config["searcher"].erase("max_rungs");
  rounds.config = config;
  story_reader r;
  search_stepped begins;
  for (std::uint64_t i = 1; i <= 4; ++i)
    begins.created.push_back({{i}, std::to_string(i), {{"x", 0.5}}});
  r.stored.push_back(encode(fact{begins}));
  const double losses[] = {0.75, 0.25, 0.0625, 0.125};
  for (std::uint64_t i = 1; i <= 4; ++i) {
    search_stepped one;
    one.input = search_input::validated;
    one.trial = {i};
    one.metrics = {{"loss", losses[i - 1]}, {"epoch", 8}};
    one.paused = {{i}};
    const auto best = i == 2 ? 2u : 3u;
    if (i % 2 == 0) { // the last of its bracket
      const auto worse = i == 2 ? 1u : 4u;
      one.resumed = {{{best}, 16}};
      one.stopped = {{{worse}, "", 0, 8, losses[worse - 1], losses[best - 1]}};
    }
    r.stored.push_back(encode(fact{one}));
  }
  const auto x = search_story(rounds, r);
  ASSERT_TRUE(x) << x.error().what;
  const auto& brackets = (*x)["brackets"];
  ASSERT_EQ(brackets.size(), 2u) << x->dump(1);
  for (std::size_t b = 0; b < 2; ++b) {
    const auto& rung = brackets[b]["rungs"][0];
    EXPECT_EQ(rung["entered"], 2);
    EXPECT_EQ(rung["stopped"], 1);
    EXPECT_EQ(rung["needed"], b == 0 ? 0.25 : 0.0625);
    for (const auto& trial : rung["trials"])
      EXPECT_EQ(trial["needed"], rung["needed"]) << trial.dump();
  }
  const auto& last = (*x)["decisions"].back();
  EXPECT_EQ(last["what"], "resumed");
  EXPECT_EQ(last["why"], "rung 0 (8 epoch): 0.0625, needed 0.0625");
}

TEST(Story, WhoRanksLastWithoutANumberWasStoppedAgainstNoBound) {
  story_reader r;
  search_stepped begins, stops;
  begins.created.push_back({{1}, "1", {{"x", 0.5}}});
  stops.input = search_input::validated;
  stops.trial = {1};
  stops.metrics = {{"epoch", 4}};
  constexpr auto none = std::numeric_limits<double>::quiet_NaN();
  stops.stopped = {{{1}, "no usable metric", 0, 4, none, std::numeric_limits<double>::infinity()}};
  for (const auto& one : {begins, stops})
    r.stored.push_back(encode(fact{one}));
  const auto x = search_story(halving(), r);
  ASSERT_TRUE(x) << x.error().what;
  EXPECT_FALSE((*x)["decisions"].back().contains("needed")) << x->dump(1);
  const auto& rung = (*x)["brackets"][0]["rungs"][0];
  EXPECT_TRUE(std::isnan(rung["needed"].get<double>()));
  EXPECT_FALSE(rung["trials"][0].contains("needed"));
}

TEST(Story, AReportThatComesAfterTheStopDecidesNothing) {
  story_reader r;
  search_stepped begins, stops, late;
  begins.created.push_back({{1}, "1", {{"x", 0.5}}});
  stops.input = late.input = search_input::validated;
  stops.trial = late.trial = {1};
  stops.metrics = {{"loss", 0.25}, {"epoch", 1}};
  stops.stopped = {{{1}, "stopped by its user", -1, 0, 0, 0}};
  late.metrics = {{"loss", 0.25}, {"epoch", 4}};
  for (const auto& one : {begins, stops, late})
    r.stored.push_back(encode(fact{one}));
  const auto x = search_story(halving(), r);
  ASSERT_TRUE(x) << x.error().what;
  EXPECT_EQ((*x)["decisions"].size(), 2u) << x->dump(1);
}

TEST(Story, WhoWaitsAtARungUntilTheSearchIsOverIsStoppedThere) {
  story_reader r;
  search_stepped begins, pauses, ends;
  begins.created.push_back({{1}, "1", {{"x", 0.5}}});
  pauses.input = search_input::validated;
  pauses.trial = {1};
  pauses.metrics = {{"loss", 0.25}, {"epoch", 4}};
  pauses.paused = {{1}};
  constexpr auto nan = std::numeric_limits<double>::quiet_NaN();
  ends.stopped = {{{1}, "the search is over and this trial was not promoted", -1, 0, nan, nan}};
  for (const auto& one : {begins, pauses})
    r.stored.push_back(encode(fact{one}));
  auto x = search_story(halving(), r);
  ASSERT_TRUE(x) << x.error().what;
  EXPECT_EQ((*x)["brackets"][0]["rungs"][0]["trials"][0]["fate"], "waits");
  auto killed = halving();
  killed.state = experiment_state::canceled;
  EXPECT_EQ((*search_story(killed, r))["brackets"][0]["rungs"][0]["trials"][0]["fate"], "ended");
  r.stored.push_back(encode(fact{ends}));
  x = search_story(halving(), r);
  ASSERT_TRUE(x) << x.error().what;
  const auto& rung = (*x)["brackets"][0]["rungs"][0];
  EXPECT_EQ(rung["trials"][0]["fate"], "stopped");
  EXPECT_EQ(rung["stopped"], 1);
  EXPECT_EQ(rung["trials"][0]["needed"], 0.25) << "the bound when the search was over";
  EXPECT_THAT((*x)["decisions"].back()["why"].get<std::string>(),
              testing::EndsWith("was not promoted; rung 0 (4 epoch): 0.25, needed 0.25"));
}

// ---- live

std::vector<std::string> events_of(body_stream& s, time_point now) {
  std::vector<std::string> names;
  auto got = s.next(now);
  EXPECT_TRUE(got);
  for (std::size_t at = 0; (at = got->bytes.find("event: ", at)) != got->bytes.npos; ++at)
    names.push_back(got->bytes.substr(at + 7, got->bytes.find('\n', at) - at - 7));
  return names;
}

std::shared_ptr<const services> parts_of(table& t) {
  services parts{t.cluster, t.reader, t.users, {"c", "m", "", "0"}, [] { return t0; }};
  parts.columns = std::make_shared<series_columns>();
  return std::make_shared<const services>(std::move(parts));
}

TEST(Live, TellsWhatChangedAndAtMostFourTimesASecond) {
  table t;
  auto s =
    live_stream(parts_of(t), {}, 3, *live_topics::read("experiments,experiment/7,series/7/training/loss"),
                t.reader->sequence());
  EXPECT_EQ(events_of(*s, t0), (std::vector<std::string>{"hello"}));
  t.reader->add("experiment/7", experiment_changed{t0, experiment_state::paused, ""});
  t.reader->add("trial/12", run_started{t0, {3}, "c1", 100});
  report(*t.reader, 12, "training", 160, {{"loss", 0.1}}, 2);
  EXPECT_TRUE(events_of(*s, t0 + 100ms).empty()) << "too soon";
  EXPECT_EQ(events_of(*s, t0 + 300ms), (std::vector<std::string>{"experiment", "trial", "points"}));
  EXPECT_TRUE(events_of(*s, t0 + 600ms).empty());
}

TEST(Live, TellsTheLaterValueOfAStepThatARunReportsTwice) {
  table t;
  auto s =
    live_stream(parts_of(t), {}, 3, *live_topics::read("series/7/training/loss"), t.reader->sequence());
  EXPECT_EQ(events_of(*s, t0), (std::vector<std::string>{"hello"}));
  t.reader->add("trial/12", run_started{t0, {3}, "c1", 100});
  for (const double loss : {0.5, 0.25})
    report(*t.reader, 12, "training", 160, {{"loss", loss}}, 2);
  const auto told = s->next(t0 + 300ms);
  ASSERT_TRUE(told);
  EXPECT_THAT(told->bytes, testing::HasSubstr(R"("y":[0.25])"));
  EXPECT_THAT(told->bytes, testing::HasSubstr(R"("steps":[160])"));
}

TEST(Live, AReaderThatComesAgainGetsWhatItMissed) {
  table t;
  const auto seen = t.reader->sequence();
  t.reader->add("trial/12", run_started{t0, {3}, "c1", 100});
  auto s = live_stream(parts_of(t), {}, 3, *live_topics::read("experiment/7"), seen);
  EXPECT_EQ(events_of(*s, t0), (std::vector<std::string>{"hello", "experiment", "trial"}))
    << "what the run archives may have been the best of the experiment";
}

TEST(Live, BeginsWithItsUserAndWithAFactThatIsThere) {
  table t;
  const auto there = t.reader->sequence();
  auto s = live_stream(parts_of(t), {}, 3, *live_topics::read("experiments"), there + 1000);
  const auto hello = s->next(t0);
  ASSERT_TRUE(hello);
  EXPECT_TRUE(hello->bytes.starts_with("id: " + std::to_string(there) + "\nevent: hello\n")) << hello->bytes;
  EXPECT_NE(hello->bytes.find("\"user\":3"), std::string::npos) << hello->bytes;
  t.reader->add("experiment/7", experiment_changed{t0, experiment_state::paused, ""});
  EXPECT_EQ(events_of(*s, t0 + 1s), (std::vector<std::string>{"experiment"}))
    << "an older backup was restored since the reader was here";
}

TEST(Live, LinesOfALogAndTheCluster) {
  table t;
  auto s = live_stream(parts_of(t), {}, 3, *live_topics::read("logs/12,cluster"), t.reader->sequence());
  events_of(*s, t0);
  t.reader->log_lines.push_back({4, t0, {{12}, {2}}, "a1", 0, "stdout", "", "line 4"});
  EXPECT_EQ(events_of(*s, t0 + 1s), (std::vector<std::string>{"line", "cluster"}));
}

TEST(Live, WrongTopics) {
  for (const char* text :
       {"moon", "experiment/x", "series/7", "series/7/training", "logs/", "experiment/7/9"})
    EXPECT_FALSE(live_topics::read(text)) << text;
  std::string many;
  for (int i = 1; i <= 101; ++i)
    many += "logs/" + std::to_string(i) + ",";
  EXPECT_FALSE(live_topics::read(many));
}

// ---- logs and files

TEST(LogPage, AroundAnyLine) {
  table t;
  auto x = asked(t, "/troupe/v1/trials/12/log?from=2&limit=1");
  EXPECT_EQ(x["first"], 1);
  EXPECT_EQ(x["last"], 3);
  ASSERT_EQ(x["lines"].size(), 1u);
  EXPECT_EQ(x["lines"][0]["line"], 2);
  auto end = asked(t, "/troupe/v1/trials/12/log?limit=2");
  EXPECT_EQ(end["lines"][0]["line"], 2) << "without a place: the last ones, oldest first";
  asked(t, "/troupe/v1/trials/12/log?limit=0", 400);
  asked(t, "/troupe/v1/trials/99/log", 404);
}

TEST(LogSearch, HitsWithTheirPlacesThenTheEnd) {
  table t;
  const auto lines = [&](const std::string& query) {
    auto got = t.ask("GET", "/troupe/v1/logs/search?" + query, t.user());
    EXPECT_EQ(got.status, 200u) << got.body;
    std::vector<value> out;
    std::istringstream in(got.body);
    for (std::string line; std::getline(in, line);)
      out.push_back(*parse_json(line));
    return out;
  };
  auto all = lines("q=line");
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0]["result"]["spans"], value({{0, 4}}));
  EXPECT_EQ(all[3]["end"], value({{"scanned", 3}, {"hits", 3}, {"after", nullptr}}));
  auto first = lines("q=line&limit=1&experiment=7");
  EXPECT_EQ(first[1]["end"]["after"], "12:1");
  EXPECT_EQ(lines("q=line&after=12:1").size(), 3u);
  EXPECT_EQ(lines("q=line&levels=INFO").size(), 2u);
  EXPECT_EQ(lines("q=nothing").size(), 1u);
  EXPECT_EQ(lines("q=line&experiment=7%2C7").size(), 4u) << "as the page sends a list";
  EXPECT_EQ(t.ask("GET", "/troupe/v1/logs/search", t.user()).status, 400u);
  EXPECT_EQ(t.ask("GET", "/troupe/v1/logs/search?q=a&experiment=99", t.user()).status, 404u);
  EXPECT_EQ(t.ask("GET", "/troupe/v1/logs/search?q=a&experiment=7,99", t.user()).status, 404u);
  EXPECT_EQ(t.ask("GET", "/troupe/v1/logs/search?q=a&experiment=seven", t.user()).status, 404u);
}

} // namespace
} // namespace troupe::api
