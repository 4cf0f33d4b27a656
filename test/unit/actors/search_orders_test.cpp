// Tests what a search orders beside create and stop: pause, resume and perturb, and the orders of a process
// outside the cluster.

#include "test/unit/actors/show.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using namespace std::chrono_literals;

const time_point t0{std::chrono::seconds(1'000'000)};
const run_id r1{1}, r2{2}, r3{3};

checkpoint saved(const char* uuid, std::int64_t steps) { return {uuid, steps, {}, {}, ""}; }

/// Applies each event. After each, a machine that saw only decoded facts has to be in the same state.
template <class Fact, class Machine, class Rows>
void follow(Machine machine, const Rows& rows) {
  auto twin = machine;
  int i = 0;
  for (const auto& [event, said] : rows) {
    auto step = machine.apply(event, t0 + std::chrono::seconds(i));
    EXPECT_EQ(show(step), said) << "row " << i << ", " << show(event);
    for (const auto& fact : step.facts)
      twin.replay(decode_as<Fact>(encode_as(fact)).value());
    EXPECT_EQ(twin.snapshot(), machine.snapshot()) << "row " << i << ", " << show(event);
    ++i;
  }
}

struct trial_row_of_test {
  trial_event event;
  std::string said;
};

TEST(TrialPerturbed, GoesOnFromTheOtherCheckpointAndItsOwnLateOneCountsNoMore) {
  trial_spec spec{{7}};
  spec.tells_checkpoints = true;
  const trial_perturb to_b{1, "B", 40, {{"lr", 2}}};
  const std::vector<trial_row_of_test> rows = {
    {trial_activate{}, "activated started(1@0) | start(1@0)"},
    {checkpoint_saved{r1, saved("A", 20)}, "recorded(1@20) | acknowledge(1 A) told(A@20)"},
    {to_b, "perturbed(#1 after 1 @40) | stop(1 perturbed) taken(#1 after 1)"},
    {to_b, " | taken(#1 after 1)"}, // the search repeats the order after a restart
    // The old run saves this checkpoint on its way out: the search is not told, and no run starts from it.
    {checkpoint_saved{r1, saved("C", 30)}, "recorded(1@30) | acknowledge(1 C)"},
    {allocation_ended{r1, end::completed}, "ended(1 stopped) started(2@40) | start(2@40)"},
    {checkpoint_saved{r2, saved("D", 60)}, "recorded(2@60) | acknowledge(2 D) told(D@60)"},
    {allocation_ended{r2, end::lost, "gone"}, "ended(2 lost) started(3@60) | start(3@60)"},
    {allocation_ended{r3, end::completed}, "ended(3 completed) done(COMPLETED) | report(COMPLETED)"},
  };
  follow<trial_fact>(trial(spec), rows);
}

TEST(TrialPerturbed, StartsWithTheNewHyperparametersAndSteps) {
  trial t{trial_spec{{7}}};
  (void)t.apply(trial_activate{}, t0);
  (void)t.apply(trial_perturb{1, "B", 40, {{"lr", 2}}}, t0);
  auto step = t.apply(allocation_ended{r1, end::stopped, ""}, t0);
  auto start = std::get<start_allocation>(step.actions.at(0));
  EXPECT_EQ(start.from_checkpoint, "B");
  EXPECT_EQ(start.from_steps, 40);
  EXPECT_EQ(to_json(start.hparams), R"({"lr":2})");
}

TEST(TrialPerturbed, WhileItHasNoRunItOnlyChangesWhatTheNextStartsFrom) {
  const std::vector<trial_row_of_test> rows = {
    {trial_perturb{1, "B", 4, {{"lr", 2}}}, "perturbed(#1 after 0 @4) | taken(#1 after 0)"},
    {trial_activate{}, "activated started(1@4) | start(1@4)"},
    {trial_stop{trial_state::completed, false, "beaten"}, "stopping(COMPLETED) | stop(1 pruned)"},
    {trial_perturb{2, "C", 8, {{"lr", 3}}}, " | "}, // the trial ends anyhow
    {allocation_ended{r1, end::stopped}, "ended(1 stopped) done(COMPLETED) | report(COMPLETED)"},
    {trial_perturb{2, "C", 8, {{"lr", 3}}}, " | "},
  };
  follow<trial_fact>(trial(trial_spec{{7}}), rows);
}

