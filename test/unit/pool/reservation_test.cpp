// Tests reservations: a run that has waited for long is not passed, even in a pool that a restarted master
// has made again.

#include "actors/pool/pool.hpp"
#include "test/unit/actors/show.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{std::chrono::hours(1)};

allocation_id run(std::uint64_t trial) { return {trial_id{trial}, {1}}; }

class ReservationAfterARestart : public ::testing::TestWithParam<scheduler_kind> {
protected:
  ReservationAfterARestart() {
    pool_settings settings;
    settings.scheduler = GetParam();
    machine = pool(pool::phase::recovering, std::move(settings));
  }
  static run_terms terms(std::uint64_t trial, time_point started) {
    run_terms out;
    out.job.job = {trial};
    out.job.submitted = t0 + std::chrono::seconds(trial);
    out.job.priority = 42;
    out.started = started;
    return out;
  }
  std::string tell(const pool_event& ev) { return show(machine.apply(ev, now)); }
  std::string ask(std::uint64_t trial, int slots, time_point started) {
    slots_requested ev{run(trial), slots};
    ev.run = terms(trial, started);
    return tell(ev);
  }
  std::string hold(std::uint64_t trial, std::vector<int> slots) {
    slots_held ev{run(trial), {{"a", std::move(slots)}}, terms(trial, t0), 1, 0, t0};
    return tell(ev);
  }
  value reservation(std::uint64_t trial) { return machine.explain(run(trial), now)["reservation"]; }

  pool machine{pool::phase::recovering, pool_settings{}};
  time_point now = t0 + 10min;
};

TEST_P(ReservationAfterARestart, NobodyBehindTheGangGetsWhatIsFree) {
  hold(1, {0});
  ask(2, 2, t0 + 1s); // the gang has waited for longer than reserve_after
  ask(3, 1, t0 + 9min + 59s);
  EXPECT_EQ(tell(agent_up{"a", 2}), "");
  EXPECT_EQ(tell(holders_heard{}).find("grant"), std::string::npos) << "what is free is kept for the gang";
  EXPECT_TRUE(reservation(2).is_object());
  EXPECT_NE(tell(slots_released{run(1), ""}).find("grant(2.1 a:0,1)"), std::string::npos);
}

TEST_P(ReservationAfterARestart, AlsoWhereTheAgentSpeaksLater) {
  hold(1, {0});
  ask(2, 2, t0 + 1s);
  ask(3, 1, t0 + 9min + 59s);
  EXPECT_EQ(tell(holders_heard{}), "");
  EXPECT_EQ(tell(agent_up{"a", 2}).find("grant"), std::string::npos);
  EXPECT_TRUE(reservation(2).is_object());
}

TEST_P(ReservationAfterARestart, NoAgentIsIdleBeforeAllWereHeard) {
  EXPECT_FALSE(machine.is_idle("a")) << "what runs there may not have spoken yet";
  tell(agent_up{"a", 2});
  EXPECT_FALSE(machine.is_idle("a"));
  tell(holders_heard{});
  EXPECT_TRUE(machine.is_idle("a"));
}

TEST_P(ReservationAfterARestart, WhoHasNotWaitedForSoLongIsPassed) {
  hold(1, {0});
  ask(2, 2, now - 59s);
  ask(3, 1, now - 1s);
  EXPECT_EQ(tell(agent_up{"a", 2}), "");
  EXPECT_EQ(tell(holders_heard{}), "grant(3.1 a:1)");
}

INSTANTIATE_TEST_SUITE_P(Schedulers, ReservationAfterARestart,
                         ::testing::Values(scheduler_kind::priority, scheduler_kind::fair,
                                           scheduler_kind::round_robin));

/// No run passed the gang before it had waited for reserve_after, and the first run after that may not pass
/// it either.
class ReservationBeforeTheFirstPass : public ReservationAfterARestart {
protected:
  ReservationBeforeTheFirstPass() {
    pool_settings settings;
    settings.scheduler = GetParam();
    machine = pool(pool::phase::placing, std::move(settings));
    now = t0;
    tell(agent_up{"a", 2});
    ask(1, 1, t0);
    slots_requested gang{run(2), 2};
    gang.run = terms(2, t0);
    gang.run.rules.not_agents = {"b"};
    tell(gang);
    EXPECT_FALSE(reservation(2).is_object());
  }
};

