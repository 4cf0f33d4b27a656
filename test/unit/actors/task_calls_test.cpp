// Tests what tasks say over the HTTP API, with the machines of their allocation and trial.

#include "test/unit/actors/show.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{1'700'000'000s};
constexpr allocation_id a12{{1}, {2}};

slots_granted granted(std::vector<placement> on) { return {a12, std::move(on)}; }
troupe::task_exited exited(const std::string& agent, int code, int signal = 0, bool ordered = false) {
  return {a12, agent, code, signal, "", true, ordered};
}

struct line {
  std::variant<allocation_event, allocation_task_event> event;
  std::chrono::seconds at;
  std::string step;
};

/// Applies every line. After each, the replayed machine has to equal the live one.
void expect_steps(allocation& a, std::initializer_list<line> lines) {
  allocation twin{{a12, 1}};
  for (const auto& x : lines) {
    auto s = std::visit([&](const auto& ev) { return a.apply(ev, t0 + x.at); }, x.event);
    const auto event = std::visit([](const auto& ev) { return show(ev); }, x.event);
    EXPECT_EQ(show(s.facts) + " | " + show(s.actions), x.step) << event << " at " << x.at.count() << " s";
    for (const auto& fact : s.facts)
      twin.replay(*decode_as<allocation_fact>(encode_as(fact)));
    EXPECT_EQ(twin.snapshot(), a.snapshot()) << "after " << event;
  }
}

const line placed{granted({{"a", {0}}}), 0s, "placed(a:0) | start(a:0)"};
const line up{troupe::task_started{a12, "a", 7}, 1s, " | "};
const line polled{signal_polled{}, 2s, " | "};
const line paused{allocation_stop{false, "pause"}, 3s, " | signal preempt(a pause)"};

TEST(TaskCalls, AnExitAfterAgreeingToStopIsNotTheEndOfTraining) {
  for (int code : {0, 1}) {
    allocation a{{a12, 1}};
    expect_steps(a, {placed,
                     up,
                     polled,
                     paused,
                     {stop_agreed{}, 4s, "yielded | "},
                     {stop_agreed{}, 4s, " | "},
                     {exited("a", code), 5s, "closed(stopped) | release forget(a) report(stopped)"}});
  }
}

TEST(TaskCalls, WithoutAgreeingAnExitIsWhatItWouldBeAtAnyOtherTime) {
  allocation good{{a12, 1}};
  expect_steps(good, {placed,
                      up,
                      polled,
                      paused,
                      {exited("a", 0), 5s, "closed(completed) | release forget(a) report(completed)"}});
  allocation bad{{a12, 1}};
  expect_steps(
    bad,
    {placed, up, polled, paused, {exited("a", 3), 5s, "closed(failed) | release forget(a) report(failed)"}});
  allocation killed{{a12, 1}};
  expect_steps(killed,
               {placed,
                up,
                polled,
                paused,
                {exited("a", 0, 9, true), 5s, "closed(stopped) | release forget(a) report(stopped)"}});
  allocation too_late{{a12, 1, 60s}};
  expect_steps(too_late, {placed,
                          up,
                          polled,
                          paused,
                          {time_passed{}, 63s, " | kill(a)"},
                          {exited("a", 1), 64s, "closed(stopped) | release forget(a) report(stopped)"}});
  // The script does not use Determined's client: its exit is the answer to the stop.
  allocation never_asks{{a12, 1}};
  expect_steps(never_asks, {placed,
                            up,
                            {allocation_stop{false, "pause"}, 3s, " | preempt(a pause)"},
                            {exited("a", 1), 5s, "closed(stopped) | release forget(a) report(stopped)"}});
}

TEST(TaskCalls, AgreeingToWhatNobodyAskedChangesNothing) {
  allocation a{{a12, 1}};
  expect_steps(a, {placed,
                   up,
                   polled,
                   {stop_agreed{}, 3s, " | "},
                   {exited("a", 0), 4s, "closed(completed) | release forget(a) report(completed)"}});
}

TEST(TaskCalls, AStopFromOutsideIsToldToEveryPart) {
  allocation a{{a12, 1}};
  expect_steps(a, {placed,
                   up,
                   {stop_agreed{true}, 3s, "yielded outside | preempt(a preempted)"},
                   {exited("a", 143), 4s, "closed(stopped) | release forget(a) report(stopped)"}});
  EXPECT_TRUE(a.stopping());
}

TEST(TaskCalls, WhatCannotBeTrainedEndsAsThatAndIsKilledAfterTenSeconds) {
  allocation a{{a12, 1}};
  expect_steps(a,
               {placed,
                up,
                {hyperparameters_refused{}, 3s, "gave_up | "},
                {hyperparameters_refused{}, 4s, " | "},
                {time_passed{}, 12s, " | "},
                {time_passed{}, 13s, " | kill(a)"},
                {exited("a", 0, 9, true), 14s, "closed(invalid_hp) | release forget(a) report(invalid_hp)"}});
  allocation at_once{{a12, 1}};
  expect_steps(at_once, {placed,
                         up,
                         {hyperparameters_refused{}, 3s, "gave_up | "},
                         {exited("a", 1), 4s, "closed(invalid_hp) | release forget(a) report(invalid_hp)"}});
}