TEST(TrialPerturbed, IsOrderedAgainAndTellsItsCheckpointAgainAfterARestart) {
  trial_spec spec{{7}};
  spec.tells_checkpoints = true;
  trial live{spec}, again{spec};
  std::vector<trial_fact> facts;
  auto say = [&](const trial_event& ev) {
    for (auto& f : live.apply(ev, t0).facts)
      facts.push_back(f);
  };
  say(trial_activate{});
  say(checkpoint_saved{r1, saved("A", 20)});
  for (const auto& f : facts)
    again.replay(f);
  EXPECT_EQ(show(again.resume()), "told(A@20) start(1@20)");
  facts.clear();
  say(trial_perturb{1, "B", 40, {{"lr", 2}}});
  for (const auto& f : facts)
    again.replay(f);
  EXPECT_EQ(show(again.resume()), "start(1@40) stop(1 perturbed)");
}

TEST(TrialOfASearch, ThatIsPausedSavesLeavesAndGoesOn) {
  const std::vector<trial_row_of_test> rows = {
    {trial_activate{}, "activated started(1@0) | start(1@0)"},
    {trial_pause{}, "paused | stop(1 pause)"},
    {checkpoint_saved{r1, saved("A", 20)}, "recorded(1@20) | acknowledge(1 A)"},
    {allocation_ended{r1, end::completed}, "ended(1 stopped) | "},
    {trial_activate{}, "activated started(2@20) | start(2@20)"},
  };
  follow<trial_fact>(trial(trial_spec{{7}}), rows);
}

// ---- experiment

const trial_id a{1}, b{2};

report_origin origin(trial_id t, run_id r, std::uint64_t sequence) { return {{t, r}, 0, "p", sequence}; }
validation_recorded validated(trial_id t, run_id r, std::uint64_t row, double loss = 1) {
  auto metrics = to_msgpack({{"loss", loss}, {"epochs", row}});
  return {t, origin(t, r, row), row, std::int64_t(10 * row), metrics, r};
}
search_decided nothing() { return {}; }

struct experiment_row_of_test {
  experiment_event event;
  std::string said;
};

search_decided created() {
  search_decided d;
  d.created = {{a, "1", {{"lr", 1}}, 5, ""}, {b, "2", {{"lr", 3}}, 6, ""}};
  return d;
}
search_decided pausing(const char* key) {
  search_decided d;
  d.paused = {key};
  return d;
}
search_decided resuming(const char* key) {
  search_decided d;
  d.resumed = {{key, 4}};
  return d;
}
search_decided perturbing(const char* key, const char* source, const char* checkpoint) {
  search_decided d;
  d.perturbed = {{key, source, checkpoint, {{"lr", 9}}}};
  return d;
}

/// Returns an experiment that has started, with the trials a and b.
experiment begun(bool hears_checkpoints = false) {
  experiment_spec spec{{3}, "loss", "epochs"};
  spec.hears_checkpoints = hears_checkpoints;
  experiment e{spec};
  EXPECT_EQ(show(e.resume(t0)), "ask(started)");
  EXPECT_EQ(show(e.apply(created(), t0)), "stepped(started +1 +2) | spawn(1) spawn(2)");
  return e;
}

