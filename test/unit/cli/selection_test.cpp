// Tests --where and --sort: the cases of the language, with which the web page is tested too, and the columns
// of each list.

#include "runtime/cli/selection.hpp"

#include <cmath>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace troupe;
using namespace troupe::cli;
using testing::HasSubstr;

namespace {

const value& cases() {
  static const value all = [] {
    std::ifstream in(TROUPE_SOURCE_DIR "/test/data/filter_language.json");
    return value::parse(in);
  }();
  return all;
}

/// Returns a column for each key of the rows. The texts "NaN" and "Infinity" are read as numbers.
grid columns() {
  grid all;
  for (const auto& [key, x] : cases().at("rows").at(0).items())
    all.columns.emplace(key, [key](const value& row) {
      const auto number = number_in(row.at(key));
      return number ? value(*number) : row.at(key);
    });
  all.bare = cases().at("bare").get<std::vector<std::string>>();
  return all;
}

value ids(const result<value>& rows) {
  if (!rows)
    return nullptr;
  auto list = value::array();
  for (const auto& row : *rows)
    list.push_back(row.at("id"));
  return list;
}

const time_point now{std::chrono::seconds(1'700'000'000)}; // 2023-11-14T22:13:20Z

value cell(const grid& of, const std::string& key, const value& row) { return of.columns.at(key)(row); }

} // namespace

TEST(Selection, FiltersAsThePageDoes) {
  ASSERT_GT(cases().at("filters").size(), 30u);
  for (const auto& one : cases().at("filters"))
    EXPECT_EQ(ids(selected(cases().at("rows"), columns(), one.at(0), "")), one.at(1)) << one;
}

TEST(Selection, SaysWhereAFilterIsWrong) {
  for (const auto& one : cases().at("faults")) {
    const auto got = conditions_in(one.at(0), columns());
    ASSERT_FALSE(got) << one;
    EXPECT_EQ(got.error().code, errc::invalid);
    EXPECT_THAT(got.error().what, HasSubstr("--where, character " + std::to_string(one.at(1).get<int>() + 1) +
                                            ": " + one.at(2).get<std::string>()));
  }
  const auto near = conditions_in("bets>1", columns());
  ASSERT_FALSE(near);
  EXPECT_THAT(near.error().what, HasSubstr("hint: did you mean 'best'?"));
}

TEST(Selection, SortsAsThePageDoes) {
  for (const auto& one : cases().at("sorts"))
    EXPECT_EQ(ids(selected(cases().at("rows"), columns(), "", one.at(0))), one.at(1)) << one;
  const auto unknown = selected(cases().at("rows"), columns(), "", "-bets");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().what, "--sort: there is no column 'bets'\nhint: did you mean 'best'?");
}

TEST(Selection, NamesTheKeysThatAreAskedFor) {
  EXPECT_EQ(keys_named("m.training.loss.min<3 word 'a b'=1", "-m.validation.acc"),
            (std::vector<std::string>{"m.training.loss.min", "a b", "m.validation.acc"}));
  EXPECT_EQ(metrics_named({"best", "m.training.loss.min", "m.validation.a.b", "m.x.last"},
                          {"training.loss", "validation.a.b", "validation.unasked"}),
            (std::vector<std::string>{"training.loss", "validation.a.b"}));
}

TEST(Selection, TrialsHaveHyperparametersAndMetricsAsColumns) {
  const auto rows = value::parse(R"([
    {"id": 1, "state": "STATE_RUNNING", "best": {"metric": "NaN"}, "latest": null, "totalBatches": 7, "agents": ["a", "b"],
     "hparams": {"lr": 0.1, "net": {"layers": [1, 2], "x.y": 3}, "none": {}, "null": null}, "startTime": "2023-11-14T22:13:10Z",
     "why": "", "stop": {"why": "rung 1"}, "metrics": {"training.a.b": {"last": 3, "min": "-Infinity", "max": 4}}},
    {"id": 2, "hparams": {"opt": "sgd"}, "startTime": "2023-11-14T22:13:10Z", "endTime": "2023-11-14T22:13:12Z",
     "stop": null, "why": "killed", "agents": []}])");
  const auto all = trial_grid(rows, {"training.a.b"}, now);
  const auto &first = rows.at(0), &second = rows.at(1);
  EXPECT_TRUE(std::isnan(cell(all, "best", first).get<double>()));
  EXPECT_EQ(cell(all, "latest", first), nullptr);
  EXPECT_EQ(cell(all, "state", first), "RUNNING");
  EXPECT_EQ(cell(all, "steps", first), 7);
  EXPECT_EQ(cell(all, "agent", first), "a b");
  EXPECT_EQ(cell(all, "why", first), "rung 1");
  EXPECT_EQ(cell(all, "why", second), "killed");
  EXPECT_EQ(cell(all, "duration", first), 10.0);
  EXPECT_EQ(cell(all, "duration", second), 2.0);
  EXPECT_EQ(cell(all, "hp.lr", first), 0.1);
  EXPECT_EQ(cell(all, "hp.lr", second), nullptr);
  EXPECT_EQ(cell(all, "hp.net.layers", first), "[1,2]");
  EXPECT_EQ(cell(all, "hp.net.x.y", first), 3);
  EXPECT_EQ(cell(all, "hp.none", first), "{}");
  EXPECT_EQ(cell(all, "hp.null", first), "null");
  EXPECT_EQ(cell(all, "hp.null", second), nullptr);
  EXPECT_EQ(cell(all, "hp.opt", second), "sgd");
  EXPECT_EQ(cell(all, "m.training.a.b", first), 3.0);
  EXPECT_TRUE(std::isinf(cell(all, "m.training.a.b.min", first).get<double>()));
  EXPECT_EQ(cell(all, "m.training.a.b.max", second), nullptr);
}

