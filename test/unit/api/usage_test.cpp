// Tests the slots over time and by user, and an experiment as it was at an earlier time.

#include "table.hpp"

#include "runtime/api/slot_usage.hpp"

namespace troupe::api {
namespace {

using std::chrono::seconds;

TEST(StepMeans, AreOfWhatIsThereInEachStep) {
  step_means x(t0, seconds(10), 4);
  x.add(t0 - seconds(100), t0 + seconds(5), 2); // covers half of the first step
  // covers half of the first step, the next two, and half of the last
  x.add(t0 + seconds(5), t0 + seconds(35), 1);
  x.add(t0 + seconds(12), t0 + seconds(14), 10); // covers a fifth of the second step
  x.add(t0 + seconds(40), t0 + seconds(90), 7);  // begins after the end
  x.add(t0 + seconds(20), t0 + seconds(20), 7);  // covers no time
  const auto means = x.means();
  ASSERT_EQ(means.size(), 4u);
  EXPECT_DOUBLE_EQ(means[0], 1.5);
  EXPECT_DOUBLE_EQ(means[1], 3);
  EXPECT_DOUBLE_EQ(means[2], 1);
  EXPECT_DOUBLE_EQ(means[3], 0.5);
}

TEST(StepMeans, OfManySpansAreTheSumOverAll) {
  step_means x(t0, seconds(7), 100);
  double sum = 0;
  for (int i = 0; i < 500; ++i) {
    const int from = i * 13 % 700, lasts = i * 31 % 97;
    x.add(t0 + seconds(from), t0 + seconds(from + lasts), i % 5);
    sum += (i % 5) * std::min(lasts, 700 - from);
  }
  double found = 0;
  for (const auto mean : x.means()) {
    EXPECT_GE(mean, -1e-9);
    found += mean * 7;
  }
  EXPECT_NEAR(found, sum, 1e-6);
}

TEST(Usage, SaysWhatIsWrongWithItsTimes) {
  table t;
  for (const char* wrong :
       {"from=yesterday", "to=1", "step=0", "step=x", "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
        "from=2020-01-01T00:00:00Z&to=2026-01-01T00:00:00Z&step=1"})
    EXPECT_EQ(t.ask("GET", std::string("/troupe/v1/usage?") + wrong, t.user()).status, 400u) << wrong;
  EXPECT_EQ(t.ask("GET", "/troupe/v1/usage", {}).status, 401u);
}

TEST(Usage, TablesHaveTasksOfEveryKind) {
  storage::usage_record trial, shell;
  trial.trial = {12};
  trial.run = {3};
  trial.experiment = {7};
  trial.user = "ada";
  trial.workspace = "a, b";
  trial.pool = "gpu";
  trial.labels = {"x", "y"};
  trial.slots = 2;
  trial.began = time_point{seconds(0)};
  trial.ended = time_point{seconds(1800)};
  shell = trial;
  shell.trial = {};
  shell.experiment = {};
  shell.run = {1};
  shell.labels.clear();
  shell.task = task_id::of(task_kind::shell, 1, 2);
  EXPECT_EQ(usage_kind(trial), "training");
  EXPECT_EQ(usage_kind(shell), "shell");
  const std::string times = "1970-01-01T00:00:00.000000Z,1970-01-01T00:30:00.000000Z";
  EXPECT_EQ(raw_table({trial, shell}),
            "experiment_id,kind,username,labels,slots,start_time,end_time,seconds\n"
            "7,training,ada,\"x,y\",2," +
              times + ",1800.000\n,shell,ada,,2," + times + ",1800.000\n");
  EXPECT_EQ(allocations_table({trial, shell}),
            "allocation_id,task_type,username,workspace_name,experiment_id,slots,start_time,end_time,"
            "imagepulling_time,slot_hours,resource_pool\n"
            "7.00000000-0000-4000-8000-00000000000c.3,TRIAL,ada,\"a, b\",7,2," +
              times + ",0,1.000000,gpu\n" + to_string(shell.task) + ".1,SHELL,ada,\"a, b\",,2," + times +
              ",0,1.000000,gpu\n");
}

TEST(Usage, DaysAndMonthsEndAtMidnightOfUtc) {
  table t;
  storage::usage_record night;
  night.trial = {12};
  night.run = {1};
  night.experiment = {7};
  night.user = "ada";
  night.pool = "gpu";
  night.labels = {"x"};
  night.slots = 2;
  night.began = *from_rfc3339("1970-01-31T22:00:00Z");
  night.ended = *from_rfc3339("1970-02-01T03:30:00+02:00"); // 1:30 in UTC
  t.reader->record_rows[storage::keys::record(storage::usage_record::tag, storage::keys::two(12, 1))] =
    pack(night);
  const auto sums = [&](const std::string& query) {
    const auto got = t.ask("GET", "/api/v1/resources/allocation/aggregated?" + query, t.user("admin"));
    std::string out;
    const auto list = got.status == 200 ? parse_json(got.body)->at("resourceEntries") : value::array();
    for (const auto& one : list)
      out += std::string(one.at("periodStart")) + " " + one.at("seconds").dump() + " " +
             one.at("byUsername").dump() + "\n";
    return got.status == 200 ? out : got.body;
  };
  EXPECT_EQ(sums("startDate=1970-01-31&endDate=1970-02-02"), "1970-01-31 14400.0 {\"ada\":14400.0}\n"
                                                             "1970-02-01 10800.0 {\"ada\":10800.0}\n"
                                                             "1970-02-02 0.0 {}\n");
  EXPECT_EQ(sums("period=RESOURCE_ALLOCATION_AGGREGATION_PERIOD_MONTHLY&startDate=1970-01&endDate=1970-02"),
            "1970-01 14400.0 {\"ada\":14400.0}\n1970-02 10800.0 {\"ada\":10800.0}\n");
}

TEST(Usage, ListsAreOfOneLength) {
  table t;
  auto got =
    t.ask("GET", "/troupe/v1/usage?from=2026-01-01T00:00:00Z&to=2026-01-01T01:00:00Z&step=60", t.user());
  ASSERT_EQ(got.status, 200u) << got.body;
  const auto x = *parse_json(got.body);
  for (const char* name : {"t", "total", "used", "waiting"})
    EXPECT_EQ(x["slots"][name].size(), 60u) << name;
  EXPECT_EQ(x["slots"]["t"][1], "2026-01-01T00:01:00.000000Z");
  EXPECT_TRUE(x["by"].is_array());
}

TEST(Usage, ComesInTheFormThatIsPreferred) {
  table t;
  const struct {
    const char *accept, *type;
  } rows[] = {
    {"", "application/json"},
    {"*/*", "application/json"},
    {"text/csv", "text/csv"},
    {"Text/CSV;q=0.5", "text/csv"},
    {"text/csv, */*", "text/csv"},
    {"text/csv;q=0.5, application/json", "application/json"},
    {"text/csv;q=0.5, application/json;q=0.4", "text/csv"},
    {"text/csv;q=0.5, application/json;q=0.4, */*", "text/csv"},
    {"application/json, text/csv;q=0", "application/json"},
    {"text/csv;q=0", "application/json"},
  };
  for (const auto& row : rows) {
    auto headers = t.user();
    headers.accept = row.accept;
    const auto got = t.ask("GET", "/troupe/v1/usage", headers);
    EXPECT_EQ(got.status, 200u);
    EXPECT_EQ(got.content_type, row.type) << row.accept;
  }
}

TEST(Usage, WhoHasNoPlaceWaitsButForTrialsThatNobodyPlaces) {
  table t;
  auto& row = t.reader->trial_rows.at(12);
  ASSERT_FALSE(row.runs.empty());
  row.runs.back().on.clear();
  row.runs.back().started = t0;
  row.runs.back().ended = {};
  const auto waiting = [&] {
    const auto x = *parse_json(t.ask("GET", "/troupe/v1/usage", t.user()).body);
    double sum = 0;
    for (const auto& mean : x["slots"]["waiting"])
      sum += mean.get<double>();
    return sum;
  };
  EXPECT_GT(waiting(), 0);
  t.reader->experiment_rows.at(row.experiment.value).unmanaged = true;
  EXPECT_EQ(waiting(), 0);
}

} // namespace
} // namespace troupe::api
