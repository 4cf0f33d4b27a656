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

TEST_F(Fallback, IsPartOfTheExplanation) {
  begin({{"fallback", {"b", "c"}}, {"fallback_after", "10s"}});
  static_cast<void>(tell(agent_up{"a1", 1}));
  static_cast<void>(tell(request(1, 1)));
  static_cast<void>(tell(request(2, 1)));
  const auto shown = [this](double left) {
    const auto said = machine.explain(run(2), {{run(1), left, "progress", {}}}, now);
    return said["reason"]["text"].get<std::string>() +
           (said["estimate"].is_null() ? "" : ", with an estimate");
  };
  const std::string busy = "it is next, and waits for 1 slot, which others hold";
  EXPECT_EQ(shown(5), busy + "; in 10 s it asks the pools b, c too, with an estimate")
    << "the slot is free before";
  EXPECT_EQ(shown(60), busy + "; in 10 s it asks the pools b, c too");
  EXPECT_EQ(wait(10s), "fall_back(2.1 b c)");
  EXPECT_EQ(shown(5), busy + "; it asks the pools b, c too");
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
    text += one.agent + (one.connected ? one.idle ? one.awaited ? "+" : "" : "!" : "?") + " ";
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

TEST_F(Fallback, DemandTellsWhichAgentsItKnowsToBeOnInstances) {
  begin(value::object());
  auto told = supply(2, 2, 1, 1);
  told.agents = {"i1"};
  EXPECT_EQ(tell(told), "");
  static_cast<void>(tell(request(1, 4)));
  EXPECT_EQ(tell(agent_up{"gpu1", 2}), "");
  EXPECT_FALSE(machine.demand().agents.at(0).known);
  EXPECT_EQ(machine.demand().runs.at(0).slots, 4);
  told.agents = {"gpu1"};
  told.starting = 0;
  EXPECT_EQ(tell(told), "");
  EXPECT_TRUE(machine.demand().agents.at(0).known);
  EXPECT_EQ(machine.demand().runs.at(0).slots, 2) << "the run counts on it";
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

TEST_F(Fallback, WhatTheInstancesRefuseBringsNoMoreOfThem) {
  struct row {
    const char* what;
    std::function<void(placement_rules&)> set;
    bool is_tried_again; ///< where the settings of the provider have changed
  } rows[] = {
    {"device", [](auto& rules) { rules.device_types = {"cuda"}; }, true},
    {"memory", [](auto& rules) { rules.min_memory_bytes = 1; }, true},
    {"a label that instances should have", [](auto& rules) { rules.labels["rack"] = {"x"}; }, true},
    {"names", [](auto& rules) { rules.agents = {"gpu07"}; }, false},
  };
  for (const auto& r : rows) {
    SCOPED_TRACE(r.what);
    begin(value::object());
    auto told = supply(2, 3);
    told.labels["rack"] = "x";
    EXPECT_EQ(tell(told), "");
    auto ask = request(1, 2);
    r.set(ask.run.rules);
    EXPECT_EQ(tell(ask), "");
    EXPECT_EQ(shown(machine.demand()), "1x2@1 ") << "nobody knows what the instances are like";
    told.instances = told.starting = 1;
    told.agents = {"i1"};
    EXPECT_EQ(tell(told), "");
    EXPECT_EQ(shown(machine.demand()), "1x2@1 ");
    EXPECT_EQ(code(1), "scaling");
    static_cast<void>(tell(agent_up{"i1", 2, {}, {{}, "cpu", 0}}));
    EXPECT_EQ(shown(machine.demand()), "i1 ") << "another one would be like it";
    told.starting = 0;
    EXPECT_EQ(tell(told), "");
    EXPECT_EQ(code(1), "constraints");
    told.instances = 0;
    told.agents.clear();
    EXPECT_EQ(tell(told), "");
    EXPECT_EQ(tell(agent_forgotten{"i1"}), "");
    EXPECT_EQ(shown(machine.demand()), "") << "also when it has ended";
    EXPECT_EQ(code(1), "constraints");
    told.instances = 1;
    told.agents = {"i2"};
    EXPECT_EQ(tell(told), "");
    static_cast<void>(tell(agent_up{"i2", 2, {}, {{}, "cpu", 0}}));
    told.changes = 1;
    EXPECT_EQ(tell(told), "");
    EXPECT_EQ(shown(machine.demand()), r.is_tried_again ? "1x2@1 i2 " : "i2 ");
  }
}

TEST_F(Fallback, WhatAsksForDevicesBringsOneInstanceUntilItIsKnownWhatTheyAre) {
  begin(value::object());
  auto told = supply(2, 5);
  EXPECT_EQ(tell(told), "");
  for (std::uint64_t id = 1; id <= 3; ++id) {
    auto ask = request(id, id == 1 ? 6 : 2);
    ask.run.rules.device_types = {"cuda"};
    EXPECT_EQ(tell(ask), "");
  }
  EXPECT_EQ(shown(machine.demand()), "1x2@1 ") << "none has come, also after a start of the master";
  told.instances = told.starting = 1;
  told.agents = {"i1"};
  EXPECT_EQ(tell(told), "");
  EXPECT_EQ(shown(machine.demand()), "1x2@1 ");
  static_cast<void>(tell(agent_up{"i1", 2, {}, {{}, "cpu", 0}}));
  EXPECT_EQ(shown(machine.demand()), "i1 ");
}

TEST_F(Fallback, AnAgentThatCameBeforeItsInstanceWasKnownTellsWhatInstancesAreLike) {
  begin(value::object());
  auto told = supply(2, 3);
  EXPECT_EQ(tell(told), "");
  auto ask = request(1, 2);
  ask.run.rules.device_types = {"cuda"};
  EXPECT_EQ(tell(ask), "");
  static_cast<void>(tell(agent_up{"i1", 2, {}, {{}, "cpu", 0}}));
  EXPECT_EQ(shown(machine.demand()), "1x2@1 i1 ");
  told.agents = {"i1"};
  EXPECT_EQ(tell(told), "");
  EXPECT_EQ(shown(machine.demand()), "i1 ");

  begin(value::object());
  told = supply(2, 3);
  told.prefix = "i";
  EXPECT_EQ(tell(told), "");
  EXPECT_EQ(tell(ask), "");
  static_cast<void>(tell(agent_up{"i1", 2, {}, {{}, "cpu", 0}}));
  EXPECT_EQ(shown(machine.demand()), "i1 ") << "the name says it";
}

TEST_F(Fallback, WhoAsksForInstancesByNameBringsThose) {
  begin(value::object());
  auto told = supply(2, 3);
  told.prefix = "gpu-";
  EXPECT_EQ(tell(told), "");
  const auto named = [](std::uint64_t trial, const char* agent) {
    auto ask = request(trial, 2);
    ask.run.rules.agents = {agent};
    return ask;
  };
  for (const char* never : {"gpu07", "gpu-4", "gpu-0", "gpu-", "gpu-2x"}) {
    EXPECT_EQ(tell(named(1, never)), "");
    EXPECT_EQ(shown(machine.demand()), "") << never;
    EXPECT_EQ(code(1), "constraints") << never;
    EXPECT_EQ(tell(slots_released{run(1), ""}), "");
  }
  EXPECT_EQ(tell(named(2, "gpu-2")), "");
  EXPECT_EQ(shown(machine.demand()), "1x2@2 ");
  told.instances = 1;
  told.agents = {"gpu-1"};
  EXPECT_EQ(tell(told), "");
  static_cast<void>(tell(agent_up{"gpu-1", 2}));
  EXPECT_EQ(shown(machine.demand()), "1x2@2 gpu-1 ") << "the second one comes after the first one";
  told.instances = 2;
  told.agents = {"gpu-1", "gpu-2"};
  EXPECT_EQ(tell(told), "");
  EXPECT_EQ(tell(agent_up{"gpu-2", 2}), "grant(2.1 gpu-2:0,1)");
  EXPECT_EQ(tell(named(3, "gpu-2")), "");
  EXPECT_EQ(shown(machine.demand()), "gpu-1 gpu-2! ") << "it is there";
  EXPECT_EQ(code(3), "busy");
}

TEST_F(Fallback, AGangCountsOnTheInstancesThatHaveComeForIt) {
  begin(value::object());
  auto told = supply(2, 5, 4, 4);
  told.agents = {"i1", "i2", "i3", "i4"};
  EXPECT_EQ(tell(told), "");
  EXPECT_EQ(tell(request(1, 8)), "");
  EXPECT_EQ(shown(machine.demand()), "1x8@1 ");
  EXPECT_EQ(tell(agent_up{"i1", 2}), "");
  EXPECT_EQ(shown(machine.demand()), "1x6@1 i1+ ");
  EXPECT_EQ(tell(agent_up{"i2", 2}), "");
  EXPECT_EQ(shown(machine.demand()), "1x4@1 i1+ i2+ ");
  EXPECT_EQ(tell(agent_drain{"i1"}), "");
  EXPECT_EQ(shown(machine.demand()), "1x6@1 i1 i2+ ");
  EXPECT_EQ(tell(agent_drain{"i1", false, {0}}), "");
  EXPECT_EQ(shown(machine.demand()), "1x6@1 i1 i2+ ") << "it has one slot left";
  EXPECT_EQ(tell(agent_drain{"i1", false}), "");
  EXPECT_EQ(tell(request(2, 4)), "grant(2.1 i1:0,1 i2:0,1)") << "nothing is kept for the gang yet";
  EXPECT_EQ(shown(machine.demand()), "1x8@1 i1! i2! ");
}

TEST_F(Fallback, AGangOfARangeBringsTheLeastThatFillWholeInstances) {
  const struct {
    const char* what;
    int least, most;
    const char* wanted;
    int max_slots = -1, max_instances = 5;
    bool single_node = false;
    const char* gangs = "any";
    const char* reason = "scaling";
  } rows[] = {
    {"the most", 3, 4, "1x4@1 "},
    {"less than the most", 3, 5, "1x4@1 "},
    {"the least fills them", 4, 8, "1x4@1 "},
    {"the least is less than an instance", 1, 4, "1x1@1 "},
    {"no number between", 3, 3, "", -1, 5, false, "any", "too_large"},
    {"more than all instances", 11, 12, "", -1, 5, false, "any", "too_large"},
    {"no more than the limit of its job", 3, 8, "1x4@1 ", 5},
    {"the limit leaves none that fills whole ones", 3, 4, "", 3, 5, false, "any", "too_large"},
    {"the limit is below the least", 3, 4, "", 2, 5, false, "any", "max_slots"},
    {"one instance", 1, 4, "1x1@1 ", -1, 5, true},
    {"whole agents", 3, 4, "1x4@1 ", -1, 5, false, "whole"},
  };
  for (const auto& r : rows) {
    begin({{"gangs", r.gangs}});
    static_cast<void>(tell(supply(2, r.max_instances)));
    auto ask = request(1, r.most);
    ask.least = r.least;
    ask.run.job.max_slots = r.max_slots;
    ask.run.rules.single_node = r.single_node;
    static_cast<void>(tell(ask));
    EXPECT_EQ(shown(machine.demand()), r.wanted) << r.what;
    EXPECT_EQ(code(1), r.reason) << r.what;
  }
}

TEST_F(Fallback, AGangOfARangeRunsOnTheInstancesThatCameForIt) {
  for (const char* gangs : {"any", "whole"}) {
    begin({{"gangs", gangs}});
    auto told = supply(2, 5, 2, 2);
    told.agents = {"i1", "i2"};
    static_cast<void>(tell(told));
    auto ask = request(1, 4);
    ask.least = 3;
    static_cast<void>(tell(ask));
    EXPECT_EQ(code(1), "scaling") << gangs;
    static_cast<void>(tell(agent_up{"i1", 2}));
    EXPECT_EQ(shown(machine.demand()), "1x2@1 i1+ ") << gangs;
    EXPECT_EQ(tell(agent_up{"i2", 2}), "grant(1.1 i1:0,1 i2:0,1)") << gangs;
  }
}

TEST_F(Fallback, WhoWaitsForWhatAnInstanceKillsBringsNoOtherOne) {
  begin(value::object());
  auto told = supply(2, 5, 1);
  told.agents = {"i1"};
  EXPECT_EQ(tell(told), "");
  EXPECT_EQ(tell(request(3, 1)), "");
  EXPECT_EQ(tell(request(4, 1)), "");
  EXPECT_EQ(shown(machine.demand()), "1x1@3 1x1@4 ");
  // The agent was started again, and reports runs that were given away meanwhile.
  EXPECT_EQ(tell(agent_up{"i1", 2, {{"1.1", {0}}, {"2.1", {1}}}}), "");
  EXPECT_EQ(shown(machine.demand()), "i1! ");
  EXPECT_EQ(tell(slots_released{run(1), "i1"}), "grant(3.1 i1:0)");
  EXPECT_EQ(shown(machine.demand()), "i1! ") << "the second one ends, too";
  EXPECT_EQ(machine.deadline(), now + 30s);
  EXPECT_EQ(wait(30s), "");
  EXPECT_EQ(shown(machine.demand()), "1x1@4 i1! ") << "it does not end";
  EXPECT_EQ(tell(slots_released{run(2), "i1"}), "grant(4.1 i1:1)");
}

TEST_F(Fallback, AGangOfOneLabelCountsOnOneGroupOfInstances) {
  begin(value::object());
  auto told = supply(2, 5, 3);
  told.agents = {"i1", "i2", "i3"};
  told.labels["rack"] = "x";
  EXPECT_EQ(tell(told), "");
  auto ask = request(1, 6);
  ask.run.rules.same_label = "rack";
  EXPECT_EQ(tell(ask), "");
  for (const auto& [name, rack] : {std::pair{"i1", "a"}, {"i2", "b"}, {"i3", "b"}})
    static_cast<void>(tell(agent_up{name, 2, {}, {{{"rack", rack}}}}));
  EXPECT_EQ(shown(machine.demand()), "1x2@1 i1 i2+ i3+ ");
}

TEST_F(Fallback, WhoFitsBehindOthersBringsNoInstance) {
  begin({{"scheduler", "fifo"}});
  auto told = supply(2, 5, 1);
  told.agents = {"i1"};
  EXPECT_EQ(tell(told), "");
  EXPECT_EQ(tell(agent_up{"s1", 4}), "");
  EXPECT_EQ(tell(request(1, 4)), "grant(1.1 s1:0,1,2,3)");
  auto first = request(2, 4);
  first.run.rules.agents = {"s1"};
  EXPECT_EQ(tell(first), "");
  EXPECT_EQ(tell(agent_up{"i1", 2}), "");
  EXPECT_EQ(tell(request(3, 2)), "");
  EXPECT_EQ(shown(machine.demand()), "i1+ s1! ");
  EXPECT_EQ(code(3), "behind");
}

TEST_F(Fallback, APoolThatStillHearsWhatIsHeldSaysSo) {
  machine = pool(pool::phase::recovering, pool_settings{});
  auto told = supply(2, 5, 1);
  told.agents = {"i1"};
  EXPECT_EQ(tell(told), "");
  EXPECT_EQ(tell(agent_up{"i1", 2}), "");
  EXPECT_EQ(tell(request(1, 4)), "unplaceable(1.1)");
  EXPECT_EQ(shown(machine.demand()), "1x4@1 i1! ");
  EXPECT_FALSE(machine.demand().whole);
  static_cast<void>(tell(holders_heard{}));
  EXPECT_EQ(shown(machine.demand()), "1x2@1 i1+ ");
  EXPECT_TRUE(machine.demand().whole);
}

TEST_F(Fallback, OnlyRunsThatFitWithinAllLimitsTogetherBringInstances) {
  struct row {
    const char* what;
    value settings;
    int size;
    std::vector<slots_requested> runs;
    const char* wanted;
  };
  const auto of_job = [](slots_requested ask, std::uint64_t job, int max_slots) {
    ask.run.job.job = {job};
    ask.run.job.submitted = t0;
    ask.run.job.max_slots = max_slots;
    return ask;
  };
  const auto of_workspace = [](slots_requested ask) {
    ask.run.job.workspace = "vision";
    return ask;
  };
  const value ada{{"user", "ada"}, {"max_slots", 2}}, vision{{"workspace", "vision"}, {"max_slots", 1}};
  const value quota{{"quotas", value::array({ada})}}, quotas{{"quotas", value::array({ada, vision})}},
    whole{{"max_slots", 1}};
  const row rows[] = {
    {"quota", quota, 1, {request(1, 1), request(2, 1), request(3, 1), request(4, 1)}, "1x1@1 1x1@2 "},
    {"in the order of the queue",
     quota,
     1,
     {request(1, 1), request(2, 1), request(3, 1, "", 10)},
     "1x1@1 1x1@3 "},
    {"max_slots of the pool", whole, 1, {request(1, 1), request(2, 1), request(3, 1)}, "1x1@1 "},
    {"who waits for one limit takes no room below another",
     quotas,
     1,
     {of_workspace(request(1, 1)), of_workspace(request(2, 1)), request(3, 1)},
     "1x1@1 1x1@3 "},
    {"what is too large lets others pass",
     quota,
     2,
     {request(1, 1), request(2, 2), request(3, 1)},
     "1x1@1 1x1@3 "},
    {"max_slots of the job", {}, 2, {of_job(request(1, 2), 7, 3), of_job(request(2, 2), 7, 3)}, "1x2@7 "},
    {"no job could have it", {}, 2, {of_job(request(1, 2), 7, 1)}, ""},
    {"a run without slots takes no room", quota, 1, {request(1, 0), request(2, 2)}, "1x0@1 1x2@2 "},
    {"what fills no whole instances", {}, 2, {request(1, 3), request(2, 2)}, "1x2@2 "},
  };
  for (const auto& r : rows) {
    SCOPED_TRACE(r.what);
    begin(r.settings.is_null() ? value::object() : r.settings);
    EXPECT_EQ(tell(supply(r.size, 9)), "");
    for (const auto& ask : r.runs)
      EXPECT_EQ(tell(ask), "");
    EXPECT_EQ(shown(machine.demand()), r.wanted);
  }
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
