#include "actors/allocation/allocation.hpp"

#include "test/unit/actors/show.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{1'700'000'000s};
const allocation_id id{{12}, {3}};
const slots_granted on_a{id, {{"a", {0}}}};
const slots_granted on_both{id, {{"a", {0}}, {"b", {1}}}};
task_exited exit_of(std::string agent, int code, int signal = 0) {
  return {id, std::move(agent), code, signal, ""};
}

struct row {
  allocation_event event;
  std::chrono::milliseconds at;
  std::string step;
};

void continue_with(allocation& a, allocation& twin, const std::vector<row>& rows) {
  for (const auto& r : rows) {
    auto s = a.apply(r.event, t0 + r.at);
    EXPECT_EQ(show(s), r.step) << "on " << show(r.event) << " at " << r.at.count() << " ms";
    for (const auto& fact : s.facts)
      twin.replay(*decode_as<allocation_fact>(encode_as(fact)));
    EXPECT_EQ(twin.snapshot(), a.snapshot());
  }
}
allocation play(const std::vector<row>& rows) {
  allocation a({id, 1, 60s}), twin({id});
  continue_with(a, twin, rows);
  return a;
}
/// Plays `rows` to an allocation that was placed before a restart of the master and has resumed.
void recover(const slots_granted& placed, const std::vector<row>& rows) {
  allocation a({id, int(placed.on.size()), 60s}), twin({id});
  allocation_placed fact{t0, placed.on};
  a.replay(fact);
  twin.replay(fact);
  static_cast<void>(a.resume());
  continue_with(a, twin, rows);
}

TEST(Allocation, FailsWhereItsLogPoliciesLeaveNoAgent) {
  auto a = play({
    // the allocation waits, as the log policies exclude no agent
    {report_unplaceable{id, 1, 1, {}}, 0s, " | "},
    {report_unplaceable{id, 1, 1, {"a", "b"}}, 1s, "closed(failed) | release report(failed)"},
    {report_unplaceable{id, 1, 1, {"a", "b"}}, 1s, " | "},
  });
  const auto told = std::get<report_allocation_end>(a.resume().back());
  EXPECT_TRUE(told.unplaceable) << "also after a restart of the master";
  EXPECT_EQ(told.detail, "no agent is left that could hold it: its log policies exclude a, b");
  EXPECT_EQ(told.exit_code, -1);
  play({
    {on_a, 0s, "placed(a:0) | start(a:0)"},
    // the pool said so before the allocation was placed elsewhere
    {report_unplaceable{id, 1, 1, {"b"}}, 1s, " | "},
  });
}

TEST(Allocation, AsksStartsAndCloses) {
  allocation fresh({id, 2});
  EXPECT_EQ(show(fresh.resume()), "request(2)");
  auto a = play({
    {on_a, 0s, "placed(a:0) | start(a:0)"},
    {on_a, 0s, " | "}, // the grant is repeated
    {task_started{id, "a", 7}, 1s, " | "},
    {exit_of("a", 0), 9s, "closed(completed) | release forget(a) report(completed)"},
    {exit_of("a", 0), 9s, " | forget(a)"}, // the agent has not yet heard that it may forget the task
    {on_a, 10s, " | release"},             // a late grant
    {task_started{id, "a", 7}, 10s, " | kill(a)"},
    {allocation_stop{true, "killed"}, 10s, " | report(completed)"},
  });
  EXPECT_EQ(show(a.resume()), "release forget(a) report(completed)");
}

slots_granted by(const char* pool) { return {id, {{"a", {0}}}, pool}; }
allocation play_at_home(const std::vector<row>& rows) {
  allocation_spec spec{id, 1, 60s};
  spec.home = "home";
  allocation a(spec), twin(spec);
  continue_with(a, twin, rows);
  return a;
}

TEST(Allocation, AsksOnePoolAfterTheOtherWhereItFallsBack) {
  play_at_home({
    {fall_back{id, {"b", "c"}}, 0s, " | ask(b)"},
    {fall_back{id, {"b", "c"}}, 0s, " | "}, // the order is repeated
    {guest_waits{id, "b"}, 1s, " | ask(c)"},
    {guest_waits{id, "b"}, 1s, " | "},
    {guest_waits{id, "c"}, 2s, " | "}, // the allocation now waits in all pools
    {by("b"), 3s, "placed(a:0) | leave(home) leave(c) start(a:0)"},
    {by("home"), 3s, " | leave(home)"}, // the home pool granted before it heard that the allocation had left
    {by("b"), 4s, " | "},               // the grant is repeated
  });
}

