#include "actors/agent_twin/agent_twin.hpp"

#include "test/unit/actors/show.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{1'700'000'000s};
const allocation_id x{{1}, {1}}, y{{2}, {1}};
task_report running(allocation_id id) { return {id, {0}, false, 7}; }
task_report exited(allocation_id id, int code = 0) { return {id, {0}, true, 7, code}; }

struct row {
  twin_event event;
  std::chrono::seconds at;
  std::string actions;
};

agent_twin play(const std::vector<row>& rows) {
  agent_twin t("a", {}, t0);
  for (const auto& r : rows)
    EXPECT_EQ(show(t.apply(r.event, t0 + r.at)), r.actions)
      << "on " << show(r.event) << " at " << r.at.count() << " s";
  return t;
}
const row up{agent_registered{1, 2, {}}, 0s, "pool(agent_up(a 2))"};
const row start{start_ordered{x, {0}, ""}, 1s, "start(1.1)"};

TEST(Twin, PassesOrdersAndNews) {
  play({
    up,
    start,
    {task_started{x, "a", 7}, 2s, "tell(1.1 up(1.1 a))"},
    {preempt_ordered{x, "pause"}, 3s, "preempt(1.1)"},
    {kill_ordered{x}, 4s, "kill(1.1)"},
    {task_exited{x, "a"}, 5s, "tell(1.1 exit(1.1 a 0))"},
    {task_exited{x, "a"}, 5s, "tell(1.1 exit(1.1 a 0))"},
    // The message is late: the end of the task is known.
    {task_started{x, "a", 7}, 5s, "tell(1.1 exit(1.1 a 0))"},
    {forget_ordered{x}, 6s, "forget(1.1) pool(released(1.1 a))"},
    {task_exited{x, "a"}, 7s, "forget(1.1)"}, // the first order to forget was lost
  });
}

TEST(Twin, HoldsTheSlotsOfATaskThatIsGivenUpUntilItIsDead) {
  const row forget{forget_ordered{x}, 3s, "kill(1.1)"},
    away{link_lost{1, "closed"}, 2s, "pool(agent_down(a))"}, silent{forget_ordered{x}, 3s, ""};
  play({
    up,
    start,
    {task_started{x, "a", 7}, 2s, "tell(1.1 up(1.1 a))"},
    forget,
    {forget_ordered{x}, 3s, "kill(1.1)"}, // a repeat
    {task_exited{x, "a", -1, 9}, 4s, "forget(1.1) pool(released(1.1 a))"},
    {forget_ordered{x}, 5s, "forget(1.1) pool(released(1.1 a))"},
  });
  play({up, start, forget, {task_exited{x, "a", -1, 9}, 4s, "forget(1.1) pool(released(1.1 a))"}});
  // Its agent is away.
  play({up, start, away, silent, {time_passed{}, 44s, ""}, {time_passed{}, 45s, "pool(released(1.1 a))"}});
  play(
    {up, start, away, silent, {death_confirmed{x}, 4s, "pool(released(1.1 a))"}, {time_passed{}, 45s, ""}});
  play(
    {up, start, away, silent, {agent_registered{2, 2, {}}, 4s, "pool(agent_up(a 2)) pool(released(1.1 a))"}});
  play({up,
        start,
        away,
        silent,
        {agent_registered{2, 2, {exited(x)}}, 4s, "pool(agent_up(a 2)) forget(1.1) pool(released(1.1 a))"}});
  play({up,
        start,
        away,
        silent,
        {agent_registered{2, 2, {running(x)}}, 4s, "pool(agent_up(a 2 1.1)) kill(1.1)"},
        {task_exited{x, "a", -1, 9}, 5s, "forget(1.1) pool(released(1.1 a))"}});
  // Its agent was given up.
  play({up,
        start,
        {time_passed{}, 45s, "pool(agent_down(a)) tell(1.1 lost(a))"},
        {forget_ordered{x}, 46s, "pool(released(1.1 a))"}});
}

TEST(Twin, GivesRunsAwayWhenTheLeaseIsOver) {
  auto t = play({
    up,
    start,
    {agent_heartbeat{1}, 10s, "ack"},
    {agent_heartbeat{0}, 20s, ""}, // the heartbeat belongs to an earlier registration
    {time_passed{}, 54s, ""},
    {time_passed{}, 55s, "pool(agent_down(a)) tell(1.1 lost(a))"},
    // The connection has outlasted the lease: the agent has to register again.
    {agent_heartbeat{1}, 56s, "refuse"},
    {agent_heartbeat{0}, 57s, ""},
    {time_passed{}, 99s, ""},
    {watch_ordered{x, {0}}, 100s, "tell(1.1 lost(a))"},
    {start_ordered{y, {0}, ""}, 100s, "tell(2.1 unknown(2.1 a))"},
  });
  EXPECT_FALSE(t.deadline());
}

