#include "actors/experiment/experiment.hpp"

#include "test/unit/actors/show.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{1'700'000'000s};
const experiment_spec spec{{1}, "loss", "batches"};
const std::string metrics = to_msgpack({{"loss", 0.5}, {"batches", 4}, {"other", 1}});

trial_created made(std::uint64_t id) { return {{id}, std::to_string(id), value::object(), 1, ""}; }
search_decided creates(std::vector<std::uint64_t> ids) {
  search_decided d;
  for (auto id : ids)
    d.created.push_back(made(id));
  return d;
}
search_decided stops(std::string key) {
  search_decided d;
  d.stopped.emplace_back(key, trial_stop_decided{{}, "worse"});
  return d;
}
search_decided over() {
  search_decided d;
  d.shut_down = true;
  return d;
}
validation_recorded validated(std::uint64_t trial, std::uint64_t row) {
  return {{trial}, {{{trial}, {1}}, 0, "p", row}, row, 4, metrics};
}

struct row {
  experiment_event event;
  std::string step;
};

void continue_with(experiment& e, experiment& twin, const std::vector<row>& rows) {
  for (const auto& r : rows) {
    auto s = e.apply(r.event, t0);
    EXPECT_EQ(show(s), r.step) << "on " << show(r.event);
    for (const auto& fact : s.facts)
      twin.replay(*decode_as<experiment_fact>(encode_as(fact)));
    EXPECT_EQ(twin.snapshot(), e.snapshot()) << "on " << show(r.event);
  }
}
/// Starts the search with trials 1 and 2. Returns the twin that saw only the facts, as after a crash.
experiment play(const std::vector<row>& rows, bool two_trials = true) {
  experiment e(spec), twin(spec);
  EXPECT_EQ(show(e.resume(t0)), "ask(started)");
  if (two_trials)
    continue_with(e, twin, {{creates({1, 2}), "stepped(started +1 +2) | spawn(1) spawn(2)"}});
  continue_with(e, twin, rows);
  return twin;
}

TEST(Experiment, CommitsEachStepOfTheSearchAsOneFact) {
  play({
    {validated(1, 1), " | ask(validated)"},
    {validated(2, 1), " | "}, // the experiment asks the search one question at a time
    {stops("1"), "stepped(validated 1#1 -1) | stop(1 COMPLETED) answer(stop) ask(validated)"},
    {search_decided{}, "stepped(validated 2#1) | answer(go on)"},
    {validated(1, 1), " | answer(stop)"}, // A repeated report gets the answer that was decided.
    {validated(2, 1), " | answer(go on)"},
    {trial_finished{{1}}, " | ask(exited)"},
    {creates({3}), "stepped(exited 1 +3) | spawn(3)"},
    {trial_finished{{1}}, " | "},
    {validated(1, 2), " | answer(stop)"}, // trial 1 has ended
  });
}

TEST(Experiment, TellsTheSearchOnlyItsMetrics) {
  experiment e(spec);
  static_cast<void>(e.resume(t0));
  static_cast<void>(e.apply(creates({1}), t0));
  auto s = e.apply(validated(1, 1), t0);
  auto asked = std::get<searchers::trial_validated>(std::get<ask_searcher>(s.actions.at(0)).event);
  EXPECT_EQ(asked.metrics, (value{{"loss", 0.5}, {"batches", 4}}));
}

TEST(Experiment, EndsWithItsSearch) {
  play({
    {trial_finished{{1}, trial_state::error, 0}, " | ask(exited_early)"},
    {search_decided{}, "stepped(exited_early 1) | ask(exited)"},
    {search_decided{}, "stepped(exited 1) | "},
    {trial_finished{{2}}, " | ask(exited)"},
    {over(), "stepped(exited 2 over) changed(COMPLETED) | report(COMPLETED)"},
    {validated(2, 1), " | answer(stop)"},
  });
}

TEST(Experiment, TakesNoOtherPriorityAtItsEnd) {
  experiment e(spec);
  EXPECT_EQ(show(e.resume(t0)), "ask(started)");
  const experiment_set order{"ada", 40};
  EXPECT_FALSE(e.refuses(order));
  EXPECT_EQ(show(e.apply(over(), t0)), "stepped(started over) changed(COMPLETED) | report(COMPLETED)");
  EXPECT_TRUE(terminal(e.state())) << "the fact may not be stored yet, so that others take it for active";
  const auto no = e.refuses(order);
  ASSERT_TRUE(no);
  EXPECT_EQ(no->code, errc::conflict);
  EXPECT_EQ(no->what, "experiment 1 is COMPLETED");
}