TEST(Allocation, IsPlacedAtHomeWhereThatIsFaster) {
  play_at_home({
    {fall_back{id, {"home", "b", "c"}}, 0s, " | ask(b)"},
    {by("home"), 1s, "placed(a:0) | leave(b) start(a:0)"},
    {guest_waits{id, "b"}, 1s, " | "},
    // Pool b granted slots before it heard that the allocation was placed at home.
    {by("b"), 2s, " | leave(b)"},
    {fall_back{id, {"c"}}, 3s, " | "},
  });
}

TEST(Allocation, LeavesPoolsThatItMayNoLongerAsk) {
  play_at_home({
    {fall_back{id, {"b", "c"}}, 0s, " | ask(b)"},
    {guest_waits{id, "b"}, 1s, " | ask(c)"},
    {fall_back{id, {"c", "d"}}, 2s, " | leave(b)"},
    {guest_waits{id, "c"}, 3s, " | ask(d)"},
    {fall_back{id, {}}, 4s, " | leave(c) leave(d)"},
    {fall_back{id, {"b"}}, 5s, " | ask(b)"},
    {allocation_stop{false, "pause"}, 6s, "closed(stopped) | release leave(b) report(stopped)"},
    {by("b"), 7s, " | leave(b)"},
  });
}

TEST(Allocation, KeepsAfterARestartWhereItFellBackTo) {
  allocation_spec spec{id, 1, 60s};
  spec.home = "home";
  allocation a(spec);
  a.replay(allocation_placed{t0, {{"a", {0}}}, "b", false, "home"});
  EXPECT_EQ(a.pool(), "b");
  EXPECT_EQ(a.home(), "home");
  EXPECT_EQ(show(a.resume()), "watch(a)");
}

TEST(Allocation, JudgesHowItsTaskEnded) {
  struct {
    task_exited exit;
    std::string step;
  } cases[] = {
    {exit_of("a", 1), "closed(failed) | release forget(a) report(failed)"},
    {exit_of("a", -1, 11), "closed(failed) | release forget(a) report(failed)"},
    {{id, "a", -1, 0, "gone", false}, "closed(lost) | release forget(a) report(lost)"},
    {{id, "a", -1, 9, "killed", true, true}, "closed(stopped) | release forget(a) report(stopped)"},
  };
  for (const auto& c : cases)
    play({{on_a, 0s, "placed(a:0) | start(a:0)"}, {c.exit, 1s, c.step}});
}

// In a collective the other parts would wait for the crashed part until the limit of the stop, which is an
// hour unless the configuration sets less.
TEST(Allocation, WhereOnePartCrashesAtAStopTheOthersAreKilledSoon) {
  play({
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {task_started{id, "b", 7}, 1s, " | "},
    {allocation_stop{false, "pruned"}, 5s, " | preempt(a pruned) preempt(b pruned)"},
    {exit_of("a", -1, 11), 6s, " | "},
    {time_passed{}, 7s, " | kill(b)"},
    {exit_of("b", -1, 9), 8s, "closed(stopped) | release forget(a) forget(b) report(stopped)"},
  });
  play({
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {task_started{id, "b", 7}, 1s, " | "},
    {allocation_stop{false, "pruned"}, 5s, " | preempt(a pruned) preempt(b pruned)"},
    {{task_exited{id, "a", -1, 0, "its host restarted", false}}, 6s, " | "},
    {time_passed{}, 7s, " | kill(b)"},
    {exit_of("b", -1, 9), 8s, "closed(stopped) | release forget(a) forget(b) report(stopped)"},
  });
  play({
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {task_started{id, "b", 7}, 1s, " | "},
    {allocation_stop{false, "pruned"}, 5s, " | preempt(a pruned) preempt(b pruned)"},
    {exit_of("a", 0), 6s, " | "},
    {time_passed{}, 20s, " | "}, // The other part may still be saving a checkpoint.
    {exit_of("b", 0), 21s, "closed(stopped) | release forget(a) forget(b) report(stopped)"},
  });
}

task_exited silent(task_exited exit, bool ordered = false) {
  exit.silent = true;
  exit.ordered = ordered;
  return exit;
}
bool finished(allocation& a) { return std::get<report_allocation_end>(a.resume().back()).finished; }

