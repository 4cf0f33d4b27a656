// The stand-in of a worker, between its agent and the gateway.

#include "actors/worker/stand_in_actor.hpp"
#include "workers/worker_messages.hpp"

#include "stage.hpp"

namespace troupe {
namespace {

class StandInActor : public Stage {
protected:
  void SetUp() override {
    agent = make_listener();
    gateway = make_listener();
    worker =
      on_stage(spawn_stand_in(*system_, {id, "a", 1}, agent.as<agent_actor>(), gateway.as<harness_actor>()));
  }
  void TearDown() override {
    Stage::TearDown();
    worker = nullptr;
  }

  const allocation_id id{{12}, {3}};
  listener agent, gateway;
  stand_in_actor worker;
};

TEST_F(StandInActor, AProcessOfAnotherProtocolIsRefusedThroughTheGatewayAndTheAgentHearsWhy) {
  caf::anon_send(worker, worker_frame{id, 1, "p", workers::worker_protocol + 1, "a word"});
  run();
  const auto replies = gateway.all<worker_reply>();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].process, "p");
  EXPECT_EQ(replies[0].member, 1);
  EXPECT_NE(replies[0].refused, "");
  EXPECT_EQ(replies[0].order, "");
  EXPECT_EQ(agent.all<worker_said>().size(), 1u);
}

TEST_F(StandInActor, AnOrderBeforeTheWorkerHasSpokenStays) {
  caf::anon_send(worker, worker_ordered{id, 1, workers::worker_protocol, "an order"});
  run();
  EXPECT_TRUE(gateway.all<worker_reply>().empty());
}

} // namespace
} // namespace troupe