TEST(Experiment, WaitsForItsTrialsWhenTheSearchIsOverEarly) {
  play({
    {validated(1, 1), " | ask(validated)"},
    {validated(2, 1), " | "},
    {over(), "stepped(validated 1#1 over) | answer(go on) answer(stop)"},
    {validated(2, 2), " | answer(stop)"},
    {trial_finished{{1}}, " | "},
    {trial_finished{{2}}, "changed(COMPLETED) | report(COMPLETED)"},
  });
}

TEST(Experiment, PausesAndActivatesItsTrials) {
  play({
    {experiment_pause{}, "changed(PAUSED) | pause(1) pause(2)"},
    {experiment_pause{}, " | "},
    {trial_finished{{1}}, " | ask(exited)"},
    {creates({3}), "stepped(exited 1 +3) | spawn(3 paused)"}, // the search continues, and its new trial waits
    {experiment_activate{}, "changed(ACTIVE) | activate(2) activate(3)"},
  });
}

TEST(Experiment, NotesWhoOrderedAChange) {
  play({
    {experiment_pause{"ann"}, "changed(PAUSED by ann) | pause(1) pause(2)"},
    {experiment_activate{"bob"}, "changed(ACTIVE by bob) | activate(1) activate(2)"},
    {experiment_stop{false, "w", false, "ann"},
     "changed(STOPPING_CANCELED by ann) | stop(1 CANCELED) stop(2 CANCELED)"},
    {experiment_stop{true, "w", false, "bob"},
     "changed(STOPPING_KILLED by bob) | stop(1 CANCELED kill) stop(2 CANCELED kill)"},
    {trial_finished{{1}}, " | "},
    {trial_finished{{2}}, "changed(CANCELED) | report(CANCELED)"}, // no user orders the end itself
  });
}

TEST(Experiment, CancelsAndThenKills) {
  play({
    {validated(1, 1), " | ask(validated)"},
    {experiment_stop{false, "enough"},
     "changed(STOPPING_CANCELED) | answer(stop) stop(1 CANCELED) stop(2 CANCELED)"},
    {search_decided{}, " | "}, // the question was asked before the stop
    {experiment_stop{false, "enough"}, " | "},
    {experiment_stop{true, "now"}, "changed(STOPPING_KILLED) | stop(1 CANCELED kill) stop(2 CANCELED kill)"},
    {trial_finished{{1}}, " | "},
    {trial_finished{{2}}, "changed(CANCELED) | report(CANCELED)"},
  });
}

TEST(Experiment, FailsWithItsSearcher) {
  search_decided broken;
  broken.fault = "no such trial";
  auto after = play({
    {validated(1, 1), " | ask(validated)"},
    {validated(2, 1), " | "},
    {broken, "changed(STOPPING_ERROR) | answer(stop) answer(stop) stop(1 ERROR kill) stop(2 ERROR kill)"},
    {trial_finished{{1}}, " | "},
  });
  EXPECT_EQ(show(after.resume(t0)), "spawn(1 paused) stop(1 ERROR kill) spawn(2 paused) stop(2 ERROR kill)");
}

TEST(Experiment, ResumesWithItsTrialsAndWhatTheyWereTold) {
  auto after = play({
    {validated(1, 1), " | ask(validated)"},
    {stops("1"), "stepped(validated 1#1 -1) | stop(1 COMPLETED) answer(stop)"},
    {trial_finished{{2}}, " | ask(exited)"}, // the crash comes before the search has answered
  });
  EXPECT_EQ(show(after.resume(t0)), "spawn(1) stop(1 COMPLETED) spawn(2)");
  EXPECT_EQ(show(after.resume_trial({1})), "spawn(1) stop(1 COMPLETED)");
  EXPECT_EQ(after.heard_rows(), (std::map<trial_id, std::uint64_t>{{{1}, 1}, {{2}, 0}}));
  EXPECT_EQ(after.take_history().size(), 2u);
  // After the restart the trial reports its end again.
  EXPECT_EQ(show(after.apply(trial_finished{{2}}, t0)), " | ask(exited)");
}