TEST(ExperimentOfASearch, PausesAndResumesItsTrialsUnderTheUsersPause) {
  const std::vector<experiment_row_of_test> rows = {
    {validated(a, r1, 1), " | ask(validated)"},
    {pausing("1"), "stepped(validated 1#1 pause 1) | pause(1) answer(stop)"},
    {validated(a, r1, 1), " | answer(stop)"}, // the report is repeated
    {experiment_pause{}, "changed(PAUSED) | pause(1) pause(2)"},
    {experiment_activate{}, "changed(ACTIVE) | activate(2)"}, // the search still pauses trial 1
    {experiment_pause{}, "changed(PAUSED) | pause(1) pause(2)"},
    {validated(b, r1, 1), " | ask(validated)"},
    {resuming("1"), "stepped(validated 2#1 resume 1) | answer(go on)"}, // the user still pauses both trials
    {experiment_activate{}, "changed(ACTIVE) | activate(1) activate(2)"},
    {validated(b, r1, 2), " | ask(validated)"},
    {pausing("2"), "stepped(validated 2#2 pause 2) | pause(2) answer(stop)"},
    {validated(a, r2, 2), " | ask(validated)"},
    {resuming("2"), "stepped(validated 1#2 resume 2) | activate(2) answer(go on)"},
  };
  follow<experiment_fact>(begun(), rows);
}

TEST(ExperimentOfASearch, SpawnsWhatTheSearchPausedAsPausedAfterARestart) {
  auto e = begun();
  (void)e.apply(validated(a, r1, 1), t0);
  (void)e.apply(pausing("1"), t0);
  EXPECT_EQ(show(e.resume_trial(a)), "spawn(1 paused)");
  EXPECT_EQ(show(e.resume_trial(b)), "spawn(2)");
}

TEST(ExperimentOfASearch, HearsNothingOfAPerturbedTrialsOldRun) {
  const std::vector<experiment_row_of_test> rows = {
    {validated(b, r1, 1), " | ask(validated)"},
    {nothing(), "stepped(validated 2#1) | answer(go on)"},
    {checkpoint_reported{b, "B", 10}, " | ask(checkpointed)"},
    {nothing(), "stepped(checkpointed 2) | "},
    {checkpoint_reported{b, "B", 10}, " | "}, // the checkpoint is reported again
    {validated(a, r1, 1), " | ask(validated)"},
    {validated(a, r1, 2), " | "}, // the report waits behind the one before
    {checkpoint_reported{a, "A", 10}, " | "},
    {perturbing("1", "2", "B"), "stepped(validated 1#1 perturb 1#1) | answer(stop) perturb(1) answer(stop)"},
    {validated(a, r1, 3), " | "}, // The experiment does not know yet to which run this report belongs.
    {validated(a, r2, 4), " | "},
    {checkpoint_reported{a, "A", 10}, " | "}, // the checkpoint has the weights from before the perturbation
    // The report of the old run is dropped, and the one of the new run is passed on.
    {perturbation_taken{a, 1, r1}, " | answer(stop) ask(validated)"},
    {nothing(), "stepped(validated 1#4) | answer(go on)"},
    {validated(a, r1, 5), " | answer(stop)"},
    {perturbation_taken{a, 1, r1}, " | "},
    {checkpoint_reported{a, "D", 20}, " | ask(checkpointed)"},
  };
  follow<experiment_fact>(begun(true), rows);
}

TEST(ExperimentOfASearch, TellsAPerturbedTrialAgainAfterARestart) {
  auto e = begun(true);
  for (const experiment_event& ev :
       std::vector<experiment_event>{checkpoint_reported{b, "B", 10}, nothing(), validated(a, r1, 1)})
    static_cast<void>(e.apply(ev, t0));
  auto step = e.apply(perturbing("1", "2", "B"), t0);
  const auto& told = std::get<order_trial>(step.actions.at(0)).perturb;
  EXPECT_EQ(told.steps, 10);
  EXPECT_EQ(told.source, b);
  auto again = e.resume_trial(a);
  EXPECT_EQ(show(again), "spawn(1 perturbed)");
  EXPECT_EQ(to_json(std::get<spawn_trial>(again.at(0)).trial.hparams), R"({"lr":9})");
}