TEST(Allocation, WhoCannotHearOfAStopIsJudgedByItsOwnEnd) {
  const row placed{on_a, 0s, "placed(a:0) | start(a:0)"}, up{task_started{id, "a", 7}, 1s, " | "};
  const row preempted{preempt_allocation{id, {}, "priority"}, 2s,
                      "preempted(priority) | preempt(a preempted: priority)"};
  const row time_over{time_passed{}, 62s, " | kill(a)"};
  const std::string completed = "closed(completed) | release forget(a) report(completed)",
                    stopped = "closed(stopped) | release forget(a) report(stopped)",
                    failed = "closed(failed) | release forget(a) report(failed)";
  auto done = play({placed, up, preempted, {silent(exit_of("a", 0)), 3s, completed}});
  EXPECT_TRUE(finished(done));
  play({placed, up, preempted, {silent(exit_of("a", 1)), 3s, failed}});
  play({placed, up, preempted, {exit_of("a", 0), 3s, stopped}});
  play({placed, up, preempted, {exit_of("a", 1), 3s, stopped}});
  play({placed, up, preempted, time_over, {silent(exit_of("a", -1, 9), true), 63s, stopped}});
  play({placed, up, preempted, time_over, {silent(exit_of("a", 1), true), 63s, stopped}});
  auto late = play({placed, up, preempted, time_over, {silent(exit_of("a", 0), true), 63s, completed}});
  EXPECT_TRUE(finished(late)) << "it was faster than the kill";
  play({placed, up, preempted, {silent(exit_of("a", -1, 9)), 3s, " | "}, {time_passed{}, 3500ms, failed}});
  play({placed,
        up,
        {preempt_allocation{id, {}, "disabled"}, 2s, "preempted(disabled) | kill(a)"},
        {silent(exit_of("a", 0)), 3s, stopped}});
}

TEST(Allocation, WhoSavesIsKilledWhereItsSlotsAreDisabledMeanwhile) {
  const row placed{on_a, 0s, "placed(a:0) | start(a:0)"}, up{task_started{id, "a", 7}, 1s, " | "};
  const row disabled{preempt_allocation{id, {}, "disabled"}, 3s, "preempted(disabled) | kill(a)"};
  const row again{preempt_allocation{id, {}, "disabled"}, 4s, " | "};
  const row ended{exit_of("a", -1, 9), 5s, "closed(stopped) | release forget(a) report(stopped)"};
  play({placed,
        up,
        {preempt_allocation{id, {}, "priority"}, 2s, "preempted(priority) | preempt(a preempted: priority)"},
        {preempt_allocation{id, {}, "fair_share"}, 2s, " | "},
        disabled,
        again,
        ended});
  play({placed, up, {allocation_stop{false, "paused"}, 2s, " | preempt(a paused)"}, disabled, again, ended});
}

TEST(Allocation, TellsWhoOrderedTheKillNotTheSignal) {
  const row placed{on_a, 0s, "placed(a:0) | start(a:0)"}, up{task_started{id, "a", 7}, 1s, " | "};
  const std::string by_eve = "agent a was disabled by eve";
  const allocation_event orders[] = {allocation_stop{true, "killed by eve"},
                                     preempt_allocation{id, {}, "disabled", by_eve}};
  for (const auto& order : orders) {
    auto a = play({placed, up});
    static_cast<void>(a.apply(order, t0 + 2s));
    const auto ended = a.apply(task_exited{id, "a", -1, 9, "signal 9", true, true}, t0 + 3s);
    const auto* told = std::get_if<report_allocation_end>(&ended.actions.back());
    ASSERT_TRUE(told);
    EXPECT_EQ(told->detail, &order == orders ? "killed by eve" : by_eve);
  }
  // The master dies between the kill and the end of the task.
  allocation after({id, 1, 60s});
  after.replay(allocation_placed{t0, {{"a", {0}}}});
  after.replay(allocation_preempted{t0, {}, "disabled", by_eve});
  static_cast<void>(after.resume());
  EXPECT_EQ(after.describe()["stop"]["reason"], by_eve);
}

TEST(Allocation, AGangThatCannotHearOfAStopIsJudgedWhenAllAreOver) {
  const std::vector<row> begin{
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {task_started{id, "b", 7}, 1s, " | "},
    {preempt_allocation{id, {}, "priority"}, 2s,
     "preempted(priority) | preempt(a preempted: priority) preempt(b preempted: priority)"}};
  const auto after = [&](std::vector<row> rows) {
    rows.insert(rows.begin(), begin.begin(), begin.end());
    return play(rows);
  };
  const auto closed = [](const std::string& why) {
    return "closed(" + why + ") | release forget(a) forget(b) report(" + why + ")";
  };
  auto done =
    after({{silent(exit_of("a", 0)), 3s, " | "}, {silent(exit_of("b", 0)), 4s, closed("completed")}});
  EXPECT_TRUE(finished(done));
  auto before = play({begin[0],
                      begin[1],
                      {silent(exit_of("a", 0)), 1500ms, " | "}, // part a ends before the stop
                      {allocation_stop{false, "pause"}, 2s, " | preempt(b pause)"},
                      {silent(exit_of("b", 0)), 4s, closed("completed")}});
  EXPECT_TRUE(finished(before));
  after({{silent(exit_of("a", 0)), 3s, " | "}, {exit_of("b", 0), 4s, closed("stopped")}});
  after({{exit_of("a", 0), 3s, " | "}, {silent(exit_of("b", 1)), 4s, closed("stopped")}});
  after({{silent(exit_of("a", 1)), 3s, " | "},
         {time_passed{}, 4s, " | kill(b)"},
         {silent(exit_of("b", -1, 9), true), 5s, closed("failed")}});
  after({{silent(exit_of("a", 0)), 3s, " | "},
         {time_passed{}, 62s, " | kill(b)"},
         {silent(exit_of("b", -1, 9), true), 63s, closed("stopped")}});
  // The sandbox reports that it was killed.
  const task_exited killed{id, "b", 0, 9, "killed", false, true, true};
  after({{silent(exit_of("a", 1)), 3s, " | "},
         {time_passed{}, 4s, " | kill(b)"},
         {killed, 5s, closed("failed")}});
  after({{silent(exit_of("a", 0)), 3s, " | "},
         {time_passed{}, 62s, " | kill(b)"},
         {killed, 63s, closed("stopped")}});
}

