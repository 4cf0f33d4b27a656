#include "actors/pool/pool.hpp"

#include "test/unit/actors/show.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

allocation_id run(std::uint64_t trial, std::uint64_t number = 1) { return {{trial}, {number}}; }

struct row {
  pool_event event;
  std::string actions;
  int used = 0;
};

void play(const std::vector<row>& rows, pool::phase begin = pool::phase::placing) {
  pool p(begin);
  for (const auto& r : rows) {
    EXPECT_EQ(show(p.apply(r.event)), r.actions) << "on " << show(r.event);
    EXPECT_EQ(p.used_slots(), r.used) << "after " << show(r.event);
  }
}

TEST(Pool, PlacesInTheOrderOfArrival) {
  play({
    {slots_requested{run(1), 2}, "", 0},
    {slots_requested{run(2), 1}, "", 0},
    {agent_up{"a", 1}, "grant(2.1 a:0)", 1}, // A run that the whole pool cannot hold lets others pass.
    {agent_up{"b", 2}, "grant(1.1 b:0,1)", 3},
    {slots_requested{run(3), 1}, "", 3},
    {slots_released{run(1)}, "grant(3.1 b:0)", 2},
    {slots_requested{run(4), 2}, "", 2},
    // The run would fit, but does not overtake one that the pool can hold.
    {slots_requested{run(5), 1}, "", 2},
    {slots_released{run(3)}, "grant(4.1 b:0,1)", 3},
  });
}

TEST(Pool, FitsOneAgentBeforeSeveral) {
  play({
    {agent_up{"a", 4}, "", 0},
    {agent_up{"b", 2}, "", 0},
    {slots_requested{run(1), 2}, "grant(1.1 b:0,1)", 2}, // the agent that has the fewest slots to spare
    {slots_requested{run(2), 1}, "grant(2.1 a:0)", 3},
    {slots_released{run(1)}, "", 1},
    // the run is spread over two agents, those with most free slots first
    {slots_requested{run(3), 5}, "grant(3.1 a:1,2,3 b:0,1)", 6},
    {slots_requested{run(4), 7}, "unplaceable(4.1)", 6},
  });
}

TEST(Pool, ForgetsAnAgentWhoseAuxUnitIsTaken) {
  play({
    {agent_up{"a", 1}, "", 0},
    {slots_requested{run(1), 0}, "grant(1.1 a:)", 0},
    {agent_forgotten{"a"}, "", 0},
    {slots_released{run(1)}, "", 0},
  });
}

TEST(Pool, PlacesNothingNewOnADrainedAgent) {
  play({
    {agent_drain{"b"}, "", 0}, // the agent need not be there yet
    {agent_up{"a", 1}, "", 0},
    {agent_up{"b", 2}, "", 0},
    {slots_requested{run(1), 1}, "grant(1.1 a:0)", 1},
    {slots_requested{run(2), 2}, "", 1}, // the run waits for the drained agent, and lets smaller runs pass
    {slots_requested{run(3), 1}, "", 1},
    {slots_released{run(1)}, "grant(3.1 a:0)", 1},
    {agent_drain{"b", false}, "grant(2.1 b:0,1)", 3},
    {agent_drain{"b"}, "", 3}, // a run on a drained agent continues
    {slots_released{run(2)}, "", 1},
  });
}

TEST(Pool, PlacesNothingNewOnASlotThatIsDisabled) {
  play({
    {agent_up{"a", 2}, "", 0},
    {agent_drain{"a", false, {0}}, "", 0},
    {slots_requested{run(1), 1}, "grant(1.1 a:1)", 1},
    {slots_requested{run(2), 2}, "", 1}, // the run waits, and lets smaller runs pass
    {slots_released{run(1)}, "", 0},
    {slots_requested{run(3), 1}, "grant(3.1 a:1)", 1},
    {agent_drain{"a", false}, "", 1}, // the new order replaces the one before
    {slots_released{run(3)}, "grant(2.1 a:0,1)", 2},
  });
}

TEST(Pool, PlacesAfterItDiedOnlyWhenAllHaveSaidWhatTheyHold) {
  play(
    {
      {slots_requested{run(5), 1}, "", 0},
      {agent_up{"a", 2, {{"1.1", {0}}}}, "", 1},
      {slots_held{run(1), {{"a", {0}}}}, "", 1}, // the agent has already reported this run
      {slots_held{run(2), {{"a", {1}}}}, "", 2}, // the run was granted, and its agent does not know it yet
      {slots_held{run(3), {{"b", {1}}, {"c", {0}}}}, "", 2}, // these agents have not registered yet
      {slots_requested{run(4), 1}, "", 2},
      {agent_up{"b", 2, {{"3.1", {1}}}}, "", 3},
      {holders_heard{}, "grant(5.1 b:0)", 4},
      {agent_up{"c", 1}, "", 5}, // the slot is held, although the inventory does not name the run
      {slots_released{run(2)}, "grant(4.1 a:1)", 5},
      {slots_released{run(3)}, "", 3},
      {slots_released{run(1)}, "", 2},
    },
    pool::phase::recovering);
}