TEST_P(ReservationBeforeTheFirstPass, NobodyPassesOneThatHasWaitedForReserveAfter) {
  now += 70s;
  EXPECT_EQ(tell(time_passed{}), "") << "nobody passes it";
  EXPECT_EQ(ask(3, 1, now), "reserve(2.1 a:0,1)") << "but would now";
  EXPECT_EQ(tell(slots_released{run(1), ""}), "grant(2.1 a:0,1)");
}

TEST_P(ReservationBeforeTheFirstPass, WhoeverComesEarlierPassesIt) {
  now += 59s;
  EXPECT_EQ(ask(3, 1, now), "grant(3.1 a:1)");
  now += 1s;
  EXPECT_NE(tell(time_passed{}).find("reserve(2.1 a:0,1)"), std::string::npos);
}

TEST_P(ReservationBeforeTheFirstPass, WhatTheReservationDoesNotNeedIsForOthers) {
  now += 70s;
  tell(agent_up{"b", 1});
  EXPECT_EQ(ask(3, 1, now), "reserve(2.1 a:0,1) grant(3.1 b:0)");
}

TEST_P(ReservationBeforeTheFirstPass, WhatItLosesIsChosenAnew) {
  tell(agent_up{"c", 2});
  EXPECT_EQ(tell(slots_released{run(2), ""}), "");
  ask(4, 2, now);
  slots_requested gang{run(2), 2};
  gang.run = terms(2, t0);
  tell(gang);
  now += 70s;
  EXPECT_EQ(ask(3, 1, now), "reserve(2.1 a:0,1)");
  EXPECT_EQ(tell(agent_down{"a"}), "unreserve(2.1) reserve(2.1 c:0,1)");
}

INSTANTIATE_TEST_SUITE_P(Schedulers, ReservationBeforeTheFirstPass,
                         ::testing::Values(scheduler_kind::priority, scheduler_kind::fair,
                                           scheduler_kind::round_robin));

class ReservationWithPreemption : public ::testing::Test {
protected:
  ReservationWithPreemption() {
    pool_settings settings;
    settings.preemption = true;
    settings.min_run = 90s;
    machine = pool(pool::phase::recovering, std::move(settings));
  }
  static run_terms terms(std::uint64_t trial, int priority, bool preemptible = true) {
    run_terms out;
    out.job.job = {trial};
    out.job.submitted = t0 + std::chrono::seconds(trial);
    out.job.priority = priority;
    out.started = t0;
    out.preemptible = preemptible;
    return out;
  }
  std::string tell(const pool_event& ev) { return show(machine.apply(ev, now)); }
  std::string ask(std::uint64_t trial, int slots, int priority, bool preemptible = true) {
    slots_requested ev{run(trial), slots};
    ev.run = terms(trial, priority, preemptible);
    return tell(ev);
  }
  pool machine{pool::phase::recovering, pool_settings{}};
  time_point now = t0 + 10min;
};

TEST_F(ReservationWithPreemption, AGangBehindWhatCannotBePreemptedIsNotPassedAfterARestart) {
  tell(slots_held{run(1), {{"a", {0}}}, terms(1, 42, false), 1, 0, t0});
  ask(2, 2, 42);
  ask(3, 1, 42);
  tell(agent_up{"a", 2});
  EXPECT_EQ(tell(holders_heard{}), "reserve(2.1 a:0,1)");
  EXPECT_EQ(tell(slots_released{run(1), ""}), "grant(2.1 a:0,1)");
}

/// With its reservation the run would wait for the end of runs that it may preempt now.
TEST_F(ReservationWithPreemption, WhoHasAReservationPreemptsOnceItMay) {
  tell(holders_heard{});
  tell(agent_up{"a", 2});
  ask(2, 1, 42, false);
  now += 10s;
  ask(1, 2, 42); // Run 1.1 is before the others in the order, and could preempt none of them yet.
  ask(3, 1, 42);
  now += 60s;
  EXPECT_EQ(tell(time_passed{}), "reserve(1.1 a:0,1)");
  EXPECT_EQ(tell(slots_released{run(2), ""}), "");
  ASSERT_EQ(machine.deadline(), now + 30s) << "then the other one has run for min_run";
  now += 30s;
  EXPECT_EQ(tell(time_passed{}), "unreserve(1.1) preempt(3.1 for 1.1 priority)");
  EXPECT_EQ(tell(slots_released{run(3), ""}), "grant(1.1 a:0,1)");
}

