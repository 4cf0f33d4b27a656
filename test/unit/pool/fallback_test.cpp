// Tests runs that wait in two pools, and pools whose agents come from a provider.

#include "actors/pool/pool.hpp"
#include "test/unit/actors/show.hpp"
#include "test/unit/pool/supply.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{std::chrono::hours(1)};

allocation_id run(std::uint64_t trial) { return {trial_id{trial}, {1}}; }

class Fallback : public ::testing::Test {
protected:
  void begin(value settings) {
    machine = pool(pool::phase::placing, pool_settings{});
    static_cast<void>(machine.apply(pool_configured{std::move(settings)}, now));
  }
  static slots_requested request(std::uint64_t trial, int slots, const char* home = "", int priority = 42) {
    slots_requested ev{run(trial), slots};
    ev.run.job.job = {trial};
    ev.run.job.submitted = t0 + std::chrono::seconds(trial);
    ev.run.job.priority = priority;
    ev.run.job.user = "ada";
    ev.run.started = t0;
    ev.home = home;
    return ev;
  }
  std::string tell(const pool_event& ev) { return show(machine.apply(ev, now)); }
  std::string wait(duration time) {
    now += time;
    return tell(time_passed{});
  }
  std::string code(std::uint64_t trial) {
    const auto said = machine.explain(run(trial), now);
    return said.is_null() ? "" : said["reason"]["code"].get<std::string>();
  }
  pool machine{pool::phase::placing, pool_settings{}};
  time_point now = t0;
};

TEST_F(Fallback, WhoWaitedLongEnoughIsToldOnceWhereItMayAsk) {
  begin({{"fallback", {"b", "c"}}, {"fallback_after", "10s"}});
  EXPECT_EQ(tell(agent_up{"a1", 1}), "");
  EXPECT_EQ(tell(request(1, 1)), "grant(1.1 a1:0)");
  EXPECT_EQ(tell(request(2, 1)), "");
  EXPECT_EQ(machine.deadline(), now + 10s);
  EXPECT_EQ(wait(9s), "");
  EXPECT_EQ(wait(1s), "fall_back(2.1 b c)");
  EXPECT_EQ(wait(60s), "");
  EXPECT_EQ(tell(slots_released{run(1), ""}), "grant(2.1 a1:0)") << "it went on to wait here";
  EXPECT_EQ(machine.deadline(), std::nullopt);
}

TEST_F(Fallback, WhatThePoolCouldNeverHoldMayAskOthersToo) {
  begin({{"fallback", {"b"}}, {"fallback_after", "0s"}});
  EXPECT_EQ(tell(agent_up{"a1", 1}), "");
  EXPECT_EQ(tell(request(1, 4)), "unplaceable(1.1) fall_back(1.1 b)");
  EXPECT_EQ(tell(request(2, 0)), "grant(2.1 a1:)");
}

TEST_F(Fallback, WhoWaitedBeforeARestartDoesNotBeginAnew) {
  machine = pool(pool::phase::recovering, pool_settings{});
  now = t0 + 60s;
  static_cast<void>(machine.apply(pool_configured{{{"fallback", {"b"}}, {"fallback_after", "10s"}}}, now));
  EXPECT_EQ(tell(request(1, 1)), "") << "its run began at t0";
  EXPECT_EQ(tell(holders_heard{}), "fall_back(1.1 b)");
  EXPECT_EQ(tell(request(2, 1)), "") << "what comes later waits since it came";
  EXPECT_EQ(wait(9s), "");
  EXPECT_EQ(wait(1s), "fall_back(2.1 b)");
}

TEST_F(Fallback, ChangedListIsSaidAndTakenBack) {
  begin({{"fallback", {"b"}}, {"fallback_after", "1s"}});
  EXPECT_EQ(tell(request(1, 1)), "");
  EXPECT_EQ(wait(1s), "fall_back(1.1 b)");
  EXPECT_EQ(tell(pool_configured{{{"fallback", {"c"}}, {"fallback_after", "1s"}}}), "fall_back(1.1 c)");
  EXPECT_EQ(tell(pool_configured{value::object()}), "fall_back(1.1)");
}