TEST(Twin, KeepsTheRunsOfAnAgentThatComesBackInTime) {
  play({
    up,
    start,
    {link_lost{1, "closed"}, 10s, "pool(agent_down(a))"},
    {link_lost{1, "closed"}, 10s, ""},
    {kill_ordered{x}, 11s, ""}, // the kill is ordered again when the agent reports the task
    {agent_registered{2, 2, {running(x)}}, 44s, "pool(agent_up(a 2 1.1)) tell(1.1 up(1.1 a))"},
    {agent_registered{2, 2, {}}, 44s, ""}, // the same registration arrives again
    {time_passed{}, 45s, ""},
  });
}

TEST(Twin, AnAgentThatComesBackSoonOpensTheConnectionsThatWereWantedMeanwhile) {
  play({
    up,
    start,
    {service_ordered{x, "s", "c1", "k"}, 1s, "connect(1.1 s)"},
    // run y is placed here, and its start order is still on the way
    {service_ordered{y, "s", "c0", "k"}, 1s, "connect(2.1 s)"},
    {link_lost{1, "closed"}, 2s, "pool(agent_down(a))"},
    {service_ordered{x, "s", "c2", "k"}, 3s, ""},
    {service_ordered{y, "s", "c3", "k"}, 3s, ""}, // run y is not a task of this agent now
    {service_ordered{x, "s", "c4", "k"}, 12s, ""},
    // Nobody waits for connection c2 any more.
    {agent_registered{2, 2, {running(x)}}, 14s, "pool(agent_up(a 2 1.1)) tell(1.1 up(1.1 a)) connect(1.1 s)"},
    {link_lost{2, "closed"}, 15s, "pool(agent_down(a))"},
    {agent_registered{3, 2, {running(x)}}, 16s, "pool(agent_up(a 2 1.1)) tell(1.1 up(1.1 a))"},
  });
}

TEST(Twin, CountsTheLeaseFromTheLastWordNotFromTheLossOfTheLink) {
  play({
    up,
    start,
    {agent_heartbeat{1}, 5s, "ack"},
    {link_lost{1, "silent"}, 15s, "pool(agent_down(a))"},
    {time_passed{}, 49s, ""},
    {time_passed{}, 50s, "tell(1.1 lost(a))"},
  });
}

TEST(Twin, TellsThePoolUntilWhenItsAgentIsExpectedBack) {
  const auto until = [](const std::vector<twin_action>& actions) {
    const auto* told = actions.empty() ? nullptr : std::get_if<tell_pool>(&actions.front());
    const auto* down = told ? std::get_if<agent_down>(&told->event) : nullptr;
    return down ? down->until : time_point{};
  };
  agent_twin t("a", {}, t0);
  EXPECT_EQ(until(t.meet_pool()), t0 + 45s) << "it has not registered since the master's start";
  static_cast<void>(t.apply(up.event, t0 + 5s));
  EXPECT_EQ(until(t.apply(link_lost{1, "closed"}, t0 + 15s)), t0 + 50s);
  static_cast<void>(t.apply(time_passed{}, t0 + 50s));
  EXPECT_TRUE(t.meet_pool().empty()) << "its lease is over";
}

TEST(Twin, LeavesTheLeasesOfAnEarlierLifeOfTheMasterTheirTime) {
  lease_times lease;
  lease.freeze = 2s;
  lease.give_away = 4s;
  agent_twin t("a", lease, t0); // the leases before the restart lasted 45 s
  EXPECT_EQ(t.deadline(), t0 + 45s);
  lease.first_give_away = lease.give_away;
  EXPECT_EQ(agent_twin("a", lease, t0).deadline(), t0 + 4s);
}

TEST(Twin, ReconcilesAnInventory) {
  play({
    up,
    start,
    {start_ordered{y, {1}, ""}, 1s, "start(2.1)"},
    {link_lost{1, "closed"}, 2s, "pool(agent_down(a))"},
    {agent_registered{2, 2, {exited(x, 1), running({{9}, {1}}), exited({{8}, {1}})}}, 3s,
     "pool(agent_up(a 2 9.1)) tell(1.1 exit(1.1 a 1)) kill(9.1) forget(8.1) tell(2.1 unknown(2.1 a))"},
    // The run that the agent held without an order gives its slot back.
    {task_exited{{{9}, {1}}, "a", -1, 9}, 4s, "forget(9.1) pool(released(9.1 a))"},
  });
}