TEST(Allocation, WaitsWithTheBlameForASigkill) {
  auto a = play({{on_a, 0s, "placed(a:0) | start(a:0)"}, {exit_of("a", -1, 9), 1s, " | "}});
  EXPECT_EQ(a.deadline(), t0 + 1500ms);
  play({{on_a, 0s, "placed(a:0) | start(a:0)"},
        {exit_of("a", -1, 9), 1s, " | "},
        {time_passed{}, 1500ms, "closed(failed) | release forget(a) report(failed)"}});
  play({{on_a, 0s, "placed(a:0) | start(a:0)"},
        {exit_of("a", -1, 9), 1s, " | "},
        {agent_lost{"a", "died"}, 1200ms, "closed(lost) | release forget(a) report(lost)"}});
}

TEST(Allocation, StopsBeforeItIsPlaced) {
  play({{allocation_stop{false, "pause"}, 0s, "closed(stopped) | release report(stopped)"},
        {on_a, 1s, " | release"}});
}

TEST(Allocation, AsksThenKillsAndKillsAgain) {
  play({
    {on_a, 0s, "placed(a:0) | start(a:0)"},
    {allocation_stop{false, "pruned"}, 1s, " | preempt(a pruned)"},
    {allocation_stop{false, "pruned"}, 2s, " | "},
    {task_started{id, "a", 7}, 3s,
     " | preempt(a pruned)"}, // the order to stop may have been lost with a link
    {time_passed{}, 61s, " | kill(a)"},
    {time_passed{}, 91s, " | kill(a)"},
    {exit_of("a", -1, 9), 92s, "closed(stopped) | release forget(a) report(stopped)"},
  });
  play({
    {on_a, 0s, "placed(a:0) | start(a:0)"},
    {allocation_stop{false, "canceled"}, 1s, " | preempt(a canceled)"},
    {allocation_stop{true, "killed"}, 2s, " | kill(a)"},
    {exit_of("a", -1, 9), 3s, "closed(stopped) | release forget(a) report(stopped)"},
  });
}

TEST(Allocation, IsPlacedAnewWhenItNeverStarted) {
  play({
    {on_a, 0s, "placed(a:0) | start(a:0)"},
    {task_unknown{id, "a"}, 1s, "placed() | release request(1)"},
    {slots_granted{id, {{"b", {2}}}}, 2s, "placed(b:2) | start(b:2)"},
    {exit_of("b", 0), 3s, "closed(completed) | release forget(b) report(completed)"},
  });
  play({
    // This task did run before its agent lost it.
    {on_a, 0s, "placed(a:0) | start(a:0)"},
    {task_started{id, "a", 7}, 1s, " | "},
    {task_unknown{id, "a"}, 2s, "closed(lost) | release forget(a) report(lost)"},
  });
}

/// Its slots may be another run's by then.
TEST(Allocation, HoldsNothingAfterARestartWhereItAskedAnew) {
  auto a = play_at_home({
    {by("home"), 0s, "placed(a:0) | start(a:0)"},
    {task_unknown{id, "a", t0}, 1s, "placed() | leave(home) request(1)"},
  });
  EXPECT_TRUE(a.placed().empty()) << "else its shell would not follow a grant of another pool";
  allocation recovered({id});
  recovered.replay(allocation_placed{t0, {{"a", {0}}}, "home"});
  recovered.replay(allocation_placed{t0 + 1s, {}});
  EXPECT_EQ(show(recovered.resume()), "request(1)");
  EXPECT_EQ(show(recovered.meet_pool()), "request(1)");
}