TEST_F(Fallback, GuestGetsWhatIsFreeAtOnceOrHearsThatItWaits) {
  begin({{"scheduler", "priority"}, {"preemption", true}});
  EXPECT_EQ(tell(agent_up{"b1", 2}), "");
  EXPECT_EQ(tell(request(1, 1, "home")), "grant(1.1 b1:0)");
  EXPECT_EQ(tell(request(2, 2, "home", 1)), "guest_waits(2.1)") << "and nobody is preempted for it";
  EXPECT_EQ(tell(slots_released{run(1), ""}), "grant(2.1 b1:0,1)");
  EXPECT_EQ(tell(slots_released{run(2), ""}), "");
}

TEST_F(Fallback, GuestTakesNothingFromThoseBeforeIt) {
  begin({{"scheduler", "priority"}});
  EXPECT_EQ(tell(agent_up{"b1", 2}), "");
  EXPECT_EQ(tell(request(1, 1)), "grant(1.1 b1:0)");
  EXPECT_EQ(tell(request(2, 2)), "") << "one of this pool waits";
  EXPECT_EQ(tell(request(3, 1, "home")), "guest_waits(3.1)") << "it comes after that one";
  EXPECT_EQ(tell(request(4, 1, "home", 10)), "grant(4.1 b1:1)") << "a more urgent one comes before it";
  EXPECT_EQ(tell(slots_released{run(1), ""}), "");
  EXPECT_EQ(tell(slots_released{run(4), ""}), "grant(2.1 b1:0,1)");
}

TEST_F(Fallback, LimitsCountWhereItRuns) {
  begin({{"quotas", {{{"user", "ada"}, {"max_slots", 1}}}}});
  EXPECT_EQ(tell(agent_up{"b1", 4}), "");
  EXPECT_EQ(tell(request(1, 1)), "grant(1.1 b1:0)");
  EXPECT_EQ(tell(request(2, 1, "home")), "guest_waits(2.1)");
  EXPECT_EQ(tell(slots_released{run(2), ""}), "") << "it was placed at home";
  EXPECT_EQ(tell(slots_released{run(1), ""}), "");
}

TEST_F(Fallback, GuestOfAPoolWithoutRoomForItsTasksWaits) {
  begin({{"aux_per_agent", 1}});
  EXPECT_EQ(tell(agent_up{"b1", 1}), "");
  EXPECT_EQ(tell(request(1, 0, "home")), "grant(1.1 b1:)");
  EXPECT_EQ(tell(request(2, 0, "home")), "guest_waits(2.1)");
  EXPECT_EQ(tell(slots_released{run(1), ""}), "grant(2.1 b1:)");
}

slots_requested without(slots_requested ev, std::vector<std::string> excluded) {
  ev.run.rules.not_agents.insert(ev.run.rules.not_agents.end(), excluded.begin(), excluded.end());
  ev.run.excluded = std::move(excluded);
  return ev;
}

TEST_F(Fallback, WhoseLogPoliciesExcludeAllAgentsHearsThatItWaitsInVain) {
  begin(value::object());
  EXPECT_EQ(tell(agent_up{"a1", 1}), "");
  EXPECT_EQ(tell(agent_up{"a2", 1}), "");
  EXPECT_EQ(tell(without(request(1, 1), {"a1"})), "grant(1.1 a2:0)");
  EXPECT_EQ(tell(without(request(2, 1), {"a1"})), "") << "another one has it";
  const auto said = machine.apply(without(request(3, 1), {"a1", "a2"}), now);
  ASSERT_EQ(show(said), "unplaceable(3.1)") << "not that it waits: it ends";
  EXPECT_EQ(std::get<report_unplaceable>(said[0]).excluded, (std::vector<std::string>{"a1", "a2"}));
  EXPECT_EQ(tell(time_passed{}), "") << "once for each request";
  EXPECT_EQ(tell(without(request(3, 1), {"a1", "a2"})), "unplaceable(3.1)") << "who asks again is told again";
  EXPECT_EQ(tell(slots_released{run(3), ""}), "");
  // A task without slots takes an aux unit of an agent.
  EXPECT_EQ(tell(without(request(4, 0), {"a1", "a2"})), "unplaceable(4.1)");
  EXPECT_EQ(tell(without(request(5, 0), {"a1"})), "grant(5.1 a2:)");
  // The gang needs more slots than the agents that are not excluded have.
  EXPECT_EQ(show(machine.apply(without(request(6, 2), {"a1"}), now)), "unplaceable(6.1)");
}