TEST(Selection, OtherListsHaveTheColumnsOfTheirGrids) {
  const auto agent = value::parse(R"({"id": "a1", "state": "alive", "enabled": true, "draining": false,
    "slots": {"0": {"container": {"id": "1.1"}}, "1": {"container": null}}, "resourcePools": ["gpu"],
    "addresses": ["h", "i"]})");
  EXPECT_EQ(cell(agent_grid(), "state", agent), "ALIVE");
  EXPECT_EQ(cell(agent_grid(), "slots", agent), 2);
  EXPECT_EQ(cell(agent_grid(), "used", agent), 1);
  EXPECT_EQ(cell(agent_grid(), "host", agent), "h i");
  const auto wait =
    value::parse(R"({"trial": 0, "allocation": "u.1", "order": 2, "explain": {"reason": {"text": "behind"},
    "wouldFree": [{"allocation": "4.1", "slots": 1, "agents": ["a"], "how": "ends", "expectedSeconds": 61},
                  {"allocation": "5.1", "slots": 2, "agents": ["a", "b"], "how": "preempted"},
                  {"allocation": "6.1", "slots": 1, "agents": ["a"], "how": "preempted", "expectedSeconds": 17},
                  {"allocation": null, "slots": 1, "agents": ["a"], "how": "preempted", "stopping": true,
                   "preemptedFor": "u.1"}]}})");
  EXPECT_EQ(cell(queue_grid(), "id", wait), "u.1");
  EXPECT_EQ(cell(queue_grid(), "why", wait), "behind");
  EXPECT_EQ(cell(queue_grid(), "free", wait),
            "4.1 (1 slot on a) ends in about 1 min 01 s; 5.1 (2 slots on a, b) could be preempted; "
            "6.1 (1 slot on a) could be preempted in about 17 s; "
            "another run (1 slot on a) is being preempted for u.1");
  const auto saved =
    value::parse(R"({"uuid": "u", "training": {"searcherMetric": "NaN"}, "resources": {"a": "3", "b": 4}})");
  EXPECT_EQ(cell(checkpoint_grid(), "size", saved), 7.0);
  EXPECT_EQ(cell(checkpoint_grid(), "download", saved), 2);
  const auto reports =
    value::parse(R"([{"row": 1, "archived": true, "metrics": {"loss": 1, "at": 3, "text": "a"}},
                                        {"row": 2, "archived": false, "metrics": {"loss": "NaN", "text": 1}}])");
  const auto of_reports = report_grid(reports);
  EXPECT_EQ(cell(of_reports, "archived", reports.at(0)), "yes");
  EXPECT_EQ(cell(of_reports, "m.at", reports.at(0)), 3.0);
  EXPECT_EQ(cell(of_reports, "loss", reports.at(0)), 1.0);
  // The metric is not a number in every row, so the column holds JSON.
  EXPECT_EQ(cell(of_reports, "text", reports.at(1)), "1");
  EXPECT_EQ(cell(fact_grid(), "fields", value::parse(R"({"fields": {"a": 1}})")), R"({"a":1})");
  EXPECT_TRUE(experiment_grid(now).columns.contains("searcher"));
  EXPECT_TRUE(desk_grid().columns.contains("kind"));
}