/// The first run lost its order to start and asked anew, and the second one got its slot.
TEST(Pool, GivesASlotThatTwoClaimToHoldToTheLaterGrant) {
  const slots_held first{run(1), {{"a", {0}}}, {}, 1, 0, time_point{1s}},
    second{run(2), {{"a", {0, 1}}}, {}, 2, 0, time_point{2s}};
  for (const bool in_order : {true, false})
    play(
      {
        {agent_up{"a", 2}, "", 0},
        {in_order ? first : second, "", in_order ? 1 : 2},
        {in_order ? second : first, "", 2},
        {holders_heard{}, "", 2},
        {slots_released{run(1)}, "", 2},
        {slots_requested{run(1), 1}, "", 2},
        {slots_released{run(2)}, "grant(1.1 a:0)", 1},
      },
      pool::phase::recovering);
}

TEST(Pool, ForgetsAnAgent) {
  play({
    {agent_up{"a", 1}, "", 0},
    {agent_drain{"a"}, "", 0},
    {agent_forgotten{"a"}, "", 0},
    {agent_up{"a", 1}, "", 0},
    {slots_requested{run(1), 1}, "grant(1.1 a:0)", 1}, // the pool has forgotten the drain
  });
}

TEST(Pool, RepeatsTheGrantThatMayNotHaveArrived) {
  play({
    {agent_up{"a", 2}, "", 0},
    {slots_requested{run(1), 1}, "grant(1.1 a:0)", 1},
    {slots_requested{run(1), 1}, "grant(1.1 a:0)", 1},
    {slots_requested{run(2), 2}, "", 1},
    {slots_requested{run(2), 2}, "", 1}, // the run waits only once
    {slots_released{run(1)}, "grant(2.1 a:0,1)", 2},
    {slots_released{run(2)}, "", 0},
    {slots_released{run(2)}, "", 0},
  });
}

TEST(Pool, KeepsItsGrantsWhileTheirAgentIsAway) {
  play({
    {agent_up{"a", 2}, "", 0},
    {slots_requested{run(1), 1}, "grant(1.1 a:0)", 1},
    {agent_down{"a"}, "", 0},
    {slots_requested{run(2), 2}, "", 0},
    {agent_up{"a", 2, {{"9.1", {1}}}}, "", 2}, // Run 1.1 may still be started there. Nobody placed run 9.1.
    {agent_down{"a"}, "", 0},
    {agent_up{"a", 2}, "", 1}, // run 9.1 has ended meanwhile
    {slots_released{run(1)}, "grant(2.1 a:0,1)", 2},
  });
}

TEST(Pool, TakesTheInventoryAfterARestart) {
  play({
    {slots_requested{run(3), 1}, "", 0},
    {agent_up{"a", 2, {{"1.2", {0}}, {"2.1", {1, 7}}}}, "", 2},
    {slots_released{run(1, 2)}, "grant(3.1 a:0)", 2},
    {slots_released{run(2)}, "", 1},
  });
}

TEST(Pool, KnowsARunUntilItsLastPartIsReleased) {
  pool p;
  static_cast<void>(p.apply(agent_up{"a", 1}));
  static_cast<void>(p.apply(agent_up{"b", 1}));
  static_cast<void>(p.apply(slots_requested{run(1), 2}));
  static_cast<void>(p.apply(slots_released{run(1), "a"}));
  EXPECT_TRUE(p.knows(run(1)));
  static_cast<void>(p.apply(slots_released{run(1), "b"}));
  EXPECT_FALSE(p.knows(run(1))) << "its allocation may be gone";
}

TEST(Pool, WithdrawsARequestThatWaits) {
  play({{slots_requested{run(1), 1}, "", 0}, {slots_released{run(1)}, "", 0}, {agent_up{"a", 1}, "", 0}});
}

TEST(Pool, GivesAGangWithARangeWhatThereIsAndSaysWhenThereIsMore) {
  play({
    {slots_requested{run(1), 4, 2}, "", 0},
    {agent_up{"a", 1}, "", 0},
    {agent_up{"b", 2}, "grant(1.1 b:0,1 a:0)", 3},
    {agent_up{"c", 3}, "spare(1.1 4)", 3},
    {slots_requested{run(2), 3}, "grant(2.1 c:0,1,2)", 6},
    {slots_released{run(2)}, "spare(1.1 4)", 3},
    {agent_down{"b"}, "", 1},
    {slots_released{run(1), "b"}, "", 1}, // the gang continues without its slots on b
    {agent_up{"b", 2}, "", 1},
    {slots_released{run(1)}, "", 0},
  });
}

TEST(Pool, AsksNobodyToGrowWhileAnotherWaits) {
  play({
    {agent_up{"a", 2}, "", 0},
    {slots_requested{run(1), 4, 2}, "grant(1.1 a:0,1)", 2},
    {slots_requested{run(2), 3}, "unplaceable(2.1)", 2},
    // Two slots are free, but run 2.1 waits for three, and run 1.1 is not asked to grow.
    {agent_up{"b", 2}, "", 2},
    {agent_up{"c", 1}, "grant(2.1 b:0,1 c:0)", 5},
  });
}

} // namespace
} // namespace troupe