TEST(Twin, HearsFromTheSandboxThatAnAgentDiedWithItsTask) {
  play({
    up,
    start,
    {death_confirmed{x}, 2s, ""}, // the agent is connected and reports for itself
    {link_lost{1, "closed"}, 3s, "pool(agent_down(a))"},
    {death_confirmed{x}, 4s, "tell(1.1 lost(a))"},
    // The allocation was not there yet when its loss was told.
    {watch_ordered{x, {0}}, 5s, "tell(1.1 lost(a))"},
    {agent_registered{2, 2, {}}, 6s, "pool(agent_up(a 2)) tell(1.1 lost(a))"},
    {forget_ordered{x}, 7s, "forget(1.1) pool(released(1.1 a))"},
  });
}

TEST(Twin, BlamesTheAgentForATaskThatWasKilledJustBefore) {
  play({
    up,
    start,
    {task_exited{x, "a", -1, 9}, 2s, "tell(1.1 exit(1.1 a signal 9))"},
    {link_lost{1, "closed"}, 2s, "pool(agent_down(a)) tell(1.1 lost(a))"},
  });
}

TEST(Twin, TellsAWatcherWhatWasSaidBefore) {
  play({
    {watch_ordered{x, {0}}, 0s, ""}, // the order arrives during recovery, before the agent has registered
    {watch_ordered{y, {1}}, 0s, ""},
    {agent_registered{5, 2, {running(x)}}, 1s,
     "pool(agent_up(a 2 1.1)) tell(1.1 up(1.1 a)) tell(2.1 unknown(2.1 a))"},
    {watch_ordered{x, {0}}, 2s, "tell(1.1 up(1.1 a))"},
    {watch_ordered{y, {1}}, 2s, "tell(2.1 unknown(2.1 a))"},
  });
}

TEST(Twin, OrdersAgainWhatItsAgentHasNotAnswered) {
  const start_ordered first{x, {0}, "spec", t0}, later{x, {0}, "spec", t0 + 5s};
  play({
    up,
    {first, 1s, "start(1.1)"},
    {watch_ordered{x, {0}, t0}, 6s, "start(1.1)"},
    {task_started{x, "a", 7}, 7s, "tell(1.1 up(1.1 a))"},
    {watch_ordered{x, {0}, t0}, 8s, "tell(1.1 up(1.1 a))"},
    {watch_ordered{y, {1}, t0}, 9s, "tell(2.1 unknown(2.1 a))"}, // the order to start run y never arrived
  });
  play({
    up,
    {first, 1s, "start(1.1)"},
    {kill_ordered{x}, 2s, "kill(1.1)"},
    {watch_ordered{x, {0}, t0}, 6s, ""}, // the run must not start after the order to kill it
  });
  // When the twin reports that a task is unknown, it names one placement.
  auto t = play({up, {first, 1s, "start(1.1)"}, {link_lost{1, "closed"}, 2s, "pool(agent_down(a))"}});
  const auto placed = [](const std::vector<twin_action>& told) {
    return std::get<task_unknown>(std::get<tell_allocation>(told.back()).event).placed;
  };
  EXPECT_EQ(placed(t.apply(agent_registered{2, 2, {}}, t0 + 3s)), t0);
  EXPECT_EQ(placed(t.apply(watch_ordered{x, {0}, t0}, t0 + 4s)), t0);
  EXPECT_EQ(placed(t.apply(first, t0 + 4s)), t0) << "the run may have slots elsewhere";
  EXPECT_EQ(show(t.apply(later, t0 + 5s)), "start(1.1)");
  EXPECT_EQ(show(t.apply(watch_ordered{x, {0}, t0}, t0 + 6s)), "start(1.1)");
  static_cast<void>(t.apply(link_lost{2, "closed"}, t0 + 7s));
  EXPECT_EQ(placed(t.apply(start_ordered{y, {0}, "", t0 + 6s}, t0 + 8s)), t0 + 6s);
  EXPECT_EQ(placed(t.apply(agent_registered{3, 2, {}}, t0 + 9s)), t0 + 5s);
}

TEST(Twin, NeverGivesAwaySoonerThanALeaseAfterTheMastersStart) {
  play(
    {{watch_ordered{x, {0}}, 0s, ""}, {time_passed{}, 44s, ""}, {time_passed{}, 45s, "tell(1.1 lost(a))"}});
}

} // namespace
} // namespace troupe
