// The gateway of tasks: what it tells its agent when a task has ended, and how it leaves its port.

#include "actors/harness/harness_actor.hpp"

#include "stage.hpp"

namespace troupe {
namespace {

class HarnessActor : public Stage {
protected:
  const allocation_id id{{12}, {3}};
};

TEST_F(HarnessActor, ATaskThatHasSaidNothingIsDrainedAtOnceAndAgainWhereItIsAskedAgain) {
  auto agent = make_listener();
  auto made = spawn_harness(*system_, {}, agent.as<agent_actor>());
  ASSERT_TRUE(made) << made.error().what;
  auto harness = on_stage(made->actor);
  caf::anon_send(harness, harness_task{id, "token", "/tmp", true});
  caf::anon_send(harness, harness_gone{id});
  run();
  ASSERT_EQ(agent.all<harness_drained>().size(), 1u);
  EXPECT_EQ(agent.all<harness_drained>()[0].allocation, id);
  EXPECT_TRUE(agent.all<harness_drained>()[0].silent);
  caf::anon_send(harness, harness_gone{id});
  run();
  EXPECT_EQ(agent.all<harness_drained>().size(), 2u);
}

TEST_F(HarnessActor, ATakenPortIsAnErrorAndIsFreeAgainWhenItsActorHasEnded) {
  auto agent = make_listener();
  auto made = spawn_harness(*system_, {}, agent.as<agent_actor>());
  ASSERT_TRUE(made) << made.error().what;
  auto second = spawn_harness(*system_, {made->endpoint}, agent.as<agent_actor>());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, errc::conflict);
  caf::anon_send_exit(made->actor, caf::exit_reason::user_shutdown);
  run();
  auto third = spawn_harness(*system_, {made->endpoint}, agent.as<agent_actor>());
  ASSERT_TRUE(third) << third.error().what;
  on_stage(third->actor);
}

} // namespace
} // namespace troupe
