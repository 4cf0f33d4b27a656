// What the twin of an agent passes on, and when it gives the agent up.

#include "actors/agent_twin/agent_twin_actor.hpp"

#include "stage.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

class TwinActor : public Stage {
protected:
  void SetUp() override {
    agent = make_listener();
    pool = make_listener();
    allocation = make_listener();
    twin = on_stage(spawn_twin(*system_, "a", {}, pool.as<pool_actor>()));
    caf::anon_send(twin, agent_registered{1, 1, {}}, agent.as<agent_actor>());
    allocation.send(twin, start_ordered{id, {0}, "what to start"});
    run();
  }
  void TearDown() override {
    Stage::TearDown();
    twin = nullptr;
  }

  const allocation_id id{{1}, {1}};
  listener agent, pool, allocation;
  twin_actor twin;
};

TEST_F(TwinActor, PassesAnOrderDownAndItsNewsUp) {
  const auto orders = agent.all<link_order>();
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].epoch, 1u);
  ASSERT_EQ(orders[0].start.size(), 1u);
  EXPECT_EQ(orders[0].start[0].spec.bytes(), "what to start");
  caf::anon_send(twin, link_report{1, {task_started{id, "a", 7}}, {}, {}, {}});
  run();
  EXPECT_EQ(allocation.all<task_started>().size(), 1u);
}

TEST_F(TwinActor, WhatIsSaidOverAnOlderLinkIsNotHeard) {
  caf::anon_send(twin, link_report{0, {task_started{id, "a", 7}}, {}, {}, {}});
  run();
  EXPECT_TRUE(allocation.all<task_started>().empty());
}

TEST_F(TwinActor, AnAgentThatDiesIsLostOnlyWhenItsLeaseIsOver) {
  agent.die();
  pass(40s);
  EXPECT_TRUE(allocation.all<agent_lost>().empty()) << "its tasks may run still";
  pass(10s);
  ASSERT_EQ(allocation.all<agent_lost>().size(), 1u);
  EXPECT_EQ(allocation.all<agent_lost>()[0].agent, "a");
  EXPECT_EQ(pool.all<agent_down>().size(), 1u);
}

TEST_F(TwinActor, OneThatRegistersAgainIsSpokenToAtItsNewHandle) {
  auto again = make_listener();
  caf::anon_send(twin, agent_registered{2, 1, {{id, {0}, false, 7}}}, again.as<agent_actor>());
  run();
  agent.die(); // the end of the agent's earlier handle no longer concerns the twin
  run();
  allocation.send(twin, kill_ordered{id});
  run();
  ASSERT_FALSE(again.all<link_order>().empty());
  EXPECT_EQ(again.all<link_order>().back().epoch, 2u);
  EXPECT_EQ(again.all<link_order>().back().kill.size(), 1u);
}

} // namespace
} // namespace troupe
