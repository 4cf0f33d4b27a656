#include "storage/projections/projections.hpp"
#include "storage/usage.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace troupe::storage::projections {
namespace {

const time_point t0{std::chrono::seconds(100)};
const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();

struct folded {
  explicit folded(bool smaller_is_better = true)
      : rows([](std::string_view) -> result<std::optional<std::string>> {
          return std::optional<std::string>{};
        }) {
    value config{{"searcher", {{"metric", "loss"}, {"smaller_is_better", smaller_is_better}}}};
    say("cluster", experiment_created{t0, {1}, config, "name", "owner", "c", "text", "key"});
    search_stepped step{.at = t0};
    step.created = {{{7}, "1", value{{"lr", 1}}, 3, ""}, {{8}, "2", value{{"lr", 2}}, 4, ""}};
    say("experiment/1", step);
  }
  void say(const std::string& entity, const fact& x) { fold(x, subject_of(entity), rows); }
  void validate(trial_id trial, std::uint64_t row, std::int64_t steps, const value& metrics,
                run_id run = {}) {
    say("experiment/1", search_stepped{.at = t0,
                                       .input = search_input::validated,
                                       .trial = trial,
                                       .row = row,
                                       .steps = steps,
                                       .metrics = metrics,
                                       .run = run});
  }
  experiment_row experiment() {
    return join(*rows.experiments.find({1}), *rows.experiment_states.find({1}), rows.described.find({1}));
  }
  trial_row trial() { return join(*rows.trials.find({7}), *rows.trial_states.find({7})); }
  tables rows;
};

const run_started started{t0, {1}, "", 0};
const allocation_placed placed{t0, {{"a", {0}}}};
const trial_stop_ordered ordered{t0, trial_state::canceled, false, "cancel"};

TEST(TrialRow, TellsANanThatWasReportedFromAMetricThatIsMissing) {
  folded f;
  f.validate({7}, 1, 10, value{{"loss", nan}});
  EXPECT_TRUE(f.trial().latest.judged && std::isnan(f.trial().latest.metric));
  f.validate({7}, 2, 20, value{{"accuracy", 0.5}});
  EXPECT_EQ(f.trial().latest.row, 2u);
  EXPECT_FALSE(f.trial().latest.judged);
}

TEST(TrialRow, AValidationThatIsDecidedOnInALaterRunIsOfItsOwn) {
  folded f;
  f.say("trial/7", run_started{t0, {1}, "", 0});
  f.validate({7}, 1, 10, value{{"loss", 0.5}}, {1});
  f.say("trial/7", run_started{t0, {2}, "c", 10});
  f.validate({7}, 2, 20, value{{"loss", 0.1}}, {1});
  EXPECT_EQ(f.trial().latest.row, 1u) << "run 2 trains from step 10 again";
  EXPECT_EQ(f.trial().best.row, 1u);
  f.validate({7}, 3, 5, value{{"loss", 0.4}}, {1});
  EXPECT_EQ(f.trial().latest.run, run_id{1});
  f.validate({7}, 4, 5, value{{"loss", 0.6}}, {2});
  EXPECT_EQ(f.trial().latest.row, 4u);
  EXPECT_EQ(f.trial().best.row, 4u) << "run 2 has reported step 5 and all that is above it anew";
}

TEST(ExperimentRow, HasWordsOfItsConfigurationUntilSomebodyDescribesIt) {
  folded f;
  const value config{
    {"description", "the first"}, {"labels", {"a", "b", 3}}, {"searcher", {{"metric", "loss"}}}};
  f.say("cluster", experiment_created{t0, {2}, config, "name", "owner", "c", "text", "other"});
  const auto row = [&] {
    return join(*f.rows.experiments.find({2}), *f.rows.experiment_states.find({2}),
                f.rows.described.find({2}));
  };
  EXPECT_EQ(row().description, "the first");
  EXPECT_EQ(row().labels, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(row().config.get(), config);
  f.say("experiment/2",
        experiment_continued{
          .at = t0, .id = {2}, .number = 1, .config = value{{"description", "again"}, {"name", "other"}}});
  EXPECT_EQ(row().description, "again");
  EXPECT_EQ(row().name, "other");
  EXPECT_TRUE(row().labels.empty());
}

TEST(ExperimentRow, ContinuedWithOtherWordsSaysThoseAndKeepsTheRestOfWhatUsersSaid) {
  folded f;
  const auto config = [](const char* name, int best) {
    return value{{"name", name}, {"description", "d"}, {"checkpoint_storage", {{"save_trial_best", best}}}};
  };
  f.say("cluster", experiment_created{t0, {2}, config("orig", 1), "orig", "owner", "c", "text", "other"});
  const auto row = [&] {
    return join(*f.rows.experiments.find({2}), *f.rows.experiment_states.find({2}),
                f.rows.described.find({2}));
  };
  const auto kept = [&] { return row().config.get()["checkpoint_storage"]["save_trial_best"]; };
  f.say("cluster",
        experiment_described{t0, "ada", {2}, "patched", "my words", "my notes", {"mine"}, false, -1, 3, -1});
  EXPECT_EQ(kept(), 3);
  f.say("cluster", experiment_continued{.at = t0, .id = {2}, .number = 1, .config = config("orig", 3)});
  EXPECT_EQ(row().name, "patched") << "the override names other things";
  EXPECT_EQ(kept(), 3);
  f.say("cluster", experiment_continued{.at = t0, .id = {2}, .number = 2, .config = config("again", 5)});
  EXPECT_EQ(row().name, "again");
  EXPECT_EQ(row().description, "my words");
  EXPECT_EQ(row().labels, std::vector<std::string>{"mine"});
  EXPECT_EQ(row().notes, "my notes");
  EXPECT_EQ(kept(), 5);
  f.say("cluster", experiment_described{t0, "ada", {2}, "last", "my words", "my notes", {"mine"}});
  EXPECT_EQ(row().name, "last") << "what users say after it counts over it";
}

TEST(TrialRow, FollowsTheStatesOfTheTrial) {
  struct {
    std::vector<std::pair<const char*, fact>> facts;
    trial_state state;
  } cases[] = {
    {{}, trial_state::queued},
    {{{"trial/7", trial_activated{t0}}, {"trial/7", started}}, trial_state::queued},
    {{{"trial/7", started}, {"allocation/7.1", placed}}, trial_state::running},
    {{{"trial/7", started}, {"allocation/7.1", placed}, {"allocation/7.1", allocation_placed{t0, {}}}},
     trial_state::queued}, // its start order was lost
    {{{"trial/7", started}, {"allocation/7.1", placed}, {"trial/7", run_ended{t0, {1}, end::failed}}},
     trial_state::queued},
    {{{"trial/7", started},
      {"allocation/7.1", placed},
      {"trial/7", run_ended{t0, {1}, end::lost}},
      {"trial/7", run_started{t0, {2}}},
      {"allocation/7.2", placed}},
     trial_state::running},
    {{{"trial/7", started},
      {"allocation/7.1", placed},
      {"trial/7", run_ended{t0, {1}, end::stopped}},
      {"trial/7", trial_paused{t0}},
      {"trial/7", trial_activated{t0}}},
     trial_state::queued},
    {{{"trial/7", started}, {"allocation/7.1", placed}, {"trial/7", trial_paused{t0}}}, trial_state::paused},
    {{{"trial/7", trial_paused{t0}}, {"trial/7", trial_activated{t0}}}, trial_state::queued},
    {{{"trial/7", started},
      {"allocation/7.1", placed},
      {"trial/7", trial_paused{t0}},
      {"trial/7", trial_activated{t0}}},
     trial_state::running},
    {{{"trial/7", started}, {"trial/7", trial_paused{t0}}, {"allocation/7.1", placed}}, trial_state::paused},
    {{{"trial/7", started}, {"trial/7", ordered}}, trial_state::stopping},
    {{{"trial/7", ordered}, {"trial/7", trial_paused{t0}}}, trial_state::stopping},
    {{{"trial/7", ordered}, {"trial/7", trial_ended{t0, trial_state::canceled, "c"}}}, trial_state::canceled},
    {{{"trial/7", trial_ended{t0, trial_state::error, "e"}}, {"trial/7", ordered}}, trial_state::error},
    {{{"trial/8", started}, {"allocation/8.1", placed}}, trial_state::queued},
  };
  for (const auto& c : cases) {
    folded f;
    std::string told;
    for (const auto& [entity, x] : c.facts) {
      f.say(entity, x);
      told += std::string(" ") + std::visit([](const auto& one) { return one.tag; }, x);
    }
    EXPECT_EQ(name(f.trial().state), name(c.state)) << "after" << told;
  }
}

TEST(TrialRow, SaysHowATrialThatStopsWillEnd) {
  const struct {
    trial_state outcome;
    bool kill;
    const char* shown;
  } cases[] = {
    {trial_state::completed, false, "STOPPING_COMPLETED"},
    {trial_state::canceled, false, "STOPPING_CANCELED"},
    {trial_state::canceled, true, "STOPPING_KILLED"},
    {trial_state::error, true, "STOPPING_ERROR"},
  };
  for (const auto& c : cases) {
    folded f;
    f.say("trial/7", started);
    f.say("trial/7", trial_stop_ordered{t0, c.outcome, c.kill, "why"});
    EXPECT_EQ(state_of(f.trial()), c.shown);
    f.say("trial/7", trial_ended{t0, c.outcome, "why"});
    EXPECT_EQ(state_of(f.trial()), name(c.outcome));
  }
}

TEST(TrialRow, KeepsTheBestAndTheLatestValidation) {
  struct {
    const char* why;
    bool smaller;
    std::vector<double> metrics;
    std::uint64_t best, latest;
  } cases[] = {
    {"the smallest loss is best", true, {3, 1, 2}, 2, 3},
    {"the greatest accuracy is best", false, {3, 1, 5, 2}, 3, 4},
    {"the first of equal ones is best", true, {2, 1, 1}, 2, 3},
    {"NaN is never best", true, {nan, nan}, 0, 2},
    {"NaN between does not stick", true, {nan, 4, nan, 3, nan}, 4, 5},
    {"infinity is a value like others", true, {inf, 4, -inf}, 3, 3},
    {"infinity is better than nothing", true, {inf}, 1, 1},
  };
  for (const auto& c : cases) {
    folded f(c.smaller);
    for (std::size_t i = 0; i < c.metrics.size(); ++i)
      f.validate({7}, i + 1, std::int64_t(10 * i), value{{"loss", c.metrics[i]}, {"epoch", i}});
    EXPECT_EQ(f.trial().best.row, c.best) << c.why;
    EXPECT_EQ(f.trial().latest.row, c.latest) << c.why;
    EXPECT_EQ(f.experiment().best_trial, trial_id{c.best ? 7u : 0u}) << c.why;
  }
}

TEST(TrialRow, TakesMetricsByNameAndNothingElse) {
  folded f;
  f.validate({7}, 1, 10, value{{"loss", "NaN"}});
  EXPECT_TRUE(std::isnan(f.trial().latest.metric));
  f.validate({7}, 2, 20, value{{"accuracy", 1.0}});
  EXPECT_EQ(f.trial().latest.row, 2u);
  EXPECT_EQ(f.trial().best.row, 0u);
  f.validate({7}, 3, 30, value::array());
  f.validate({7}, 4, 40, value{{"loss", 3}});
  EXPECT_EQ(f.trial().best.row, 4u);
  EXPECT_EQ(f.trial().best.metric, 3);
}

TEST(TrialRow, KnowsHowFarTheValidationsWereInUnitsOfTheSearch) {
  folded f;
  f.say("cluster", experiment_created{
                     t0, {1}, value{{"searcher", {{"metric", "loss"}, {"time_metric", "epoch"}}}}, "n"});
  f.validate({7}, 1, 10, value{{"loss", 0.5}, {"epoch", 2}});
  f.validate({7}, 2, 20, value{{"loss", 0.9}});
  EXPECT_EQ(f.trial().best.units, 2);
  EXPECT_TRUE(std::isnan(f.trial().latest.units));
}

TEST(TrialRow, PointsAtTheNewerReportOfTheSameResult) {
  folded f;
  f.say("trial/7", started);
  f.validate({7}, 1, 10, value{{"loss", 1.0}});
  f.say("trial/7", run_started{t0, {2}, "", 0});
  f.validate({7}, 2, 10, value{{"loss", 1.0}});
  EXPECT_EQ(f.trial().best.row, 2u);
  EXPECT_EQ(f.trial().best.run, run_id{2});
  f.validate({7}, 3, 20, value{{"loss", 1.0}});
  EXPECT_EQ(f.trial().best.row, 2u) << "other steps: the first stays";
}

TEST(TrialRow, GoesBackToTheValidationsThatALaterRunDoesNotTrainAgain) {
  folded f;
  const auto known = [&] { return std::pair{f.trial().best.row, f.trial().latest.row}; };
  using rows = std::pair<std::uint64_t, std::uint64_t>;
  f.say("trial/7", started);
  const double losses[] = {0.5, 0.7, 0.3, 0.2};
  for (std::uint64_t row = 1; row <= 4; ++row)
    f.validate({7}, row, static_cast<std::int64_t>(row) * 10, value{{"loss", losses[row - 1]}});
  EXPECT_EQ(known(), (rows{4, 4}));
  f.say("trial/7", run_started{t0, {2}, "u1", 20});
  EXPECT_EQ(known(), (rows{1, 2})) << "those above its checkpoint are archived";
  f.validate({7}, 5, 20, value{{"loss", 0.6}}); // as perform_initial_validation does
  EXPECT_EQ(known(), (rows{1, 5}));
  f.say("trial/7", run_started{t0, {3}, "", 0});
  EXPECT_EQ(known(), (rows{1, 5})) << "a run without a checkpoint archives what it repeats";
  f.validate({7}, 6, 30, value{{"loss", 0.4}});
  EXPECT_EQ(known(), (rows{6, 6}));
  f.say("trial/7", run_started{t0, {4}, "", 0});
  f.validate({7}, 7, 5, value{{"loss", 0.9}});
  EXPECT_EQ(known(), (rows{7, 7})) << "none of the steps before it is left";
  f.validate({7}, 7, 5, value{{"loss", 0.9}});
  f.say("trial/7", run_started{t0, {5}, "u0", 1});
  EXPECT_EQ(known(), (rows{0, 0})) << "and a fact that is said again is no loop";
}

TEST(TrialRow, HasTheNewestValueOfAStepThatWasValidatedTwice) {
  folded f;
  const auto known = [&] { return std::pair{f.trial().best.row, f.trial().latest.row}; };
  using rows = std::pair<std::uint64_t, std::uint64_t>;
  f.say("trial/7", started);
  f.validate({7}, 1, 10, value{{"loss", 0.1}});
  f.validate({7}, 2, 10, value{{"loss", 3.0}});
  EXPECT_EQ(known(), (rows{2, 2}));
  f.validate({7}, 3, 20, value{{"loss", 2.0}});
  EXPECT_EQ(known(), (rows{3, 3}));
  f.validate({7}, 4, 20, value{{"acc", 0.9}});
  EXPECT_EQ(known(), (rows{3, 4})) << "other metrics of the step leave the value";
}

TEST(TrialRow, CountsRunsRestartsAndCheckpointsOnce) {
  folded f;
  f.say("trial/7", started);
  f.say("trial/7", started);
  checkpoint saved{"u1", 10, {{"a", 5}, {"b", 6}}, {}, "/p"};
  f.say("trial/7", checkpoint_recorded{t0, {1}, saved});
  f.say("trial/7", checkpoint_recorded{t0, {1}, saved});
  saved.uuid = "u2";
  f.say("trial/7", checkpoint_recorded{t0, {1}, saved});
  f.say("trial/7", run_ended{t0 + 5s, {1}, end::failed, 1, 0, t0, "exit code 1"});
  f.say("trial/7", run_started{t0 + 6s, {2}, "u2", 10});
  auto row = f.trial();
  ASSERT_EQ(row.runs.size(), 2u);
  EXPECT_EQ(row.runs[0].why, end::failed);
  EXPECT_EQ(row.runs[0].ended, t0 + 5s);
  EXPECT_EQ(row.runs[1].from_steps, 10);
  EXPECT_EQ(row.restarts, 1);
  EXPECT_EQ(row.latest_checkpoint, "u2");
  EXPECT_EQ(row.checkpoint_count, 2u);
  EXPECT_EQ(row.checkpoint_bytes, 22);
  f.say("trial/8", checkpoint_recorded{t0, {1}, {"u3", 10, {{"a", 3}}, {}, "/p"}});
  // the checkpoint stays that of trial 7
  f.say("trial/8", checkpoint_recorded{t0, {1}, {"u2", 10, {{"a", 300}}, {}, "/p"}});
  EXPECT_EQ(f.experiment().checkpoint_count, 3u);
  EXPECT_EQ(f.experiment().checkpoint_bytes, 25);
  f.say("trial/7", checkpoint_changed{t0, "u2", {{"a", 1}}});
  EXPECT_EQ(f.experiment().checkpoint_count, 3u) << "a part of it is there";
  EXPECT_EQ(f.experiment().checkpoint_bytes, 15);
  f.say("trial/7", checkpoint_changed{t0, "u2", {}});
  f.say("trial/7", checkpoint_changed{t0, "u2", {}});
  EXPECT_EQ(f.trial().checkpoint_count, 1u) << "what is deleted counts no more, as its bytes do";
  EXPECT_EQ(f.experiment().checkpoint_count, 2u);
  EXPECT_EQ(f.experiment().checkpoint_bytes, 14);
  f.say("trial/7", checkpoint_changed{t0, "u2", {{"a", 1}}}); // the files are found again
  EXPECT_EQ(f.trial().checkpoint_count, 2u);
  EXPECT_EQ(f.experiment().checkpoint_count, 3u);
  EXPECT_EQ(f.rows.checkpoints.find("u1")->experiment, experiment_id{1});
}

TEST(TrialRow, KeepsTheDecisionThatStoppedIt) {
  folded f;
  search_stepped step{
    .at = t0, .input = search_input::validated, .trial = {8}, .row = 1, .metrics = value{{"loss", 9}}};
  step.stopped = {{{7}, "rung 1", 1, 4, 0.5, 0.6}};
  f.say("experiment/1", step);
  ASSERT_TRUE(f.trial().stop());
  EXPECT_EQ(f.trial().stop()->why, "rung 1");
}

TEST(ExperimentRow, FollowsItsFacts) {
  folded f;
  EXPECT_EQ(f.experiment().num_trials, 2u);
  EXPECT_EQ(f.experiment().metric, "loss");
  EXPECT_EQ(f.experiment().created, t0);
  f.say("experiment/1", experiment_changed{t0 + 1s, experiment_state::paused, "asked"});
  EXPECT_EQ(f.experiment().state, experiment_state::paused);
  EXPECT_EQ(f.experiment().ended, time_point{});
  f.say("experiment/1", experiment_changed{t0 + 2s, experiment_state::error, "broken"});
  EXPECT_EQ(f.experiment().ended, t0 + 2s);
  EXPECT_EQ(f.experiment().why, "broken");
  f.validate({8}, 1, 1, value{{"loss", 0.5}});
  f.validate({7}, 1, 1, value{{"loss", 0.7}});
  EXPECT_EQ(f.experiment().best_trial, trial_id{8});
  EXPECT_EQ(f.experiment().best_metric, 0.5);
}

TEST(ExperimentRow, HasTheBestOfWhatItsTrialsHaveNow) {
  for (const bool smaller : {true, false}) {
    folded f(smaller);
    const auto validate = [&](trial_id trial, std::uint64_t row, std::int64_t steps, double loss, run_id by) {
      f.validate(trial, row, steps, value{{"loss", smaller ? loss : -loss}}, by);
    };
    const auto best = [&] {
      const auto row = f.experiment();
      return std::pair{row.best_trial.value, smaller ? row.best_metric : 0 - row.best_metric};
    };
    using is = std::pair<std::uint64_t, double>;
    f.say("trial/7", started);
    f.say("trial/8", started);
    validate({7}, 1, 10, 0.5, {1});
    validate({7}, 2, 30, 0.1, {1});
    validate({8}, 3, 10, 0.3, {1});
    validate({8}, 4, 40, 0.2, {1});
    EXPECT_EQ(best(), (is{7, 0.1}));
    f.say("trial/7", run_started{t0, {2}, "u1", 20});
    EXPECT_EQ(best(), (is{8, 0.2})) << "the best report is archived, and another trial has the next best";
    f.say("trial/8", run_started{t0, {2}, "u2", 20});
    EXPECT_EQ(best(), (is{8, 0.3})) << "an earlier report of the same trial is the next best";
    validate({7}, 5, 40, 0.05, {1});
    EXPECT_EQ(best(), (is{8, 0.3})) << "decided on after it was archived";
    validate({7}, 6, 30, 0.25, {2});
    EXPECT_EQ(best(), (is{7, 0.25}));
    validate({7}, 7, 30, 0.4, {2});
    EXPECT_EQ(best(), (is{8, 0.3})) << "a later value of the step took the place of the best";
    f.say("trial/7", run_started{t0, {3}, "u0", 5});
    EXPECT_EQ(best(), (is{8, 0.3})) << "nothing of trial 7 is left, and it was not the best";
    f.say("trial/8", run_started{t0, {3}, "u0", 5});
    EXPECT_EQ(best(), (is{0, 0})) << "no report is left";
    validate({8}, 8, 10, 0.6, {3});
    validate({7}, 9, 10, 0.6, {3});
    EXPECT_EQ(best(), (is{8, 0.6})) << "the first of equal ones is best";
    f.say("trial/8", run_started{t0, {4}, "u0", 5});
    EXPECT_EQ(best(), (is{7, 0.6}));
  }
}

TEST(ExperimentRow, ComparesNoValuesOfTwoMetrics) {
  const struct {
    const char* searcher; ///< of the configuration that the continuation brings; null: none
    bool forgets;
  } cases[] = {
    {nullptr, false},
    {R"({"metric": "loss", "smaller_is_better": true, "name": "single"})", false},
    {R"({"metric": "acc", "smaller_is_better": true})", true},
    {R"({"metric": "loss", "smaller_is_better": false})", true},
  };
  for (const auto& c : cases) {
    folded f;
    f.say("trial/7", started);
    f.say("trial/8", started);
    f.validate({7}, 1, 10, value{{"loss", 0.1}, {"acc", 0.9}}, {1});
    f.validate({8}, 2, 10, value{{"loss", 0.2}, {"acc", 0.8}}, {1});
    f.say("cluster",
          experiment_continued{
            t0, "ada", {1}, 1, {{7}}, c.searcher ? value{{"searcher", *parse_json(c.searcher)}} : value()});
    const auto* what = c.searcher ? c.searcher : "no configuration";
    const auto best = [&] { return std::pair{f.experiment().best_trial.value, f.experiment().best_metric}; };
    using is = std::pair<std::uint64_t, double>;
    EXPECT_EQ(best(), c.forgets ? (is{0, 0}) : (is{7, 0.1})) << what;
    EXPECT_EQ(f.trial().best.row, c.forgets ? 0u : 1u) << what;
    EXPECT_EQ(f.rows.trial_states.find({8})->best.row, c.forgets ? 0u : 2u) << what;
    EXPECT_EQ(f.trial().latest.row, 1u) << what;
    EXPECT_EQ(f.trial().latest.judged, !c.forgets) << what;
    f.validate({7}, 3, 20, value{{"loss", 0.5}, {"acc", 0.5}}, {1});
    EXPECT_EQ(best(), c.forgets ? (is{7, 0.5}) : (is{7, 0.1})) << what;
    EXPECT_EQ(f.trial().best.row, c.forgets ? 3u : 1u) << what;
    EXPECT_EQ(f.rows.trial_states.find({8})->best.row, c.forgets ? 0u : 2u) << what;
    f.say("trial/7", run_started{t0, {2}, "u1", 15});
    EXPECT_EQ(best(), c.forgets ? (is{0, 0}) : (is{7, 0.1}))
      << what << ": the value of before does not come back";
  }
}

TEST(ExperimentRow, KeepsWhyItWasStopped) {
  folded f;
  f.say("experiment/1", experiment_changed{t0 + 1s, experiment_state::stopping_killed, "killed by ada"});
  f.say("experiment/1", experiment_changed{t0 + 2s, experiment_state::canceled, ""});
  EXPECT_EQ(f.experiment().state, experiment_state::canceled);
  EXPECT_EQ(f.experiment().why, "killed by ada");
  f.say("experiment/1", experiment_changed{t0 + 3s, experiment_state::active, ""});
  EXPECT_EQ(f.experiment().why, "") << "continued";
  f.say("experiment/1", experiment_changed{t0 + 4s, experiment_state::stopping_error, "the search failed"});
  f.say("experiment/1", experiment_changed{t0 + 5s, experiment_state::error, ""});
  EXPECT_EQ(f.experiment().why, "the search failed");
}

TEST(ExperimentRow, LivesWithAnOddConfiguration) {
  for (const value& config :
       {value{}, value::array(), value{{"searcher", 3}}, value{{"searcher", {{"metric", 3}}}}}) {
    folded f;
    f.say("cluster", experiment_created{t0, {2}, config, "n"});
    EXPECT_TRUE(f.rows.experiments.find({2})->smaller_is_better);
    EXPECT_EQ(f.rows.experiments.find({2})->metric, "");
  }
}

TEST(TrialRow, KnowsWhereARunWasPlacedAndWhatItsPreemptionCost) {
  folded f;
  f.say("trial/7", started);
  f.say("allocation/7.1", allocation_placed{t0 + std::chrono::seconds(5), {{"a", {0, 1}}}, "gpu", true});
  f.say("trial/7", checkpoint_recorded{t0 + std::chrono::seconds(9), {1}, {"u", 3}});
  f.say("allocation/7.1", allocation_preempted{t0 + std::chrono::seconds(10), {{8}, {1}}, "priority"});
  f.say("trial/7", run_ended{t0 + std::chrono::seconds(12), {1}, end::stopped});
  const auto run = f.trial().runs.at(0);
  EXPECT_EQ(run.pool, "gpu");
  EXPECT_TRUE(run.backfilled);
  EXPECT_EQ(run.placed, t0 + std::chrono::seconds(5));
  EXPECT_EQ(run.preempted, "priority");
  EXPECT_EQ(preempted_slot_seconds(run, t0), 6) << "two slots, three seconds since the checkpoint";
}

TEST(ExperimentRow, KnowsWhatAUserHasSet) {
  folded f;
  EXPECT_TRUE(f.experiment().resources.empty());
  const auto edits = f.experiment().edits;
  f.say("experiment/1", experiment_resources_changed{t0, "ada", 10, 2, -1, "gpu"});
  f.say("experiment/1", experiment_resources_changed{t0, "ada", 11, 2, 4, "gpu"});
  ASSERT_EQ(f.experiment().resources.size(), 1u);
  EXPECT_EQ(f.experiment().resources[0].priority, 11);
  EXPECT_EQ(f.experiment().resources[0].max_slots, 4);
  EXPECT_EQ(f.experiment().edits, edits + 2) << "who keeps its text has to write it anew";
}

TEST(Folds, LeaveUnknownThingsAlone) {
  folded f;
  for (const char* entity :
       {"trial/99", "experiment/99", "allocation/99.1", "trial/x", "pool/a", "", "allocation/7"})
    for (const fact& x : std::initializer_list<fact>{
           trial_paused{t0}, started, placed, experiment_changed{t0}, run_ended{t0}, trial_ended{t0},
           checkpoint_recorded{t0}, agent_joined{t0}, allocation_closed{t0}, ordered})
      f.say(entity, x);
  EXPECT_EQ(f.rows.trials.find({99}), nullptr);
  EXPECT_EQ(f.trial().state, trial_state::queued);
  EXPECT_FALSE(f.rows.fault());
}

TEST(Tables, NameTheRowThatDoesNotRead) {
  tables rows([](std::string_view) -> result<std::optional<std::string>> {
    return std::optional<std::string>{"junk"};
  });
  EXPECT_EQ(rows.trials.find({1}), nullptr);
  ASSERT_TRUE(rows.fault());
  EXPECT_EQ(rows.fault()->code, errc::corrupt);
}

TEST(Deletion, LeavesRowsThatNameNothingAndWhatWasUsed) {
  folded f;
  f.say("trial/7", started);
  f.say("allocation/7.1", placed);
  f.say("trial/7", run_ended{t0 + std::chrono::seconds(5), {1}, end::completed});
  f.say("cluster", experiment_deleted{t0, "ada", {1}, deletion_step::ordered, "", {}});
  EXPECT_EQ(f.rows.experiment_states.find({1})->state, experiment_state::deleting);
  f.say("cluster", experiment_deleted{t0, "ada", {1}, deletion_step::failed, "disk", {}});
  EXPECT_EQ(f.rows.experiment_states.find({1})->state, experiment_state::delete_failed);
  EXPECT_EQ(f.rows.experiment_states.find({1})->why, "disk");
  f.say("cluster", experiment_deleted{t0, "ada", {1}, deletion_step::done, "", {{7}, {8}}});
  EXPECT_FALSE(f.rows.experiment_states.find({1})->project);
  EXPECT_EQ(f.rows.experiment_states.find({1})->former, project_id{1});
  EXPECT_FALSE(f.rows.experiments.find({1})->id);
  EXPECT_TRUE(f.rows.experiments.find({1})->config->is_null());
  EXPECT_FALSE(f.rows.trials.find({7})->id);
  EXPECT_TRUE(f.rows.trial_states.find({7})->runs.empty());
  EXPECT_FALSE(f.rows.tasks.find(trial_id{7})->id);
  const auto* bytes = f.rows.records.find(keys::record(usage_record::tag, keys::two(7, 1)));
  ASSERT_TRUE(bytes);
  const auto used = unpack<usage_record>(*bytes);
  ASSERT_TRUE(used);
  EXPECT_EQ(used->user, "owner");
  EXPECT_EQ(used->workspace, "Uncategorized");
  EXPECT_EQ(used->slots, 1);
  EXPECT_EQ(used->ended - used->began, std::chrono::seconds(5));
}

TEST(LocalNumbers, CountTrialsInTheirProjectAndAnewAfterAMove) {
  folded f; // trials 7 and 8 are in project 1
  const auto numbers = [&] {
    std::string all;
    for (const std::uint64_t id : {7, 8, 9, 20})
      if (const auto* row = f.rows.trial_states.find({id}))
        all += (all.empty() ? "" : " ") + std::to_string(id) + ":" + std::to_string(row->number);
    return all;
  };
  const auto named = [&](std::uint64_t project, std::uint64_t number) {
    std::string found = "none";
    for (const auto& [key, data] : f.rows.entries)
      if (key == keys::tagged('I', project, number))
        found = std::to_string(keys::last_number(data));
    return found;
  };
  EXPECT_EQ(numbers(), "7:1 8:2");
  search_stepped more{.at = t0};
  more.created = {{{9}, "3", value{{"lr", 3}}, 5, ""}};
  f.say("experiment/1", more);
  experiment_created other{t0, {2}, value::object(), "n", "o", "", "", ""};
  other.project = {4};
  f.say("cluster", other);
  more.created = {{{20}, "1", value::object(), 5, ""}};
  f.say("experiment/2", more);
  EXPECT_EQ(numbers(), "7:1 8:2 9:3 20:1") << "each project counts by itself";

  f.say("cluster", experiment_moved{t0, "ada", {1}, {4}});
  EXPECT_EQ(numbers(), "7:2 8:3 9:4 20:1") << "in the order in which they were made";
  EXPECT_EQ(f.rows.experiment_states.find({1})->project, project_id{4});
  f.say("cluster", experiment_moved{t0, "ada", {1}, {4}});
  EXPECT_EQ(numbers(), "7:2 8:3 9:4 20:1") << "it was there already";
  f.say("cluster", experiment_moved{t0, "ada", {1}, {1}});
  EXPECT_EQ(numbers(), "7:4 8:5 9:6 20:1") << "a number does not come again";
  EXPECT_EQ(named(1, 1), "7");
  EXPECT_EQ(named(4, 3), "8");
  EXPECT_EQ(named(1, 6), "9");
  EXPECT_EQ(named(1, 7), "none");

  f.say("cluster", trial_deleted{t0, "ada", {1}, {8}, deletion_step::done, ""});
  f.say("cluster", experiment_moved{t0, "ada", {1}, {4}});
  EXPECT_EQ(numbers(), "7:5 8:0 9:6 20:1") << "what is deleted moves no more, and hides nobody behind it";
  f.say("cluster", experiment_moved{t0, "ada", {3}, {4}});
  EXPECT_EQ(f.rows.numbered.find({4})->newest, 6u);
}

TEST(LocalNumbers, KeysLeadToTheProjectThatHasOrHadThem) {
  folded f;
  project_changed cats;
  cats.id = {4};
  cats.key = "CAT";
  f.say("cluster", cats);
  cats.key = "FELIS";
  f.say("cluster", cats);
  project_changed gone;
  gone.id = {5};
  gone.key = "CAT";
  gone.deleted = true;
  f.say("cluster", gone);
  std::map<std::string, std::uint64_t> found;
  for (const auto& [key, data] : f.rows.entries)
    if (key.front() == 'F')
      found[key.substr(1)] = keys::last_number(data);
  EXPECT_EQ(found, (std::map<std::string, std::uint64_t>{{"CAT", 4}, {"FELIS", 4}}));
}

TEST(SingleTrial, IsArchivedAndDeletedWhileItsExperimentStays) {
  folded f;
  f.say("trial/7", started);
  f.say("allocation/7.1", placed);
  f.validate({7}, 1, 5, value{{"loss", 0.25}});
  f.validate({8}, 1, 5, value{{"loss", 0.5}});
  EXPECT_EQ(f.experiment().best_trial, trial_id{7});
  f.say("cluster", trial_archived{t0, "ada", {1}, {7}, true});
  EXPECT_TRUE(f.trial().archived);
  EXPECT_FALSE(f.experiment().archived);
  f.say("cluster", trial_archived{t0, "ada", {1}, {7}, false});
  EXPECT_FALSE(f.trial().archived);
  f.say("cluster", trial_deleted{t0, "ada", {1}, {7}, deletion_step::ordered, ""});
  EXPECT_EQ(f.trial().deletion, deletion_step::ordered);
  f.say("cluster", trial_deleted{t0, "ada", {1}, {7}, deletion_step::failed, "disk"});
  EXPECT_EQ(f.trial().deletion, deletion_step::failed);
  EXPECT_EQ(f.trial().stuck, "disk");
  EXPECT_EQ(f.experiment().num_trials, 2u);
  f.say("cluster", trial_deleted{t0, "ada", {1}, {7}, deletion_step::done, ""});
  EXPECT_FALSE(f.rows.trials.find({7})->id);
  EXPECT_TRUE(f.rows.trials.find({7})->hparams.is_null());
  EXPECT_TRUE(f.rows.trial_states.find({7})->runs.empty());
  EXPECT_FALSE(f.rows.tasks.find(trial_id{7})->id);
  EXPECT_EQ(f.experiment().num_trials, 1u);
  EXPECT_EQ(f.experiment().best_trial, trial_id{8}) << "the best of those that are left";
  EXPECT_EQ(f.experiment().best_metric, 0.5);
  EXPECT_TRUE(f.rows.records.find(keys::record(usage_record::tag, keys::two(7, 1)))) << "what was used stays";
  f.say("cluster", trial_deleted{t0, "ada", {1}, {7}, deletion_step::done, ""});
  f.say("cluster", trial_archived{t0, "ada", {1}, {7}, true});
  EXPECT_EQ(f.experiment().num_trials, 1u) << "once";
  EXPECT_FALSE(f.rows.trial_states.find({7})->archived);
  f.say("cluster", trial_deleted{t0, "ada", {1}, {8}, deletion_step::done, ""});
  EXPECT_FALSE(f.experiment().best_trial);
  EXPECT_EQ(f.experiment().num_trials, 0u);
}

TEST(CollectionRow, IsATaskOfTheExperimentWithOneRunWithoutSlots) {
  folded f;
  const auto id = task_id::of(task_kind::checkpoint_gc, 5, 6);
  checkpoint_files_removed order;
  order.at = t0;
  order.by = "ada";
  order.id = id;
  order.experiment = {1};
  order.cause = "experiment";
  order.owner = "owner";
  order.pool = "gpu";
  f.say(entity(id), order);
  const auto* row = f.rows.tasks.find(id);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->experiment, experiment_id{1});
  EXPECT_EQ(row->owner, "owner");
  EXPECT_TRUE(row->open);
  const auto seen = [&] { return join(*f.rows.made_tasks.find(id), *f.rows.task_states.find(id)); };
  EXPECT_EQ(seen().made.name, "Checkpoint GC (Experiment 1)");
  EXPECT_EQ(seen().made.pool, "gpu");
  EXPECT_EQ(seen().state, task_state::active);
  EXPECT_EQ(collected_experiment(seen()), experiment_id{1});
  ASSERT_EQ(seen().runs.size(), 1u);
  EXPECT_TRUE(seen().runs.front().on.empty());
  EXPECT_EQ(seen().runs.front().placed, seen().runs.front().started) << "the master itself runs it";
  f.say("cluster", experiment_deleted{t0, "ada", {1}, deletion_step::done, "", {{7}, {8}}});
  order.at = t0 + 9s;
  order.step = deletion_step::failed;
  order.why = "read-only";
  f.say(entity(id), order);
  row = f.rows.tasks.find(id);
  EXPECT_FALSE(row->open);
  EXPECT_EQ(row->ended, t0 + 9s);
  EXPECT_EQ(seen().state, task_state::error);
  EXPECT_EQ(seen().exit_code, 1);
  EXPECT_EQ(seen().runs.front().ended, t0 + 9s);
  EXPECT_EQ(seen().runs.front().detail, "read-only");
}

TEST(CollectionRow, OfATaskOnAnAgentIsOfItsExperimentToo) {
  folded f;
  task_created made;
  made.at = t0;
  made.id = task_id::of(task_kind::checkpoint_gc, 7, 8);
  made.owner = "owner";
  made.details = {{"experiment", 1u}};
  f.say(entity(made.id), made);
  EXPECT_EQ(f.rows.tasks.find(made.id)->experiment, experiment_id{1})
    << "its token changes checkpoints of that";
  made.id = task_id::of(task_kind::command, 7, 9);
  f.say(entity(made.id), made);
  EXPECT_FALSE(f.rows.tasks.find(made.id)->experiment);
}

TEST(CollectionRow, OfAnUnknownOneIsNotMadeByItsEnd) {
  folded f;
  checkpoint_files_removed end;
  end.id = task_id::of(task_kind::checkpoint_gc, 5, 6);
  end.step = deletion_step::done;
  f.say(entity(end.id), end);
  EXPECT_EQ(f.rows.tasks.find(end.id), nullptr);
}

TEST(CheckpointPlace, GoesToANewTrialWhereTheOneThatHadItIsDeleted) {
  for (const bool alone : {true, false}) {
    folded f;
    f.say("cluster", experiment_created{t0, {2}, value::object(), "name", "owner", "c", "text", "other"});
    search_stepped step{.at = t0};
    step.created = {{{9}, "1", value::object(), 3, ""}};
    f.say("experiment/2", step);
    f.say("trial/7", checkpoint_recorded{t0, {1}, {"u", 10, {{"a", 5}}, {}, "/p"}});
    f.say("trial/7", checkpoint_changed{t0, "u", {}});
    f.say("trial/9", checkpoint_recorded{t0, {1}, {"u", 20, {{"a", 300}}, {}, "/q"}});
    EXPECT_EQ(f.rows.checkpoints.find("u")->trial, trial_id{7}) << "trial 7 is still there";
    if (alone) {
      trial_deleted gone;
      gone.at = t0, gone.experiment = {1}, gone.trial = {7}, gone.step = deletion_step::done;
      f.say("cluster", gone);
    } else {
      experiment_deleted gone;
      gone.at = t0, gone.id = {1}, gone.trials = {{7}, {8}}, gone.step = deletion_step::done;
      f.say("cluster", gone);
    }
    f.say("trial/9", checkpoint_recorded{t0, {1}, {"u", 20, {{"a", 300}}, {}, "/q"}});
    const auto* place = f.rows.checkpoints.find("u");
    EXPECT_EQ(place->trial, trial_id{9});
    EXPECT_EQ(place->experiment, experiment_id{2});
    EXPECT_FALSE(place->deleted);
    EXPECT_EQ(f.rows.trial_states.find({9})->checkpoint_count, 1u);
    EXPECT_EQ(f.rows.trial_states.find({9})->checkpoint_bytes, 300);
    EXPECT_EQ(f.rows.experiment_states.find({2})->checkpoint_bytes, 300);
  }
}

TEST(CheckpointPlace, KeepsWherePeopleDescribedIt) {
  folded f;
  f.say("trial/7", checkpoint_recorded{t0, {1}, {"u", 10, {{"a", 3}}, value{{"m", 1}}, "/p", {}}});
  fact said = checkpoint_described{t0, "ada", "u", value{{"m", 2}}};
  auto of = subject_of("trial/7");
  of.number = 4;
  fold(said, of, f.rows);
  EXPECT_EQ(f.rows.checkpoints.find("u")->described, 5u);
  fold(said, subject_of("trial/8"), f.rows);
  EXPECT_EQ(f.rows.checkpoints.find("u")->described, 5u) << "another trial's says nothing";
}

TEST(LogPolicies, TheLastNameThatMatchedStandsInTheRowOfATaskOfAnyKind) {
  folded f;
  const auto id = task_id::of(task_kind::command, 1, 2);
  task_created made;
  made.at = t0;
  made.id = id;
  f.say(entity(id), made);
  EXPECT_EQ(f.rows.task_states.find(id)->log_policy, "");
  f.say(entity(id), log_policy_matched{t0, {1}, "oom", "p", "l", "a1", false});
  f.say(entity(id), log_policy_matched{t0, {1}, "", "q", "l", "", false});
  EXPECT_EQ(f.rows.task_states.find(id)->log_policy, "oom") << "a policy without a name is not shown";
  f.say(entity(id), log_policy_matched{t0, {1}, "ecc", "r", "l", "", false});
  EXPECT_EQ(join(*f.rows.made_tasks.find(id), *f.rows.task_states.find(id)).log_policy, "ecc");
}

TEST(Continuation, OpensTheRowsAgain) {
  folded f;
  f.say("trial/7", trial_activated{t0});
  f.say("trial/7", run_started{t0, {1}});
  f.say("allocation/7.1", allocation_placed{t0, {{"a1", {0}}}});
  f.say("trial/7", log_policy_matched{t0, {1}, "oom", "p", "l", "", true});
  EXPECT_EQ(f.rows.trial_states.find({7})->log_policy, "oom");
  f.say("trial/7", run_ended{t0, {1}, end::failed, 1});
  f.say("trial/7", trial_ended{t0 + 9s, trial_state::error, "gone"});
  f.say("experiment/1", experiment_changed{t0 + 9s, experiment_state::error, "gone"});
  f.say("experiment/1", experiment_resources_changed{t0, "ada", 10});
  f.say("cluster",
        experiment_continued{t0 + 10s, "ada", {1}, 1, {{7}}, value{{"searcher", {{"metric", "acc"}}}}});
  const auto row = join(*f.rows.experiments.find({1}), *f.rows.experiment_states.find({1}), nullptr);
  EXPECT_EQ(row.state, experiment_state::active);
  EXPECT_EQ(row.ended, time_point{});
  EXPECT_EQ(row.metric, "acc");
  EXPECT_EQ(row.continued, 1u);
  EXPECT_EQ(row.continued_trials, std::vector<trial_id>{{7}});
  EXPECT_TRUE(row.resources.empty()) << "the configuration says them anew";
  EXPECT_EQ(f.rows.trial_states.find({7})->state, trial_state::error) << "until its own fact";
  f.say("experiment/1", experiment_resumed{t0 + 10s, 1, {{7}}, true, value{{"lr", 3}}});
  f.say("trial/7", trial_continued{t0 + 10s, 1, {1}});
  f.say("trial/7", trial_activated{t0 + 10s});
  const auto& trial = *f.rows.trial_states.find({7});
  EXPECT_EQ(trial.state, trial_state::queued) << "it was placed before, and is not now";
  EXPECT_EQ(trial.restarts, 0);
  EXPECT_EQ(trial.log_policy, "");
  EXPECT_EQ(f.trial().hparams, (value{{"lr", 3}}));
  EXPECT_EQ(trial.continued, std::vector<run_id>{{1}});
  EXPECT_EQ(f.rows.tasks.find(trial_id{7})->ended, time_point{});
  EXPECT_EQ(continuation_of(trial.continued, {1}), 0u);
  EXPECT_EQ(continuation_of(trial.continued, {2}), 1u);
}

} // namespace
} // namespace troupe::storage::projections