TEST(TaskCalls, AnOperatorsWishGoesToEveryRankThatTrains) {
  const auto trains = [](const std::string& agent, int member, std::uint32_t generation = 0) {
    return worker_said{a12, agent, member,
                       workers::encode_worker(workers::worker_word{
                         workers::worker_status{workers::worker_phase::training, generation, 5, 9, 9}})};
  };
  const work_wanted validate{work_wanted::work::validate}, checkpoint{work_wanted::work::checkpoint};
  allocation_spec of_three{a12, 3};
  of_three.least = 1;
  allocation a{of_three};
  expect_steps(a, {{granted({{"a", {0, 1}}, {"b", {0}}}), 0s, "placed(a:0,1 b:0) | start(a:0,1) start(b:0)"},
                   {validate, 1s, " | "}, // no worker has reported yet
                   {trains("a", 0), 1s, " | "},
                   {trains("a", 1), 1s, " | "},
                   {trains("b", 2), 1s, " | "},
                   {validate, 2s,
                    " | order(a/0 validate(1700000002000000)) order(a/1 validate(1700000002000000)) "
                    "order(b/2 validate(1700000002000000))"},
                   {validate, 3s,
                    " | order(a/0 validate(1700000003000000)) order(a/1 validate(1700000003000000)) "
                    "order(b/2 validate(1700000003000000))"},
                   {agent_lost{"a", "silent"}, 4s,
                    "member_lost(a) resized(#1 to 1) | release(a) forget(a) order(b/2 rebuild(#1 2))"},
                   {checkpoint, 5s, " | order(b/2 checkpoint(1700000005000000))"},
                   {allocation_stop{false, "pause"}, 6s, " | preempt(b pause) order(b/2 stop(pause))"},
                   {checkpoint, 7s, " | "}}); // the stop makes the workers save a checkpoint anyway
  EXPECT_TRUE(a.led().empty());
}

TEST(TaskCalls, AGangIsReadyWhenEveryPartHasCalled) {
  allocation a{{a12, 2}};
  expect_steps(a, {{granted({{"a", {0}}, {"b", {0}}}), 0s, "placed(a:0 b:0) | start(a:0) start(b:0)"},
                   {part_called{1}, 1s, " | "},
                   {part_called{1}, 2s, " | "},
                   {part_called{0}, 3s, "ready | gang"},
                   {part_called{1}, 4s, " | gang"}});
  allocation recovered{{a12, 2}};
  recovered.replay(allocation_placed{t0, {{"a", {0}}, {"b", {0}}}});
  recovered.replay(allocation_ready{t0});
  EXPECT_EQ(show(recovered.apply(part_called{1}, t0).actions), "gang")
    << "those who were answered never call again";
}

TEST(TaskCalls, DaemonsAreKilledWhenTheOthersHaveEnded) {
  allocation a{{a12, 2}};
  expect_steps(
    a, {{granted({{"a", {0}}, {"b", {0}}}), 0s, "placed(a:0 b:0) | start(a:0) start(b:0)"},
        {part_left_alone{1}, 1s, "daemon(b) | "},
        {part_left_alone{1}, 1s, " | "},
        {exited("a", 0), 2s, " | kill(b)"},
        {exited("b", 0, 9, true), 3s, "closed(completed) | release forget(a) forget(b) report(completed)"}});
}

TEST(TaskCalls, ATrialStartsFromWhatIsLeftOfItsCheckpoints) {
  trial t{{.id = {1}}};
  static_cast<void>(t.apply(trial_activate{}, t0));
  for (auto [uuid, steps] : {std::pair{"c1", 100}, std::pair{"c2", 200}})
    static_cast<void>(t.apply(checkpoint_saved{{1}, {.uuid = uuid, .steps = steps}}, t0));
  EXPECT_EQ(show(t.apply(checkpoint_files_changed{"c2", {{"a", 1}}, "ann"}, t0).facts),
            "changed(c2 1 by ann)");
  EXPECT_EQ(show(t.apply(allocation_ended{{1}, end::lost}, t0).actions), "start(2@200)");
  EXPECT_EQ(show(t.apply(checkpoint_files_changed{"c2", {}}, t0).facts), "changed(c2 0)");
  EXPECT_EQ(show(t.apply(allocation_ended{{2}, end::lost}, t0 + 60s).facts), "ended(2 lost)");
  EXPECT_EQ(show(t.apply(time_passed{}, t0 + 120s).actions), "start(3@100)");
}

TEST(TaskCalls, ATrialThatFinishedWhileItWasPausedHasEnded) {
  for (bool finished : {false, true}) {
    trial t{{.id = {1}}};
    static_cast<void>(t.apply(trial_activate{}, t0));
    static_cast<void>(t.apply(trial_pause{}, t0));
    auto s = t.apply(allocation_ended{{1}, end::completed, "", finished}, t0);
    EXPECT_EQ(show(s.facts), finished ? "ended(1 completed) done(COMPLETED)" : "ended(1 stopped)");
  }
}

TEST(TaskCalls, ProgressIsAFactAWholePercentApart) {
  trial t{{.id = {1}}};
  static_cast<void>(t.apply(trial_activate{}, t0));
  for (auto [told, facts] : {std::pair{0.005, ""},
                             {0.02, "progressed(2)"},
                             {0.025, ""},
                             {0.5, "progressed(50)"},
                             {1.0, "progressed(100)"},
                             {1.0, ""},
                             {2.0, ""}})
    EXPECT_EQ(show(t.apply(progress_told{told}, t0).facts), facts) << told;
}

} // namespace
} // namespace troupe
