// Tests which checkpoints and logs retention deletes.

#include "actors/retention/retention.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using namespace std::chrono_literals;

value storage(const char* members) { return {{"checkpoint_storage", *parse_json(members)}}; }

std::string joined(const std::vector<std::string>& all) {
  std::string text;
  for (const auto& one : all)
    text += (text.empty() ? "" : " ") + one;
  return text;
}

TEST(Retention, DeletesWhatNoRuleKeeps) {
  const auto none = std::optional<double>{};
  const auto nan = std::optional<double>{std::nan("")};
  const std::vector<checkpoint_standing> two_trials{
    {{1}, "a1", 10, 0.5}, {{1}, "a2", 20, 0.3}, {{1}, "a3", 30, 0.4},
    {{2}, "b1", 10, 0.2}, {{2}, "b2", 20, 0.2}, {{2}, "b3", 30, 0.9},
  };
  struct {
    const char* what;
    retention_policy policy;
    bool smaller;
    std::vector<checkpoint_standing> all;
    const char* gone;
  } cases[] = {
    {"the best and the latest of each trial stay", {0, 1, 1}, true, two_trials, "a1 b2"},
    {"larger may be better", {0, 1, 1}, false, two_trials, "a2 b1 b2"},
    {"only the best of the experiment", {1, 0, 0}, true, two_trials, "a1 a2 a3 b2 b3"},
    {"the two best of the experiment are one trial's", {2, 0, 0}, true, two_trials, "a1 a2 a3 b3"},
    {"no rule keeps anything", {0, 0, 0}, true, two_trials, "a1 a2 a3 b1 b2 b3"},
    {"more are kept than there are", {0, 9, 0}, true, two_trials, ""},
    {"without a metric only the latest stays",
     {5, 5, 1},
     true,
     {{{1}, "a", 1, none}, {{1}, "b", 2, nan}, {{1}, "c", 3, none}},
     "a b"},
    {"the latest has the most steps, not the last name",
     {0, 0, 1},
     true,
     {{{1}, "a", 9, 1.0}, {{1}, "b", 2, 0.5}},
     "b"},
    {"among equals the older one is the best",
     {0, 1, 0},
     false,
     {{{1}, "a", 1, 1.0}, {{1}, "b", 2, 1.0}},
     "b"},
    {"infinities are ranked",
     {0, 1, 0},
     true,
     {{{1}, "a", 1, INFINITY}, {{1}, "b", 2, 3.0}, {{1}, "c", 3, -INFINITY}},
     "a b"},
    {"nothing of nothing", {0, 1, 1}, true, {}, ""},
  };
  for (const auto& c : cases)
    EXPECT_EQ(joined(superfluous(c.policy, c.smaller, c.all)), c.gone) << c.what;
}

TEST(Retention, ReadsTheConfiguration) {
  struct {
    value config;
    std::uint64_t experiment, best, latest;
    bool here;
    std::optional<int> days;
  } cases[] = {
    {value::object(), 0, 1, 1, true, {}},
    {value(), 0, 1, 1, true, {}},
    {storage(
       R"({"type": "shared_fs", "save_experiment_best": 2, "save_trial_best": 3, "save_trial_latest": 0})"),
     2,
     3,
     0,
     true,
     {}},
    {storage(R"({"save_trial_best": null, "save_trial_latest": -1})"), 0, 1, 0, true, {}},
    {storage(R"({"type": "s3"})"), 0, 1, 1, false, {}},
    {{{"retention_policy", {{"log_retention_days", 3}}}}, 0, 1, 1, true, 3},
    {{{"retention_policy", {{"log_retention_days", 0}}}}, 0, 1, 1, true, 0},
    {{{"retention_policy", {{"log_retention_days", -1}}}}, 0, 1, 1, true, -1},
    {{{"retention_policy", {{"log_retention_days", nullptr}}}}, 0, 1, 1, true, {}},
    {{{"retention_policy", nullptr}}, 0, 1, 1, true, {}},
  };
  for (const auto& c : cases) {
    auto got = retention_of(c.config);
    EXPECT_EQ(got.experiment_best, c.experiment) << c.config;
    EXPECT_EQ(got.trial_best, c.best) << c.config;
    EXPECT_EQ(got.trial_latest, c.latest) << c.config;
    EXPECT_EQ(got.deletes_here, c.here) << c.config;
    EXPECT_EQ(got.log_days, c.days) << c.config;
  }
}

