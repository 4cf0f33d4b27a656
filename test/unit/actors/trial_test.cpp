#include "actors/trial/trial.hpp"

#include "test/unit/actors/show.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{1'700'000'000s};
const run_id r1{1}, r2{2}, r3{3};
checkpoint at_step(std::int64_t steps) { return {"c" + std::to_string(steps), steps}; }

struct row {
  trial_event event;
  std::chrono::milliseconds at;
  std::string step;
};

const trial_spec plain{.id = {7}, .max_restarts = 5};

/// Plays a table. After each step a twin that replays the encoded facts has the same bytes.
trial play(trial_spec spec, const std::vector<row>& rows) {
  trial t(spec), twin(spec);
  for (const auto& r : rows) {
    auto s = t.apply(r.event, t0 + r.at);
    EXPECT_EQ(show(s), r.step) << "at " << r.at.count() << " ms";
    for (const auto& fact : s.facts)
      twin.replay(*decode_as<trial_fact>(encode_as(fact)));
    EXPECT_EQ(twin.snapshot(), t.snapshot()) << "at " << r.at.count() << " ms";
  }
  return t;
}

TEST(Trial, RestartsFromItsLatestCheckpoint) {
  play(plain, {
                {trial_activate{}, 0s, "activated started(1@0) | start(1@0)"},
                {checkpoint_saved{r1, at_step(200)}, 9s, "recorded(1@200) | acknowledge(1 c200)"},
                // the checkpoint is reported again
                {checkpoint_saved{r1, at_step(200)}, 9s, " | acknowledge(1 c200)"},
                {allocation_ended{r1, end::lost}, 10s, "ended(1 lost) started(2@200) | start(2@200)"},
                {allocation_ended{r1, end::failed}, 11s, " | "}, // a late message of the first run
                {checkpoint_saved{r1, at_step(300)}, 11s, " | refuse(1 c300)"},
                {allocation_ended{r2, end::failed}, 20s, "ended(2 failed) | "}, // the trial backs off for 1 s
                {time_passed{}, 20'500ms, " | "},
                {time_passed{}, 21s, "started(3@200) | start(3@200)"},
                {allocation_ended{r3, end::completed}, 30s,
                 "ended(3 completed) done(COMPLETED) | report(COMPLETED)"},
                {allocation_ended{r3, end::completed}, 31s, " | "},
              });
}

TEST(Trial, GivesUpAfterItsRestarts) {
  play({.id = {7}, .max_restarts = 1},
       {
         {trial_activate{}, 0s, "activated started(1@0) | start(1@0)"},
         {allocation_ended{r1, end::failed}, 1s, "ended(1 failed) | "},
         {time_passed{}, 2s, "started(2@0) | start(2@0)"},
         {allocation_ended{r2, end::failed}, 3s, "ended(2 failed) done(ERROR) | report(ERROR 0)"},
       });
}

TEST(Trial, BacksOffByTheFailuresSinceItsLatestCheckpoint) {
  play({.id = {7}, .max_restarts = 9},
       {
         {trial_activate{}, 0s, "activated started(1@0) | start(1@0)"},
         {allocation_ended{r1, end::failed}, 1s, "ended(1 failed) | "},
         {time_passed{}, 2s, "started(2@0) | start(2@0)"},
         {allocation_ended{r2, end::failed}, 3s, "ended(2 failed) | "},
         {time_passed{}, 4s, " | "}, // after the second failure in a row the trial waits for 2 s
         {time_passed{}, 5s, "started(3@0) | start(3@0)"},
         {checkpoint_saved{r3, at_step(1)}, 6s, "recorded(3@1) | acknowledge(3 c1)"},
         // The run saved a checkpoint, so the trial backs off for 1 s again.
         {allocation_ended{r3, end::failed}, 7s, "ended(3 failed) | "},
         {time_passed{}, 8s, "started(4@1) | start(4@1)"},
       });
}

TEST(Trial, CountsLostRunsApartAndBoundsThem) {
  play({.id = {7}, .max_restarts = 0, .max_losses = 2},
       {
         {trial_activate{}, 0s, "activated started(1@0) | start(1@0)"},
         {allocation_ended{r1, end::lost}, 1s, "ended(1 lost) started(2@0) | start(2@0)"},
         // progress: losses count from 0 again
         {checkpoint_saved{r2, at_step(1)}, 2s, "recorded(2@1) | acknowledge(2 c1)"},
         {allocation_ended{r2, end::lost}, 3s, "ended(2 lost) started(3@1) | start(3@1)"},
         {allocation_ended{r3, end::lost}, 4s, "ended(3 lost) done(ERROR) | report(ERROR 0)"},
       });
}

TEST(Trial, PausesThroughACheckpointAndGoesOn) {
  play(plain,
       {
         {trial_activate{}, 0s, "activated started(1@0) | start(1@0)"},
         {trial_pause{}, 1s, "paused | stop(1 pause)"},
         {trial_pause{}, 1s, " | "},
         {checkpoint_saved{r1, at_step(5)}, 2s, "recorded(1@5) | acknowledge(1 c5)"},
         {allocation_ended{r1, end::completed}, 3s, "ended(1 stopped) | "}, // the exit answers the pause
         {time_passed{}, 9s, " | "},
         {trial_activate{}, 10s, "activated started(2@5) | start(2@5)"},
       });
}

TEST(Trial, StaysAskedToExitWhenItIsActivatedMeanwhile) {
  auto t = play(plain, {
                         {trial_activate{}, 0s, "activated started(1@0) | start(1@0)"},
                         {trial_pause{}, 1s, "paused | stop(1 pause)"},
                         {trial_activate{}, 2s, "activated | "},
                       });
  // The script has been told of the pause and will exit.
  EXPECT_EQ(show(t.resume()), "start(1@0) stop(1 pause)");
  EXPECT_EQ(show(t.apply(allocation_ended{r1, end::completed}, t0 + 3s)),
            "ended(1 stopped) started(2@0) | start(2@0)");
}

TEST(Trial, EndsAsItsStopSays) {
  struct {
    trial_stop stop;
    std::string order, end;
  } cases[] = {
    {{trial_state::completed, false, "pruned"},
     "stopping(COMPLETED) | stop(1 pruned)",
     "ended(1 stopped) done(COMPLETED) | report(COMPLETED)"},
    {{trial_state::canceled, false, "cancel"},
     "stopping(CANCELED) | stop(1 canceled)",
     "ended(1 stopped) done(CANCELED) | report(CANCELED 2)"},
    {{trial_state::canceled, true, "killed by ann"},
     "stopping(CANCELED kill) | stop(1 killed by ann kill)",
     "ended(1 stopped) done(CANCELED) | report(CANCELED 2)"},
    {{trial_state::error, true, "broken"},
     "stopping(ERROR kill) | stop(1 broken kill)",
     "ended(1 stopped) done(ERROR) | report(ERROR)"},
  };
  for (const auto& c : cases)
    play(plain, {
                  {trial_activate{}, 0s, "activated started(1@0) | start(1@0)"},
                  {c.stop, 1s, c.order},
                  {c.stop, 1s, " | "},
                  {allocation_ended{r1, end::completed}, 2s, c.end},
                });
}

TEST(Trial, EndsAtOnceWhenNothingRuns) {
  play(plain, {{trial_stop{trial_state::completed, false, "pruned"}, 0s,
                "stopping(COMPLETED) done(COMPLETED) | report(COMPLETED)"},
               {trial_stop{trial_state::completed, false, "pruned"}, 1s, " | report(COMPLETED)"}});
}

TEST(Trial, KillsWhatACancelHasNotEnded) {
  play(plain,
       {
         {trial_activate{}, 0s, "activated started(1@0) | start(1@0)"},
         {trial_stop{trial_state::canceled, false, ""}, 1s, "stopping(CANCELED) | stop(1 canceled)"},
         {trial_stop{trial_state::canceled, true, "killed by ann", "ann"}, 2s,
          "stopping(CANCELED kill by ann) | stop(1 killed by ann kill)"},
         // a cancellation is weaker than the kill that was ordered
         {trial_stop{trial_state::canceled, false, ""}, 3s, " | "},
         {allocation_ended{r1, end::stopped}, 4s, "ended(1 stopped) done(CANCELED) | report(CANCELED 2)"},
       });
}

TEST(Trial, TellsTheSearchOfHyperparametersThatCannotBeTrained) {
  play(plain, {{trial_activate{}, 0s, "activated started(1@0) | start(1@0)"},
               {allocation_ended{r1, end::invalid_hp}, 1s,
                "ended(1 invalid_hp) done(COMPLETED) | report(COMPLETED 3)"}});
}

TEST(Trial, ResumesWhatWasWaitedFor) {
  trial fresh(trial_spec{{7}});
  EXPECT_EQ(show(fresh.resume()), "");
  auto running = play(plain, {{trial_activate{}, 0s, "activated started(1@0) | start(1@0)"}});
  EXPECT_EQ(show(running.resume()), "start(1@0)");
  auto stopping = play(plain, {{trial_activate{}, 0s, "activated started(1@0) | start(1@0)"},
                               {trial_stop{trial_state::canceled, true, "killed by ann"}, 1s,
                                "stopping(CANCELED kill) | stop(1 killed by ann kill)"}});
  EXPECT_EQ(show(stopping.resume()), "start(1@0) stop(1 killed by ann kill)");
  auto waiting = play(plain, {{trial_activate{}, 0s, "activated started(1@0) | start(1@0)"},
                              {allocation_ended{r1, end::failed}, 1s, "ended(1 failed) | "}});
  EXPECT_EQ(show(waiting.resume()), "");
  EXPECT_EQ(waiting.deadline(), t0 + 2s);
}

TEST(Trial, BacksOffUpToHalfAMinute) {
  trial t{{.id = {7}, .max_restarts = 100}};
  auto now = t0;
  [[maybe_unused]] auto begun = t.apply(trial_activate{}, now);
  std::vector<duration> waits;
  for (std::uint32_t run = 1; run <= 7; ++run) {
    [[maybe_unused]] auto failed = t.apply(allocation_ended{run_id{run}, end::failed}, now);
    ASSERT_TRUE(t.deadline());
    waits.push_back(*t.deadline() - now);
    now = *t.deadline();
    [[maybe_unused]] auto next = t.apply(time_passed{}, now);
  }
  EXPECT_EQ(waits, (std::vector<duration>{1s, 2s, 4s, 8s, 16s, 30s, 30s}));
}

TEST(Trial, GoesOnFromItsNewestCheckpointWhereItsExperimentIsContinued) {
  const trial_spec of_first{.id = {7}, .max_restarts = 1};
  std::vector<trial_fact> past;
  trial first(of_first);
  for (const auto& [event, at] : std::vector<std::pair<trial_event, std::chrono::seconds>>{
         {trial_activate{}, 0s},
         {checkpoint_saved{r1, at_step(200)}, 1s},
         {log_matched{r1, "a1", "ecc", "ECC", "an ECC fault", true, false}, 1s},
         {allocation_ended{r1, end::failed}, 2s},
         {time_passed{}, 3s},
         {allocation_ended{r2, end::failed}, 4s}})
    for (auto& fact : first.apply(event, t0 + at).facts)
      past.push_back(fact);
  ASSERT_TRUE(first.ended());
  auto again = of_first;
  again.continued = 1;
  trial t(again);
  for (const auto& fact : past)
    t.replay(fact);
  EXPECT_EQ(show(t.resume()), "") << "its old end is told to nobody";
  EXPECT_EQ(show(t.apply(trial_activate{}, t0 + 9s)),
            "continued(#1 after 2) activated started(3@200) | start(3@200)");
  EXPECT_TRUE(std::get<start_allocation>(t.resume().front()).not_agents.empty());
  EXPECT_EQ(show(t.apply(allocation_ended{r3, end::failed}, t0 + 10s)), "ended(3 failed) | ")
    << "restarts count anew";
  EXPECT_EQ(show(t.apply(time_passed{}, t0 + 30s)), "started(4@200) | start(4@200)");
  EXPECT_EQ(show(t.apply(allocation_ended{{4}, end::completed}, t0 + 40s)),
            "ended(4 completed) done(COMPLETED) | report(COMPLETED)");
  EXPECT_EQ(show(t.resume()), "report(COMPLETED)");
}

TEST(Trial, IsNotRestartedWhereNoAgentIsLeftForIt) {
  allocation_ended nowhere{r2, end::failed, "no agent is left"};
  nowhere.unplaceable = true;
  auto t =
    play({.id = {7}, .max_restarts = 5}, {
                                           {trial_activate{}, 0s, "activated started(1@0) | start(1@0)"},
                                           {log_matched{r1, "a1", "ecc", "ECC", "an ECC fault", true, false},
                                            1s, "matched(ecc not on a1) | say(log_policy/1)"},
                                           {allocation_ended{r1, end::failed}, 2s, "ended(1 failed) | "},
                                           {time_passed{}, 3s, "started(2@0) | start(2@0)"},
                                           {nowhere, 4s, "ended(2 failed) done(ERROR) | report(ERROR 0)"},
                                         });
  EXPECT_EQ(t.describe()["restarts"], 1) << "what never ran is no restart";
  EXPECT_EQ(t.describe()["ended"]["why"], "no agent is left");
}

TEST(Trial, ObeysItsLogPolicies) {
  const log_matched broken_host{r1, "a1", "ecc", "ECC", "an ECC fault", true, false},
    elsewhere{r2, "a2", "ecc", "ECC", "an ECC fault", true, false},
    hopeless{r2, "a2", "oom", "memory", "no memory", false, true};
  auto t = play({.id = {7}, .max_restarts = 5},
                {
                  {trial_activate{}, 0s, "activated started(1@0) | start(1@0)"},
                  {broken_host, 1s, "matched(ecc not on a1) | say(log_policy/1)"},
                  {broken_host, 1s, " | "}, // one match is noted for each agent
                  {allocation_ended{r1, end::failed}, 2s, "ended(1 failed) | "},
                  {time_passed{}, 3s, "started(2@0) | start(2@0)"},
                  {elsewhere, 4s, "matched(ecc not on a2) | say(log_policy/2)"},
                  {hopeless, 4s, "matched(oom no retry) | "},
                  {hopeless, 4s, " | "},
                  {allocation_ended{r2, end::failed}, 5s,
                   "ended(2 failed) done(ERROR) | say(no_retry/2) say(no_retry/2/line) report(ERROR 0)"},
                });
  trial other({.id = {7}, .max_restarts = 5});
  static_cast<void>(other.apply(trial_activate{}, t0));
  static_cast<void>(other.apply(broken_host, t0));
  static_cast<void>(other.apply(allocation_ended{r1, end::lost}, t0));
  const auto order = std::get<start_allocation>(other.resume().back());
  EXPECT_EQ(order.not_agents, std::vector<std::string>{"a1"});
}

} // namespace
} // namespace troupe