TEST(Allocation, SaysOfAGangWhetherAnyPartOfItHadBegun) {
  const auto unbegun = [](allocation& a) {
    return std::get<report_allocation_end>(a.resume().back()).unbegun;
  };
  auto none = play({
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {task_unknown{id, "a", t0}, 1s, " | kill(b)"},
    {task_unknown{id, "b", t0}, 2s, "closed(lost) | release forget(a) forget(b) report(lost)"},
  });
  EXPECT_TRUE(unbegun(none));
  auto one = play({
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {task_unknown{id, "a", t0}, 1s, " | kill(b)"},
    {exit_of("b", -1, 9), 2s, "closed(lost) | release forget(a) forget(b) report(lost)"},
  });
  EXPECT_FALSE(unbegun(one));
  auto both = play({
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {task_started{id, "a", 7}, 1s, " | "},
    {task_unknown{id, "a", t0}, 2s, " | kill(b)"},
    {task_unknown{id, "b", t0}, 3s, "closed(lost) | release forget(a) forget(b) report(lost)"},
  });
  EXPECT_FALSE(unbegun(both)) << "one had begun, and its agent has lost it";
}

/// The parts of a gang wait for each other before they check whether they have to stop.
TEST(Allocation, AStoppedGangDoesNotWaitForAPartThatNeverBegan) {
  play({
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {task_started{id, "a", 7}, 1s, " | "},
    {allocation_stop{false, "pause"}, 2s, " | preempt(a pause) preempt(b pause)"},
    {task_unknown{id, "b", t0}, 3s, " | "},
    {time_passed{}, 3900ms, " | "},
    {time_passed{}, 4s, " | kill(a)"},
    {exit_of("a", -1, 9), 5s, "closed(stopped) | release forget(a) forget(b) report(stopped)"},
  });
  play({
    // The result is the same where part b did begin and its agent has lost it.
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {task_started{id, "a", 7}, 1s, " | "},
    {task_started{id, "b", 8}, 1s, " | "},
    {preempt_allocation{id, {}, "priority"}, 2s,
     "preempted(priority) | preempt(a preempted: priority) preempt(b preempted: priority)"},
    {task_unknown{id, "b", t0}, 3s, " | "},
    {time_passed{}, 4s, " | kill(a)"},
    {exit_of("a", -1, 9), 5s, "closed(stopped) | release forget(a) forget(b) report(stopped)"},
  });
  play({
    // A gang that is already being killed is killed again only at the usual times.
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {task_started{id, "a", 7}, 1s, " | "},
    {allocation_stop{true, "killed"}, 2s, " | kill(a) kill(b)"},
    {task_unknown{id, "b", t0}, 3s, " | "},
    {time_passed{}, 4s, " | "},
    {time_passed{}, 32s, " | kill(a)"},
    {exit_of("a", -1, 9), 33s, "closed(stopped) | release forget(a) forget(b) report(stopped)"},
  });
}

TEST(Allocation, AsksAgainWhereNothingIsHeardOfItsTask) {
  play({
    {on_a, 0s, "placed(a:0) | start(a:0)"},
    {time_passed{}, 4s, " | "},
    {time_passed{}, 5s, " | watch(a)"},
    {time_passed{}, 14s, " | "},
    {time_passed{}, 15s, " | watch(a)"}, // the time between two questions doubles, up to a minute
    {time_passed{}, 35s, " | watch(a)"},
    {time_passed{}, 75s, " | watch(a)"},
    {time_passed{}, 135s, " | watch(a)"},
    {time_passed{}, 195s, " | watch(a)"},
    {task_started{id, "a", 7}, 196s, " | "},
    {time_passed{}, 999s, " | "},
  });
  play({
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {task_started{id, "a", 7}, 1s, " | "},
    {time_passed{}, 5s, " | watch(b)"},
    {allocation_stop{false, "pause"}, 6s, " | preempt(a pause) preempt(b pause)"},
    {time_passed{}, 15s, " | watch(b)"}, // the allocation also waits for the end of part b
    {allocation_stop{true, "killed"}, 20s, " | kill(a) kill(b)"},
    // A kill order that did not reach the twin gets no answer, so the allocation asks again.
    {time_passed{}, 35s, " | watch(b)"},
    {exit_of("a", -1, 9), 36s, " | "},
    {task_unknown{id, "b", t0}, 36s, "closed(stopped) | release forget(a) forget(b) report(stopped)"},
  });
  recover(on_a, {{time_passed{}, 3s, " | "}, // The allocation asked its agents when it resumed.
                 {time_passed{}, 8s, " | watch(a)"}});
  const auto a = play({{on_a, 0s, "placed(a:0) | start(a:0)"}});
  EXPECT_EQ(a.deadline(), t0 + 5s);
  EXPECT_FALSE(
    play({{on_a, 0s, "placed(a:0) | start(a:0)"}, {task_started{id, "a", 7}, 1s, " | "}}).deadline());
}