TEST(Experiment, GoesOnFromItsSnapshotAsFromItsFacts) {
  experiment e({{1}, "loss", "batches", {}, false, 2}), whole(spec);
  static_cast<void>(e.resume(t0));
  std::vector<keep_snapshot> kept;
  std::vector<experiment_fact> since;
  auto hear = [&](const experiment_event& ev) {
    auto s = e.apply(ev, t0);
    for (const auto& fact : s.facts) {
      whole.replay(fact);
      since.push_back(fact);
    }
    for (auto& action : s.actions)
      if (auto* keep = std::get_if<keep_snapshot>(&action)) {
        kept.push_back(*keep);
        since.clear();
      }
    return show(s);
  };
  EXPECT_EQ(hear(creates({1, 2})), "stepped(started +1 +2) | spawn(1) spawn(2)");
  hear(validated(1, 1));
  EXPECT_EQ(hear(stops("1")), "stepped(validated 1#1 -1) | keep(2) stop(1 COMPLETED) answer(stop)");
  hear(validated(2, 1));
  hear(search_decided{});
  ASSERT_EQ(kept.size(), 1u);
  ASSERT_EQ(since.size(), 1u);

  experiment restored(spec);
  ASSERT_TRUE(restored.restore(kept.front().machine));
  EXPECT_EQ(restored.facts(), kept.front().facts);
  for (const auto& fact : since)
    restored.replay(fact);
  EXPECT_EQ(restored.snapshot(), whole.snapshot());
  EXPECT_EQ(restored.heard_rows(), whole.heard_rows());
  EXPECT_EQ(restored.take_history().size(), 1u) << "the searcher's own snapshot has the rest";
  EXPECT_EQ(show(restored.resume(t0)), show(whole.resume(t0)));

  experiment fresh(spec);
  for (const char* bad : {"", "no snapshot", "\x97\x63"})
    EXPECT_FALSE(fresh.restore(bad)) << bad;
  EXPECT_EQ(fresh.snapshot(), experiment(spec).snapshot());
}

TEST(Experiment, AsksAgainToStartAfterACrashBeforeTheFirstDecision) {
  EXPECT_EQ(show(play({}, false).resume(t0)), "ask(started)");
}

TEST(Experiment, IsContinuedAfterItsEnd) {
  auto twin = play({
    {trial_finished{{1}, trial_state::error, 0}, " | ask(exited_early)"},
    {search_decided{}, "stepped(exited_early 1) | ask(exited)"},
    {search_decided{}, "stepped(exited 1) | "},
    {experiment_stop{true, "killed"}, "changed(STOPPING_KILLED) | stop(2 CANCELED kill)"},
    {trial_finished{{2}, trial_state::canceled}, "changed(CANCELED) | report(CANCELED)"},
  });
  auto ended = twin;
  EXPECT_EQ(show(ended.apply(experiment_activate{}, t0)), " | ") << "an end is an end";
  auto anew = twin;
  const auto again_so = anew.apply(experiment_resume{1, {{1}}, true, {{"lr", 3}}}, t0);
  for (const auto& action : again_so.actions) {
    const auto* spawn = std::get_if<spawn_trial>(&action);
    if (spawn && spawn->trial.trial == trial_id{1}) {
      EXPECT_EQ(spawn->trial.hparams, (value{{"lr", 3}})) << "of the configuration that it is continued with";
    }
  }
  // As after a restart: the trial whose end the search has already heard waits until the search gives it a
  // slot.
  auto other = twin;
  continue_with(
    twin, other,
    {{experiment_resume{1, {{1}, {2}}}, "resumed(#1 1 2) | spawn(1 paused #1) spawn(2 #1) ask(continued)"},
     {experiment_resume{1, {{1}, {2}}}, " | "}}); // the order is repeated
  search_decided again;
  again.resumed.emplace_back("1", 0);
  continue_with(twin, other, {{again, "stepped(continued resume 1) | activate(1)"}});
  EXPECT_EQ(show(other.resume(t0)), "spawn(1 #1) spawn(2 #1)");
  continue_with(twin, other,
                {{trial_finished{{2}}, " | ask(exited)"},
                 {search_decided{}, "stepped(exited 2) | "},
                 {trial_finished{{1}}, " | ask(exited)"},
                 {over(), "stepped(exited 1 over) changed(COMPLETED) | report(COMPLETED)"}});
}

TEST(Experiment, AsksItsSearchAgainWhereItFellInTheMiddleOfAContinuation) {
  auto e = play({
    {experiment_stop{true, "killed"},
     "changed(STOPPING_KILLED) | stop(1 CANCELED kill) stop(2 CANCELED kill)"},
    {trial_finished{{1}, trial_state::canceled}, " | "},
    {trial_finished{{2}, trial_state::canceled}, "changed(CANCELED) | report(CANCELED)"},
  });
  const auto facts = e.apply(experiment_resume{1, {{1}, {2}}}, t0).facts;
  EXPECT_EQ(show(facts), "resumed(#1 1 2)");
  experiment kept(spec);
  ASSERT_TRUE(kept.restore(e.snapshot()));
  EXPECT_EQ(kept.snapshot(), e.snapshot());
  EXPECT_EQ(show(kept.resume(t0)), "spawn(1 #1) spawn(2 #1) ask(continued)");
}

} // namespace
} // namespace troupe