/// With a reservation the run would wait for the holders to end, so a run that may preempt gets none.
TEST_F(ReservationWithPreemption, TheUrgentRunPreemptsAfterARestartToo) {
  tell(slots_held{run(1), {{"a", {0}}}, terms(1, 50), 1, 0, t0});
  ask(2, 1, 10);
  tell(agent_up{"a", 1});
  EXPECT_NE(tell(holders_heard{}).find("preempt(1.1"), std::string::npos);
}

/// While h waits for what its victims release, it keeps these slots; others, also of less urgent runs that
/// cannot be preempted, are for everybody.
TEST_F(ReservationWithPreemption, ARunThatWaitsForItsVictimsHoldsUpNobodyElsewhere) {
  tell(holders_heard{});
  tell(agent_up{"a", 3});
  tell(agent_up{"b", 2});
  ask(1, 3, 50);
  ask(2, 2, 42, false);
  slots_requested urgent{run(3), 3};
  urgent.run = terms(3, 10);
  urgent.run.rules.single_node = true;
  EXPECT_EQ(tell(urgent), "preempt(1.1 for 3.1 priority)");
  EXPECT_EQ(ask(4, 1, 42, false), "");
  EXPECT_EQ(tell(slots_released{run(2), ""}), "grant(4.1 b:0)");
}

/// Whoever preempts a holder of reserved slots takes none of them, and nobody else does.
TEST_F(ReservationWithPreemption, ItStaysWhereItsHoldersArePreemptedForAnother) {
  tell(holders_heard{});
  tell(agent_up{"a", 4});
  ask(2, 2, 42);
  slots_requested gang{run(3), 3};
  gang.run = terms(3, 42);
  gang.run.rules.single_node = true;
  EXPECT_EQ(tell(gang), "");
  now += 61s;
  EXPECT_EQ(ask(4, 1, 42), "reserve(3.1 a:0,2,3)");
  now += 40s;
  EXPECT_EQ(ask(1, 1, 42), "preempt(2.1 for 1.1 priority)") << "the free ones are reserved";
  EXPECT_TRUE(machine.explain(run(3), now)["reservation"].is_object());
  EXPECT_EQ(tell(slots_released{run(2), ""}), "grant(1.1 a:1) grant(3.1 a:0,2,3)");
}

/// The victim's slots are on two agents. When they are free, one of these agents could hold the run.
TEST_F(ReservationWithPreemption, FewerAgentsThanThoseOfItsVictimsMayHoldIt) {
  tell(slots_held{run(1), {{"a", {0}}, {"b", {0}}}, terms(1, 50), 2, 0, t0});
  tell(slots_held{run(2), {{"b", {1}}}, terms(2, 5), 1, 0, t0});
  tell(agent_up{"a", 1});
  tell(agent_up{"b", 2});
  EXPECT_EQ(tell(holders_heard{}), "");
  EXPECT_EQ(ask(3, 2, 10), "preempt(1.1 for 3.1 priority)");
  EXPECT_EQ(ask(4, 1, 42), "");
  EXPECT_EQ(tell(slots_released{run(2), ""}), "grant(4.1 b:1)");
  EXPECT_EQ(tell(slots_released{run(4), ""}), "");
  EXPECT_EQ(tell(slots_released{run(1), ""}), "grant(3.1 b:0,1)");
}

class TurnsOfJobs : public ReservationAfterARestart {
protected:
  TurnsOfJobs() {
    pool_settings settings;
    settings.scheduler = GetParam();
    machine = pool(pool::phase::placing, std::move(settings));
    now = t0;
  }
  std::string ask_of(std::uint64_t job, std::uint64_t trial, int slots) {
    slots_requested ev{run(trial), slots};
    ev.run = terms(job, now);
    return tell(ev);
  }
  std::string leaves(std::uint64_t trial) { return tell(slots_released{run(trial), ""}); }
};