TEST(Retention, WaitsAnHourWhereNobodySaidHowManyToKeep) {
  constexpr time_point end{1'700'000'000s};
  EXPECT_EQ(sweep_due("name: x\ncheckpoint_storage: {type: shared_fs, host_path: /a}\n", {}, end), end + 1h);
  EXPECT_EQ(sweep_due("", {}, end), end + 1h);
  for (const char* key : {"save_experiment_best", "save_trial_best", "save_trial_latest"})
    EXPECT_EQ(sweep_due("checkpoint_storage:\n  " + std::string(key) + ": 1\n", {}, end), end) << key;
  for (const char* elsewhere :
       {R"({"save_experiment_best": 1})", R"({"save_trial_best": 0})", R"({"save_trial_latest": 2})"})
    EXPECT_EQ(sweep_due("name: x\n", retention_of(storage(elsewhere)), end), end)
      << "set outside of the text: " << elsewhere;
  EXPECT_EQ(sweep_due("name: x\n", retention_of(storage(R"({"type": "shared_fs"})")), end), end + 1h);
}

TEST(Retention, LogsGoWhenTheirDaysAreOver) {
  constexpr time_point end{1'700'000'000s};
  EXPECT_FALSE(log_expired({}, end, end + 10'000h));
  EXPECT_FALSE(log_expired(48h, end, end + 48h - 1us));
  EXPECT_TRUE(log_expired(48h, end, end + 48h));
  EXPECT_TRUE(log_expired(0h, end, end));
  EXPECT_FALSE(log_expired(0h, time_point{}, end)) << "it has not ended";
}

TEST(Retention, OfLogsIsThatOfTheTrialThenOfTheExperimentThenOfTheCluster) {
  const auto said = [](std::uint64_t trial, int days, std::int64_t at) {
    return log_retention_changed{time_point{std::chrono::seconds(at)}, "ada", {1}, {trial}, days};
  };
  struct {
    std::optional<int> policy;
    std::vector<log_retention_changed> changes;
    std::optional<duration> usual, life;
    /// the days that a policy or a user set; empty: only the default of the cluster holds
    std::optional<int> days;
  } const cases[] = {
    {{}, {}, {}, {}, {}},
    {{}, {}, 12h, 12h, {}},
    {3, {}, 12h, 72h, 3},
    {-1, {}, 12h, {}, -1},
    {3, {said(0, 5, 1)}, 12h, 120h, 5},
    {3, {said(7, 5, 1), said(0, -1, 2)}, 12h, {}, -1},
    {3, {said(7, 5, 2), said(0, -1, 1)}, 12h, 120h, 5},
    {{}, {said(8, 5, 1)}, 12h, 12h, {}},
    {0, {}, {}, 0h, 0},
  };
  for (const auto& one : cases) {
    retention_policy policy;
    policy.log_days = one.policy;
    EXPECT_EQ(log_life(policy, one.changes, {7}, one.usual), one.life) << &one - cases;
    EXPECT_EQ(log_days(policy, one.changes, {7}), one.days) << &one - cases;
  }
}

TEST(Retention, RemovesOnlyFoldersNamedByTheirUuid) {
  const std::string uuid = "0b8a4c4e-6a0f-4ad9-9f2f-6d1d0b1d3f11";
  struct {
    std::string uuid, path;
    bool removable;
  } cases[] = {
    {uuid, "/data/checkpoints/" + uuid, true},
    {uuid, "/data/checkpoints", false},
    {uuid, "checkpoints/" + uuid, false},
    {"..", "/data/..", false},
    {"", "/data/", false},
    {uuid, "/data/x" + uuid, false},
  };
  for (const auto& c : cases) {
    checkpoint saved;
    saved.uuid = c.uuid;
    saved.path = c.path;
    EXPECT_EQ(removable(saved), c.removable) << c.path;
  }
}

} // namespace
} // namespace troupe
