// Runs that wait in two pools, and pools whose agents a provider brings.

#include "actors/pool/pool.hpp"
#include "test/unit/actors/show.hpp"

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

supply_told supply(int slots, int most, int instances = 0, int starting = 0, const char* error = "") {
  supply_told out;
  out.type = "local";
  out.instance_slots = slots;
  out.max_instances = most;
  out.instances = instances;
  out.starting = starting;
  out.error = error;
  return out;
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
  EXPECT_EQ(code(3), "no_agents") << "no instances could hold it";
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

// resource_pool_test.go::TestScalingInfoAgentSummary of Determined 0.38.1
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
  static_cast<void>(tell(held(9, 1, "agent1", {0}))); // ours places at once what would wait there
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