/// Whenever a run of the older job ends, both jobs hold nothing, and the older one would have its turn for
/// ever.
TEST_P(TurnsOfJobs, AYoungerJobGetsItsTurnThoughTheOlderOneKeepsAsking) {
  tell(agent_up{"a", 4});
  EXPECT_EQ(ask_of(1, 10, 4), "grant(10.1 a:0,1,2,3)");
  EXPECT_EQ(ask_of(2, 20, 4), "");
  std::string served;
  for (std::uint64_t trial = 10; trial < 16; ++trial) {
    now += 40s;
    EXPECT_EQ(ask_of(1, trial + 1, 4).find("grant"), std::string::npos);
    served = leaves(trial);
    if (served.find("grant(20.1") != served.npos)
      break;
  }
  EXPECT_EQ(served, "grant(20.1 a:0,1,2,3)");
  EXPECT_LE(now - t0, 80s) << "the older one has one more turn";
  now += 40s;
  EXPECT_EQ(ask_of(2, 21, 4), "");
  EXPECT_NE(leaves(20).find("grant(1"), std::string::npos) << "then it is the turn of the older one";
}

/// The job of the gang has no run between two of them, but both come in one decision.
TEST_P(TurnsOfJobs, WhoseRunsFollowEachOtherHasASecondTurn) {
  tell(agent_up{"a", 4});
  EXPECT_EQ(ask_of(1, 10, 4), "grant(10.1 a:0,1,2,3)");
  now += 30s;
  EXPECT_EQ(ask_of(2, 20, 2), "");
  const auto follows = [&](std::uint64_t trial) {
    slots_requested ev{run(trial + 1), 4};
    ev.run = terms(1, now);
    ev.run.job.submitted = t0;
    return show(machine.apply({slots_released{run(trial), ""}, ev}, now));
  };
  now += 270s;
  EXPECT_EQ(follows(10), "grant(11.1 a:0,1,2,3) reserve(20.1 a:0,1)");
  now += 300s;
  EXPECT_NE(follows(11).find("grant(20.1 a:0,1)"), std::string::npos);
}

/// Between two runs the older jobs have none, neither in the queue nor on slots.
TEST_P(TurnsOfJobs, AGangIsNotStarvedByOlderJobsThatAskOneRunAfterTheOther) {
  tell(agent_up{"a", 2});
  EXPECT_EQ(ask_of(1, 10, 1), "grant(10.1 a:0)");
  EXPECT_EQ(ask_of(2, 20, 1), "grant(20.1 a:1)");
  now += 30s;
  EXPECT_EQ(ask_of(3, 30, 2), "");
  std::string served;
  for (std::uint64_t i = 0; i < 20 && served.find("grant(30.1") == served.npos; ++i) {
    now += 10s;
    served = leaves((i % 2 == 0 ? 10 : 20) + i / 2);
    now += 1s;
    if (served.find("grant(30.1") == served.npos)
      served = ask_of(1 + i % 2, (i % 2 == 0 ? 11 : 21) + i / 2, 1);
  }
  EXPECT_NE(served.find("grant(30.1 a:0,1)"), std::string::npos) << served;
  EXPECT_LE(now - t0, 30s + 60s + 3 * 11s);
}

/// There are more jobs than slots, and each asks before its run ends. In a fair pool the share of the
/// youngest is 0.
TEST_P(TurnsOfJobs, WhoHasNothingGetsATurnAmongMoreJobsThanSlots) {
  for (int slots : {1, 2}) {
    pool_settings settings;
    settings.scheduler = GetParam();
    machine = pool(pool::phase::placing, std::move(settings));
    now = t0;
    tell(agent_up{"a", 2});
    EXPECT_EQ(ask_of(1, 100, 1), "grant(100.1 a:0)");
    EXPECT_EQ(ask_of(2, 200, 1), "grant(200.1 a:1)");
    now += 10s;
    EXPECT_EQ(ask_of(3, 300, slots), "");
    std::string served;
    for (std::uint64_t i = 0; i < 30 && served.find("grant(300.1") == served.npos; ++i) {
      now += 10s;
      static_cast<void>(ask_of(1 + i % 2, (i % 2 == 0 ? 101 : 201) + i / 2, 1));
      served = leaves((i % 2 == 0 ? 100 : 200) + i / 2);
    }
    EXPECT_NE(served.find("grant(300.1"), std::string::npos) << slots << " " << served;
    EXPECT_LE(now - t0, 10s + 60s + 4 * 10s) << slots;
  }
}

