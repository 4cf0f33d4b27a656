// What a pool's shell does for allocations that die, come too early, or ask about agents that nobody knows.

#include "actors/pool/pool_actor.hpp"

#include "stage.hpp"

namespace troupe {
namespace {

using testing::ElementsAre;

class PoolActor : public Stage {
protected:
  void SetUp() override {
    pool = on_stage(spawn_pool(*system_, "default"));
    caf::anon_send(pool, agent_up{"a", 2, {}});
  }
  void TearDown() override {
    Stage::TearDown();
    pool = nullptr;
  }
  static std::vector<placement> granted(const listener& who) {
    const auto all = who.all<slots_granted>();
    return all.empty() ? std::vector<placement>{} : all.back().on;
  }

  pool_actor pool;
  const allocation_id first{{1}, {1}}, second{{2}, {1}};
};

TEST_F(PoolActor, GrantsToWhoeverAsked) {
  auto one = make_listener(), other = make_listener();
  one.send(pool, slots_requested{first, 2});
  other.send(pool, slots_requested{second, 1});
  run();
  ASSERT_EQ(granted(one).size(), 1u);
  EXPECT_EQ(granted(one)[0].agent, "a");
  EXPECT_THAT(granted(one)[0].slots, ElementsAre(0, 1));
  EXPECT_TRUE(granted(other).empty()) << "nothing is free";
  one.send(pool, slots_released{first, ""});
  run();
  EXPECT_THAT(granted(other).at(0).slots, ElementsAre(0));
}

TEST_F(PoolActor, WhatOneWasGrantedThatDiedBeforeItHeardIsFree) {
  auto dead = make_listener(), alive = make_listener();
  dead.send(pool, slots_requested{first, 2});
  dead.die(); // its unread messages end with it
  run();
  alive.send(pool, slots_requested{second, 2});
  run();
  EXPECT_TRUE(granted(dead).empty());
  EXPECT_EQ(granted(alive).size(), 1u);
}

TEST_F(PoolActor, OneThatWasMadeAgainKeepsWhatItsPredecessorWasGranted) {
  auto dead = make_listener(), again = make_listener(), other = make_listener();
  dead.send(pool, slots_requested{first, 2});
  run();
  ASSERT_EQ(granted(dead).size(), 1u);
  dead.die();
  again.send(pool, slots_requested{first, 2});
  other.send(pool, slots_requested{second, 1});
  run();
  EXPECT_EQ(granted(again).size(), 1u);
  EXPECT_TRUE(granted(other).empty());
}

// The next one waited for ever: the grant went to the dead one.
TEST_F(PoolActor, OneThatWasMadeAgainIsNotReplacedByItsPredecessorThatAsksLate) {
  auto dead = make_listener(), again = make_listener(), other = make_listener();
  other.send(pool, slots_requested{second, 2});
  run();
  again.send(pool, slots_requested{first, 2});
  run();
  dead.send(pool, slots_requested{first, 2});
  run();
  dead.die();
  run();
  other.send(pool, slots_released{second, ""});
  run();
  EXPECT_EQ(granted(again).size(), 1u);
}

// The agent counted in two pools, and its slots were given twice.
TEST_F(PoolActor, ATwinThatWasEndedBringsItsAgentBackNoMore) {
  auto twin = make_listener(), next = make_listener(), allocation = make_listener();
  caf::anon_send(pool, twin.as<twin_actor>(), std::string("b"));
  twin.send(pool, agent_up{"b", 4});
  run();
  caf::anon_send(pool, agent_down{"b", true});
  twin.send(pool, agent_up{"b", 4});
  run();
  allocation.send(pool, slots_requested{first, 4});
  run();
  EXPECT_TRUE(granted(allocation).empty());
  caf::anon_send(pool, next.as<twin_actor>(), std::string("b")); // the agent has come back to this pool
  next.send(pool, agent_up{"b", 4});
  run();
  ASSERT_EQ(granted(allocation).size(), 1u);
  EXPECT_EQ(granted(allocation)[0].agent, "b");
}

TEST_F(PoolActor, AnAgentThatIsKnownAndHasNotRegisteredIsWaitedFor) {
  auto twin = make_listener(), late = make_listener();
  auto allocation = make_listener();
  caf::anon_send(pool, twin.as<twin_actor>(), std::string("a1"));
  caf::anon_send(pool, late.as<twin_actor>(), std::string("a2"));
  caf::anon_send(pool, agent_up{"a1", 1});
  slots_requested wanted{second, 1};
  wanted.run.rules.not_agents = wanted.run.excluded = {"a", "a1"};
  allocation.send(pool, wanted);
  run();
  const auto in_vain = [&] {
    const auto said = allocation.all<report_unplaceable>();
    return std::count_if(said.begin(), said.end(), [](const auto& x) { return !x.excluded.empty(); });
  };
  EXPECT_EQ(in_vain(), 0);
  caf::anon_send(pool, agent_forgotten{"a2"});
  run();
  EXPECT_EQ(in_vain(), 1);
}

TEST_F(PoolActor, ToWatchAnAgentThatNobodyKnowsIsToHaveLostIt) {
  auto allocation = make_listener(), twin = make_listener();
  allocation.send(pool, watch_by_name{"gone", {first, {0}}});
  caf::anon_send(pool, twin.as<twin_actor>(), std::string("a"));
  run();
  allocation.send(pool, watch_by_name{"a", {first, {0}}});
  run();
  ASSERT_EQ(allocation.all<agent_lost>().size(), 1u);
  EXPECT_EQ(allocation.all<agent_lost>()[0].agent, "gone");
  ASSERT_EQ(twin.all<watch_ordered>().size(), 1u);
  EXPECT_EQ(twin.all<watch_ordered>()[0].allocation, first);
}

TEST_F(PoolActor, WhoHoldsSlotsOfAnAgentThatIsRemovedHasLostIt) {
  auto holder = make_listener(), waiting = make_listener();
  holder.send(pool, slots_requested{first, 2});
  waiting.send(pool, slots_requested{second, 1});
  run();
  ASSERT_EQ(granted(holder).size(), 1u);
  caf::anon_send(pool, agent_forgotten{"a"});
  run();
  ASSERT_EQ(holder.all<agent_lost>().size(), 1u);
  EXPECT_EQ(holder.all<agent_lost>()[0].agent, "a");
  EXPECT_TRUE(waiting.all<agent_lost>().empty());
}

} // namespace
} // namespace troupe