/// A message about an earlier placement may arrive late or twice, while the start order of the present
/// placement is on its way. It must not cause another placement.
TEST(Allocation, IsNotPlacedAnewByWhatIsSaidOfAnEarlierPlacement) {
  play({
    {on_a, 0s, "placed(a:0) | start(a:0)"},
    {task_unknown{id, "a", t0}, 1s, "placed() | release request(1)"},
    {on_a, 2s, "placed(a:0) | start(a:0)"},
    {task_unknown{id, "a", t0}, 3s, " | "},
    {task_unknown{id, "a", t0 + 2s}, 4s, "placed() | release request(1)"},
  });
}

/// A placement is identified by its time.
TEST(Allocation, EachPlacementHasANameOfItsOwnThoughTheClockStandsStillOrIsSetBack) {
  play({
    {on_a, 5s, "placed(a:0) | start(a:0)"},
    {task_unknown{id, "a", t0 + 5s}, 5s, "placed() | release request(1)"},
    {on_a, 5s, "placed(a:0) | start(a:0)"},
    {task_unknown{id, "a", t0 + 5s}, 5s, " | "}, // the message is about the first placement
    {task_unknown{id, "a", t0 + 5s + 1us}, 5s, "placed() | release request(1)"},
    {on_a, 1s, "placed(a:0) | start(a:0)"},
    {task_unknown{id, "a", t0 + 1s}, 5s, " | "},
    {task_unknown{id, "a", t0 + 5s + 2us}, 5s, "placed() | release request(1)"},
  });
  auto a = play({{on_a, 5s, "placed(a:0) | start(a:0)"},
                 {task_unknown{id, "a", t0 + 5s}, 5s, "placed() | release request(1)"}});
  const auto again = a.apply(on_a, t0 + 5s);
  EXPECT_EQ(std::get<start_task>(again.actions.at(0)).placed, t0 + 5s + 1us)
    << "else its agent's twin takes the order for one of an earlier placement, and forgets it when it is "
       "asked";
}