TEST_F(Fallback, WhoseLogPoliciesExcludeAgentsWaitsWhileAnotherMayCome) {
  begin(value::object());
  EXPECT_EQ(tell(agent_up{"a1", 1}), "");
  EXPECT_EQ(tell(agent_down{"a2"}), "") << "known, and not registered yet";
  EXPECT_EQ(tell(without(request(1, 1), {"a1"})), "unplaceable(1.1)") << "it waits for it";
  EXPECT_EQ(tell(agent_up{"a2", 1}), "grant(1.1 a2:0)");
  EXPECT_EQ(tell(slots_released{run(1), ""}), "");
  EXPECT_EQ(tell(agent_down{"a2"}), "");
  EXPECT_EQ(tell(without(request(2, 1), {"a1"})), "unplaceable(2.1)");
  EXPECT_EQ(tell(agent_down{"a2", true}), "unplaceable(2.1)") << "it has moved to another pool";
  EXPECT_EQ(tell(without(request(3, 1), {"a1"})), "unplaceable(3.1)");
  EXPECT_EQ(tell(agent_forgotten{"a2"}), "");
  EXPECT_EQ(tell(without(request(4, 1), {"a1"})), "unplaceable(4.1)");
  // A drained agent may be enabled again. An agent that the user excludes does not concern the log policies.
  EXPECT_EQ(tell(agent_up{"a3", 1}), "grant(2.1 a3:0)");
  EXPECT_EQ(tell(agent_drain{"a3", true}), "");
  EXPECT_EQ(tell(without(request(5, 1), {"a1"})), "");
  auto by_hand = request(6, 1);
  by_hand.run.rules.not_agents = {"a1", "a3"};
  EXPECT_EQ(tell(by_hand), "unplaceable(6.1)");
  // No agent is there at all, so agents may still come.
  EXPECT_EQ(tell(agent_forgotten{"a1"}), "");
  EXPECT_EQ(tell(agent_forgotten{"a3"}), "");
  EXPECT_EQ(tell(without(request(7, 1), {"a1"})), "");
}

TEST_F(Fallback, WhoseLogPoliciesExcludeAgentsWaitsForAnotherPool) {
  begin({{"fallback", {"b"}}, {"fallback_after", "10s"}});
  EXPECT_EQ(tell(agent_up{"a1", 1}), "");
  EXPECT_EQ(tell(without(request(1, 1), {"a1"})), "unplaceable(1.1)");
  EXPECT_EQ(wait(10s), "fall_back(1.1 b)");
}

TEST_F(Fallback, WhoseLogPoliciesExcludeInstancesWaitsWhileTheProviderMayBringAnother) {
  begin(value::object());
  EXPECT_EQ(tell(supply(1, 2, 1)), "");
  EXPECT_EQ(tell(agent_up{"i1", 1}), "");
  EXPECT_EQ(tell(without(request(1, 1), {"i1"})), "unplaceable(1.1)") << "a second one may be started";
  EXPECT_EQ(tell(supply(1, 2, 2)), "");
  EXPECT_EQ(tell(agent_up{"i2", 1}), "grant(1.1 i2:0)");
  EXPECT_EQ(tell(slots_released{run(1), ""}), "");
  EXPECT_EQ(tell(without(request(2, 1), {"i1", "i2"})), "unplaceable(2.1)") << "there may be no third one";
  EXPECT_EQ(tell(slots_released{run(2), ""}), "");
  EXPECT_EQ(tell(supply(1, 2, 1)), "");
  EXPECT_EQ(tell(agent_down{"i2"}), "") << "it has ended";
  EXPECT_EQ(tell(without(request(3, 1), {"i1", "i2"})), "unplaceable(3.1)")
    << "another one may take its place";
}

std::string shown(const pool_demand& x) {
  std::string text;
  for (const auto& one : x.runs)
    text += std::to_string(one.count) + "x" + std::to_string(one.slots) + "@" + std::to_string(one.job) + " ";
  for (const auto& one : x.agents)
    text += one.agent + (one.connected ? one.idle ? "" : "!" : "?") + " ";
  return text;
}

