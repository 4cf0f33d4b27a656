// What an allocation's actor still owes others when its machine has come to an end.

#include "actors/allocation/allocation_actor.hpp"
#include "actors/pool/pool_actor.hpp"
#include "actors/shells/durable.hpp"

#include <caf/all.hpp>
#include <gtest/gtest.h>

#include <future>

namespace troupe {
namespace {

/// Says which allocations it was told to forget.
twin_actor spawn_listening_twin(caf::actor_system& sys,
                                std::shared_ptr<std::promise<allocation_id>> forgotten) {
  return sys.spawn([forgotten]() -> twin_actor::behavior_type {
    return {
      [](const agent_registered&, const agent_actor&) {},
      [](const agent_heartbeat&) {},
      [](const link_report&) {},
      [](const start_ordered&) {},
      [](const preempt_ordered&) {},
      [](const kill_ordered&) {},
      [forgotten](const forget_ordered& x) { forgotten->set_value(x.allocation); },
      [](const watch_ordered&) {},
      [](const expect_tasks&) {},
      [](const death_confirmed&) {},
      [](const time_passed&) {},
      [](const task_checkpoint&) {},
      [](const checkpoint_answer&) {},
      [](const validation_answer&) {},
      [](const worker_ordered&) {},
    };
  });
}

// Otherwise the twin waits for that run for ever, and the slot of its late task stays held.
TEST(AllocationActor, TellsTheAgentToForgetARunThatEndedBeforeTheRecovery) {
  node_config config;
  caf::actor_system system{config};
  auto forgotten = std::make_shared<std::promise<allocation_id>>();
  auto pool = spawn_pool(system, "default");
  auto twin = spawn_listening_twin(system, forgotten);
  caf::anon_send(pool, twin, std::string("a1"));
  const allocation_id id{{7}, {2}};
  spawn_allocation(system, {id}, value::object(), {{}, {}, pool},
                   {allocation_placed{{}, {{"a1", {0}}}}, allocation_closed{{}, end::completed, 0, ""}});
  auto heard = forgotten->get_future();
  ASSERT_EQ(heard.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_EQ(heard.get(), id);
  caf::anon_send_exit(pool, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(twin, caf::exit_reason::user_shutdown);
}

} // namespace
} // namespace troupe