TEST(ExperimentOfASearch, GivesACheckpointTheTimeOfTheReportBeforeIt) {
  auto e = begun(true);
  auto asked = [&](const experiment_event& ev) {
    auto step = e.apply(ev, t0);
    auto event = std::get<ask_searcher>(step.actions.at(0)).event;
    static_cast<void>(e.apply(nothing(), t0));
    auto* x = std::get_if<searchers::trial_checkpointed>(&event);
    return x ? x->step : -1;
  };
  EXPECT_EQ(asked(checkpoint_reported{a, "A", 5}), 0); // trial a has not reported yet
  asked(validated(a, r1, 1));
  asked(validated(a, r1, 2));
  EXPECT_EQ(asked(checkpoint_reported{a, "B", 20}), 2);
  EXPECT_EQ(asked(checkpoint_reported{a, "C", 19}), 1);
  EXPECT_EQ(asked(checkpoint_reported{b, "D", 90}), 0); // the checkpoint belongs to another trial
}

TEST(ExperimentOfASearch, GivesACheckpointThatOvertakesItsReportItsOwnBatches) {
  experiment_spec spec{{3}, "loss", "batches"};
  spec.hears_checkpoints = true;
  experiment e{spec};
  static_cast<void>(e.resume(t0));
  static_cast<void>(e.apply(created(), t0));
  const auto report = [&](std::uint64_t row, std::int64_t steps, const value& metrics) {
    static_cast<void>(
      e.apply(validation_recorded{a, {{a, r1}, 0, "p", row}, row, steps, to_msgpack(metrics), r1}, t0));
    static_cast<void>(e.apply(nothing(), t0));
  };
  const auto step_of = [&](const char* uuid, std::int64_t steps) {
    const auto asked = e.apply(checkpoint_reported{a, uuid, steps}, t0);
    static_cast<void>(e.apply(nothing(), t0));
    return std::get<searchers::trial_checkpointed>(std::get<ask_searcher>(asked.actions.at(0)).event).step;
  };
  report(1, 10, {{"loss", 1.0}});
  EXPECT_EQ(step_of("A", 20), 20);
  report(2, 20, {{"loss", 1.0}, {"batches", 3}}); // the trial reports its own count of batches
  EXPECT_EQ(step_of("B", 25), 3);
}

TEST(ExperimentOfASearch, StartsATrialFromACheckpointOfTheSearchAtItsSteps) {
  auto e = begun(true);
  (void)e.apply(checkpoint_reported{b, "B", 10}, t0);
  (void)e.apply(nothing(), t0);
  (void)e.apply(validated(a, r1, 1), t0);
  search_decided heir;
  heir.created = {{trial_id{4}, "3", {}, 1, "B"}, {trial_id{5}, "4", {}, 1, "from elsewhere"}};
  auto step = e.apply(heir, t0);
  EXPECT_EQ(std::get<spawn_trial>(step.actions.at(0)).trial.source_steps, 10);
  EXPECT_EQ(std::get<spawn_trial>(step.actions.at(1)).trial.source_steps, 0);
}

TEST(ExperimentOfASearch, TakesTheOrdersOfAProcessOutside) {
  search_decided refusing;
  refusing.refused = "actions[0]: an action is an object";
  search_decided over;
  over.shut_down = true;
  const search_orders orders{{{"actions", value::array()}}, 1};
  const std::vector<experiment_row_of_test> rows = {
    {orders, " | ask(ordered)"},
    {refusing, " | orders refused"}, // the search continues
    {orders, " | ask(ordered)"},
    {validated(a, r1, 1), " | "},
    {pausing("2"), "stepped(ordered pause 2) | pause(2) orders taken ask(validated)"},
    {nothing(), "stepped(validated 1#1) | answer(go on)"},
    {orders, " | ask(ordered)"},
    {over, "stepped(ordered over) | orders taken"},
    {orders, " | orders refused"},
    {trial_finished{a}, " | "},
    {trial_finished{b}, "changed(COMPLETED) | report(COMPLETED)"},
    {orders, " | orders refused"},
  };
  follow<experiment_fact>(begun(), rows);
}

} // namespace
} // namespace troupe