/// The new pool may know agents whose twins were made again while there was no pool.
TEST(Allocation, TellsANewPoolWhatItHoldsAndAsksItsAgents) {
  auto a = play({{on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
                 {task_started{id, "a", 7}, 1s, " | "},
                 {exit_of("b", 0), 2s, " | "}});
  EXPECT_EQ(show(a.meet_pool()), "hold(a:0 b:1)");
  EXPECT_EQ(show(a.ask_agents()), "watch(a)");
  static_cast<void>(a.apply(exit_of("a", 0), t0 + 3s));
  EXPECT_EQ(show(a.meet_pool()), "release");
  EXPECT_EQ(show(a.ask_agents()), "");
}

TEST(Allocation, EndsAGangTogether) {
  play({
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {exit_of("a", 0), 1s, " | "},
    {exit_of("b", 0), 2s, "closed(completed) | release forget(a) forget(b) report(completed)"},
  });
  play({
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {task_started{id, "b", 7}, 1s, " | "},
    {agent_lost{"a", "died"}, 1s, " | kill(b)"},
    {time_passed{}, 31s, " | kill(b)"},
    {exit_of("b", -1, 9), 32s, "closed(lost) | release forget(a) forget(b) report(lost)"},
  });
  play({
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {exit_of("a", -1, 9), 1s, " | "},
    {agent_lost{"a", "died"}, 1100ms, " | kill(b)"}, // the run is lost, and the other part is killed too
    {exit_of("b", -1, 9), 2s, "closed(lost) | release forget(a) forget(b) report(lost)"},
  });
  // Rank 1 notices that rank 0 has died, and ends by itself before the master learns that the agent of rank 0
  // is lost.
  play({
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {exit_of("b", 1), 1s, " | "},
    {agent_lost{"a", "died"}, 1500ms, "closed(lost) | release forget(a) forget(b) report(lost)"},
  });
  play({
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {exit_of("b", 1), 1s, " | "},
    {time_passed{}, 2s, " | kill(a)"},
    {task_exited{id, "a", -1, 9, "killed while no agent was there", false}, 2s,
     "closed(lost) | release forget(a) forget(b) report(lost)"},
  });
  // A part that the allocation itself has killed is not lost, even if its sandbox left no record.
  play({
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {exit_of("b", 1), 1s, " | "},
    {time_passed{}, 2s, " | kill(a)"},
    {task_exited{id, "a", -1, 9, "", false, true}, 2s,
     "closed(failed) | release forget(a) forget(b) report(failed)"},
  });
}

TEST(Allocation, AsksItsAgentsAfterRecovery) {
  allocation a({id});
  a.replay(allocation_placed{t0, on_both.on});
  EXPECT_EQ(show(a.resume()), "watch(a) watch(b)");
  recover(on_a, {{task_started{id, "a", 7}, 1s, " | "},
                 {exit_of("a", 1), 2s, "closed(failed) | release forget(a) report(failed)"}});
  // The run was placed, but its start order was lost.
  recover(on_a, {{task_unknown{id, "a"}, 1s, "placed() | release request(1)"}});
  recover(on_a, {{allocation_stop{false, "pause"}, 1s, " | preempt(a pause)"},
                 {task_unknown{id, "a"}, 2s, "closed(stopped) | release forget(a) report(stopped)"}});
  // A kill that an earlier life of the actor ordered is not a failure. The other part ends too, and the run
  // may be started again.
  recover(on_both, {{task_exited{id, "b", -1, 9, "", true, true}, 1s, " | kill(a)"},
                    {task_exited{id, "a", -1, 0, "", false}, 2s,
                     "closed(lost) | release forget(a) forget(b) report(lost)"}});
}

// ---- ranks

const slots_granted four{id, {{"a", {0, 1}}, {"b", {0, 1}}}};
worker_said status(std::string agent, int member, workers::worker_status x) {
  return {id, std::move(agent), member, workers::encode_worker(workers::worker_word{x})};
}
worker_said ready(std::string agent, int member) {
  return status(std::move(agent), member, {workers::worker_phase::ready, 0, 0, 200, 0});
}
worker_said training(std::string agent, int member, std::uint32_t generation = 0) {
  return status(std::move(agent), member, {workers::worker_phase::training, generation, 5, 200, 200});
}
/// Plays `rows` to a gang that wants four slots and accepts two.
void play_range(const std::vector<row>& rows) {
  allocation_spec spec{id, 4, 60s};
  spec.least = 2;
  allocation a(spec), twin(spec);
  EXPECT_EQ(show(a.resume()), "request(4 or 2)");
  continue_with(a, twin, rows);
}
const std::vector<row> four_train{
  {four, 0s, "placed(a:0,1 b:0,1) | start(a:0,1) start(b:0,1)"},
  {task_started{id, "a", 7}, 1s, " | "},
  {task_started{id, "b", 7}, 1s, " | "},
  {ready("a", 0), 1s, " | order(a/0 train_until(200 or rebuild))"},
  {ready("a", 1), 1s, " | order(a/1 train_until(200 or rebuild))"},
  {ready("b", 2), 1s, " | order(b/2 train_until(200 or rebuild))"},
  {ready("b", 3), 1s, " | order(b/3 train_until(200 or rebuild))"},
  {training("a", 0), 2s, " | "},
};
std::vector<row> then(std::vector<row> first, const std::vector<row>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

TEST(Allocation, LeadsItsWorkersAsFarAsTheirSchedule) {
  play({
    {on_a, 0s, "placed(a:0) | start(a:0)"},
    {ready("a", 0), 1s, " | order(a/0 train_until(200))"},
    {ready("a", 0), 2s, " | order(a/0 train_until(200))"}, // the worker did not receive the first order
    {training("a", 0), 3s, " | "},
    {training("b", 0), 3s, " | "}, // the allocation has no part on agent b
    {training("a", 1), 3s, " | "}, // agent a has no rank 1
    {allocation_stop{false, "pause"}, 4s, " | preempt(a pause) order(a/0 stop(pause))"},
    {training("a", 0), 5s, " | order(a/0 stop(pause))"},
    {exit_of("a", 0), 6s, "closed(stopped) | release forget(a) report(stopped)"},
  });
}

TEST(Allocation, FailsOfWhatItsWorkerSays) {
  // The agent may already have put the sentence of the worker into its own report.
  for (const std::string detail : {"exit code 1", "another version (exit code 1)"}) {
    auto end = exit_of("a", 1);
    end.detail = detail;
    auto a = play({
      {on_a, 0s, "placed(a:0) | start(a:0)"},
      {worker_said{id, "a", 0,
                   workers::encode_worker(workers::worker_word{workers::worker_failure{"another version"}})},
       1s, " | "},
      {end, 2s, "closed(failed) | release forget(a) report(failed)"},
    });
    const auto told = a.resume();
    EXPECT_EQ(std::get<report_allocation_end>(told.back()).detail, "another version (exit code 1)");
  }
}

TEST(Allocation, ARankThatDiedIsReplacedInTheNextRun) {
  play({
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {member_failed{id, "b", 1, "signal 11"}, 1s, "member_lost(b/1) | "},
    {member_failed{id, "b", 1, "signal 11"}, 1s, " | "},
    {exit_of("b", -1, 11), 2s, " | "},
    {exit_of("a", 1), 2s, "closed(failed) | release forget(a) forget(b) report(failed)"},
  });
  play_range(
    then(four_train, {
                       // The slot of rank 3 is still there, so a smaller gang gains nothing. The ranks that
                       // wait for a smaller group are ended at once.
                       {member_failed{id, "b", 3, "signal 9"}, 3s, "member_lost(b/3) | kill(a) kill(b)"},
                       {task_exited{id, "b", -1, 9, "signal 9", true, true}, 4s, " | "},
                       {task_exited{id, "a", -1, 9, "signal 9", true, true}, 4s,
                        "closed(failed) | release forget(a) forget(b) report(failed)"},
                     }));
}

TEST(Allocation, TheOthersMaySayWhyTheyEnd) {
  play({
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {exit_of("b", 1), 1s, " | "},
    {time_passed{}, 1900ms, " | "},
    {time_passed{}, 2s, " | kill(a)"}, // part a does not end by itself
    {task_exited{id, "a", -1, 9, "signal 9", true, true}, 2s,
     "closed(failed) | release forget(a) forget(b) report(failed)"},
  });
  play({
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {exit_of("b", 1), 1s, " | "},
    {exit_of("a", -1, 9), 1200ms, "closed(failed) | release forget(a) forget(b) report(failed)"},
  });
  play({
    // Part b ended well before part a was killed.
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {exit_of("b", 0), 1s, " | "},
    {exit_of("a", -1, 9), 1200ms, " | "},
    {agent_lost{"a", "died"}, 1300ms, "closed(lost) | release forget(a) forget(b) report(lost)"},
  });
}

TEST(Allocation, ARankThatDiedWithItsAgentIsNoFailure) {
  play_range(
    then(four_train, {
                       {member_failed{id, "b", 3, "signal 9"}, 3s, "member_lost(b/3) | kill(a) kill(b)"},
                       {agent_lost{"b", "it died"}, 4s, " | "},
                       {task_exited{id, "a", -1, 9, "signal 9", true, true}, 4s,
                        "closed(lost) | release forget(a) forget(b) report(lost)"},
                     }));
}

TEST(Allocation, GoesOnSmallerWithoutALostAgentAndGrowsWhenSlotsAreBack) {
  play_range(then(
    four_train,
    {
      {agent_lost{"a", "silent"}, 3s,
       "member_lost(a) resized(#1 to 2) | release(a) forget(a) order(b/2 rebuild(#1 2 3)) order(b/3 "
       "rebuild(#1 2 3))"},
      {training("b", 2), 4s, " | order(b/2 rebuild(#1 2 3))"}, // rank 2 did not receive the first order
      {training("b", 2, 1), 5s, " | "},
      {training("a", 0), 5s, " | "}, // a late message of the lost agent
      {agent_lost{"a", "silent"}, 5s, " | "},
      {exit_of("a", 1), 5s, " | "},    // another late message of the lost agent
      {slots_spare{id, 2}, 6s, " | "}, // the allocation already has two slots
      {slots_spare{id, 4}, 7s, " | "}, // the ranks train for at least ten seconds before they grow
      {time_passed{}, 10s,
       "resized(#1 to 4 later) | preempt(b preempted) order(b/2 stop(preempted)) order(b/3 stop(preempted))"},
      {exit_of("b", 0), 11s, "closed(stopped) | release forget(a) forget(b) report(stopped)"},
    }));
}

TEST(Allocation, TooFewLeftIsALostRun) {
  play_range(then(
    four_train, {
                  {agent_lost{"a", "silent"}, 3s,
                   "member_lost(a) resized(#1 to 2) | release(a) forget(a) order(b/2 rebuild(#1 2 3)) "
                   "order(b/3 rebuild(#1 2 3))"},
                  {agent_lost{"b", "silent"}, 4s, "closed(lost) | release forget(a) forget(b) report(lost)"},
                }));
}

TEST(Allocation, WithoutARangeALostAgentEndsTheRun) {
  play({
    {on_both, 0s, "placed(a:0 b:1) | start(a:0) start(b:1)"},
    {training("a", 0), 1s, " | "},
    {training("b", 1), 1s, " | "},
    {agent_lost{"b", "silent"}, 2s, " | kill(a)"},
    {task_exited{id, "a", -1, 9, "killed", true, true}, 3s,
     "closed(lost) | release forget(a) forget(b) report(lost)"},
  });
}

} // namespace
} // namespace troupe