/// Each of the older jobs has a run that has waited for long whenever it has nothing.
TEST_P(TurnsOfJobs, OlderJobsDoNotTakeTurnsWithEachOtherAlone) {
  tell(agent_up{"a", 2});
  EXPECT_EQ(ask_of(1, 100, 2), "grant(100.1 a:0,1)");
  for (std::uint64_t trial : {101, 102, 200, 201, 202})
    EXPECT_EQ(ask_of(trial / 100, trial, 2), "");
  EXPECT_EQ(ask_of(3, 300, 2), "");
  std::uint64_t running = 100, newest[] = {0, 102, 202};
  for (int turns = 0; turns < 6 && running != 300; ++turns) {
    now += 70s;
    const auto job = running / 100;
    static_cast<void>(ask_of(job, ++newest[job], 2));
    const auto said = leaves(running);
    const auto at = said.find("grant(");
    ASSERT_NE(at, std::string::npos) << said;
    running = std::stoul(said.substr(at + 6));
  }
  EXPECT_EQ(running, 300u);
  EXPECT_LE(now - t0, 4 * 70s);
}

TEST_P(TurnsOfJobs, WhoHasJustComeIsPassedByNobodysSecondTurn) {
  tell(agent_up{"a", 1});
  ask_of(1, 10, 1);
  for (std::uint64_t trial = 10; trial < 14; ++trial) {
    now += 10s;
    ask_of(1, trial + 1, 1);
    ask_of(2, 20 + trial, 1);
    EXPECT_EQ(leaves(trial), "grant(" + std::to_string(trial + 1) + ".1 a:0)") << "the older one first";
  }
}

INSTANTIATE_TEST_SUITE_P(Schedulers, TurnsOfJobs,
                         ::testing::Values(scheduler_kind::fair, scheduler_kind::round_robin));

/// The reserved slots are free when their holder has ended, and with it room below the limit.
class ReservationBelowALimit : public TurnsOfJobs {
protected:
  ReservationBelowALimit() {
    pool_settings settings;
    settings.scheduler = GetParam();
    settings.max_slots = 4;
    machine = pool(pool::phase::placing, std::move(settings));
  }
  std::string ask_on(const char* agent, std::uint64_t trial, int slots) {
    slots_requested ev{run(trial), slots};
    ev.run = terms(trial, now);
    ev.run.rules.agents = {agent};
    return tell(ev);
  }
};

TEST_P(ReservationBelowALimit, KeepsNoRoomThatItsHoldersWillRelease) {
  tell(agent_up{"a", 3});
  tell(agent_up{"c", 2});
  EXPECT_EQ(ask_on("c", 1, 2), "grant(1.1 c:0,1)");
  EXPECT_EQ(ask_on("c", 2, 2), "");
  EXPECT_EQ(ask_on("a", 3, 1), "grant(3.1 a:0)");
  now += 70s;
  EXPECT_EQ(leaves(3), "reserve(2.1 c:0,1)");
  EXPECT_EQ(ask_on("a", 4, 2), "grant(4.1 a:0,1)") << "both fit below the limit when run 1.1 has ended";
  EXPECT_EQ(ask_on("a", 5, 1), "") << "four slots are in use";
  EXPECT_TRUE(reservation(2).is_object());
  EXPECT_EQ(leaves(1), "grant(2.1 c:0,1)");
  EXPECT_EQ(leaves(4), "grant(5.1 a:0)");
}

TEST_P(ReservationBelowALimit, KeepsTheRoomThatTheyDoNotRelease) {
  tell(agent_up{"a", 3});
  tell(agent_up{"c", 2});
  EXPECT_EQ(ask_on("c", 1, 1), "grant(1.1 c:0)");
  EXPECT_EQ(ask_on("c", 2, 2), "");
  EXPECT_EQ(ask_on("a", 3, 1), "grant(3.1 a:0)");
  now += 70s;
  EXPECT_EQ(tell(time_passed{}), "reserve(2.1 c:0,1)");
  EXPECT_EQ(ask_on("a", 4, 2), "") << "with the two reserved slots, five would be in use";
  EXPECT_EQ(ask_on("a", 5, 1), "grant(5.1 a:1)");
  EXPECT_EQ(leaves(1), "grant(2.1 c:0,1)");
}

INSTANTIATE_TEST_SUITE_P(Schedulers, ReservationBelowALimit,
                         ::testing::Values(scheduler_kind::priority, scheduler_kind::fair,
                                           scheduler_kind::round_robin));

} // namespace
} // namespace troupe