TEST_F(Fallback, ElasticPoolSaysWhatItsAgentsCouldHold) {
  begin({{"quotas", {{{"user", "eve"}, {"max_slots", 0}}}}});
  EXPECT_EQ(tell(supply(2, 2)), "");
  static_cast<void>(tell(request(1, 1)));
  static_cast<void>(tell(request(2, 4)));
  static_cast<void>(tell(request(3, 5)));
  auto eves = request(4, 1);
  eves.run.job.user = "eve";
  static_cast<void>(tell(eves));
  auto elsewhere = request(5, 1);
  elsewhere.run.rules.labels["rack"] = {"a"};
  static_cast<void>(tell(elsewhere));
  static_cast<void>(tell(request(6, 1, "home")));
  EXPECT_EQ(shown(machine.demand()), "1x1@1 1x4@2 ");
  EXPECT_EQ(code(1), "scaling");
  EXPECT_EQ(code(3), "too_large") << "no instances could hold it";
  EXPECT_EQ(code(4), "quota");
  EXPECT_EQ(tell(supply(2, 2, 2, 2)), "");
  EXPECT_EQ(code(2), "scaling");
  EXPECT_EQ(tell(supply(2, 2, 0, 0, "no quota")), "");
  EXPECT_EQ(code(2), "provider_failed");
  static_cast<void>(tell(agent_up{"i1", 2}));
  EXPECT_EQ(shown(machine.demand()), "1x4@2 i1! ");
  static_cast<void>(tell(agent_down{"i1"}));
  EXPECT_EQ(shown(machine.demand()), "1x4@2 i1? ");
}

TEST_F(Fallback, GuestWhoseJobMovesHereIsNoGuestAnyMore) {
  begin({{"scheduler", "priority"}, {"preemption", true}});
  EXPECT_EQ(tell(supply(2, 2)), "");
  EXPECT_EQ(tell(agent_up{"b1", 1}), "");
  EXPECT_EQ(tell(request(1, 1)), "grant(1.1 b1:0)");
  EXPECT_EQ(tell(request(2, 1, "home", 10)), "guest_waits(2.1)");
  EXPECT_EQ(tell(request(3, 2, "home")), "guest_waits(3.1)");
  EXPECT_EQ(shown(machine.demand()), "b1! ") << "the provider launches nothing for guests";
  EXPECT_EQ(tell(request(2, 1, "", 10)), "preempt(1.1 for 2.1 priority)");
  EXPECT_EQ(tell(request(3, 2)), "unplaceable(3.1)") << "until an instance comes";
  EXPECT_EQ(shown(machine.demand()), "1x1@2 1x2@3 b1! ");
  EXPECT_EQ(tell(slots_released{run(1), ""}), "grant(2.1 b1:0)");
  EXPECT_EQ(tell(slots_released{run(3), ""}), "");
  EXPECT_EQ(machine.waiting().size(), 0u);
}

// The rows are those of resource_pool_test.go::TestScalingInfoAgentSummary of Determined 0.38.1.
TEST_F(Fallback, ScalingInfoAgentSummary) {
  begin({{"scheduler", "fifo"}});
  static_cast<void>(tell(supply(4, 5)));
  const auto held = [&](std::uint64_t trial, int slots, const std::string& agent, std::vector<int> on) {
    auto ask = request(trial, slots);
    return slots_held{ask.allocation, {{agent, std::move(on)}}, ask.run, slots, 0, {}};
  };
  static_cast<void>(tell(agent_up{"agent1", 1}));
  static_cast<void>(tell(agent_up{"agent2", 1}));
  static_cast<void>(tell(held(1, 0, "agent1", {})));
  static_cast<void>(tell(held(2, 0, "agent2", {})));
  static_cast<void>(tell(held(3, 1, "agent2", {0})));
  // Determined lets this run wait; Troupe places it at once.
  static_cast<void>(tell(held(9, 1, "agent1", {0})));
  EXPECT_EQ(shown(machine.demand()), "agent1! agent2! ");
  static_cast<void>(tell(agent_up{"agent3", 4}));
  static_cast<void>(tell(agent_up{"agent4", 4}));
  static_cast<void>(tell(held(4, 1, "agent4", {0})));
  EXPECT_EQ(shown(machine.demand()), "agent1! agent2! agent3 agent4! ");
  static_cast<void>(tell(held(5, 1, "agent3", {0})));
  EXPECT_EQ(shown(machine.demand()), "agent1! agent2! agent3! agent4! ");
  static_cast<void>(tell(slots_released{run(5), ""}));
  static_cast<void>(tell(agent_forgotten{"agent1"}));
  EXPECT_EQ(shown(machine.demand()), "agent2! agent3 agent4! ");
}

} // namespace
} // namespace troupe
