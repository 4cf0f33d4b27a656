// The messages that an allocation's actor still has to send when its machine has come to an end.

#include "actors/allocation/allocation_actor.hpp"
#include "actors/journal/journal_actor.hpp"
#include "actors/pool/pool_actor.hpp"
#include "actors/shells/durable.hpp"

#include "stage.hpp"

#include <future>
#include <thread>

namespace troupe {
namespace {

/// A twin that says which allocation it was told to forget.
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
      [](const progress_heard&) {},
      [](const checkpoint_answer&) {},
      [](const validation_answer&) {},
      [](const worker_ordered&) {},
      [](const pool_renewed&) { return pool_joined{}; },
      [](const service_ordered&) {},
    };
  });
}

// Without this message the twin would wait for that run for ever, and the slot of its late task would stay
// held.
TEST(AllocationActor, TellsTheAgentToForgetARunThatEndedBeforeTheRecovery) {
  node_config config;
  caf::actor_system system{config};
  auto forgotten = std::make_shared<std::promise<allocation_id>>();
  auto pool = spawn_pool(system, "default");
  auto twin = spawn_listening_twin(system, forgotten);
  caf::anon_send(pool, twin, std::string("a1"));
  const allocation_id id{{7}, {2}};
  spawn_allocation(system, {id}, {}, {{}, {}, pool},
                   {allocation_placed{{}, {{"a1", {0}}}}, allocation_closed{{}, end::completed, 0, ""}});
  auto heard = forgotten->get_future();
  ASSERT_EQ(heard.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_EQ(heard.get(), id);
  caf::anon_send_exit(pool, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(twin, caf::exit_reason::user_shutdown);
}

// The twin is found while the end is being stored. Without care nobody would hear of the end, and the slots
// would stay held.
class AllocationOnStage : public Stage {
protected:
  /// The answers of a pool whose only agent has this twin, or whatever takes the twin's place later.
  static listener::answers finds(const listener& twin) {
    return [&twin](const caf::message& asked) -> caf::result<caf::message> {
      if (asked.match_element<locate_agents>(0))
        return caf::make_message(std::vector<twin_actor>{twin.as<twin_actor>()});
      return caf::message{};
    };
  }
};

TEST_F(AllocationOnStage, LivesUntilItsEndIsToldAlsoWhereATwinIsFoundBefore) {
  auto owner = make_listener(), twin = make_listener();
  auto journal = make_listener([](const caf::message&) { return caf::make_message(committed{}); });
  auto pool = make_listener(finds(twin));
  const allocation_id id{{7}, {2}};
  const auto actor = on_stage(spawn_allocation(
    *system_, {id}, {}, {owner.as<allocation_owner>(), journal.as<journal_actor>(), pool.as<pool_actor>()},
    {allocation_placed{{}, {{"a1", {0}}}}}));
  run();
  caf::anon_send(actor, allocation_stop{false, "pruned"});
  caf::anon_send(actor, task_exited{id, "a1", 0, 0, ""});
  run();
  EXPECT_EQ(owner.all<allocation_ended>().size(), 1u);
  EXPECT_FALSE(pool.all<slots_released>().empty());
}

/// Otherwise the next twin, which the journal told of this run, would wait for it for ever, and the run's
/// record would stay.
TEST_F(AllocationOnStage, SaysItsEndAgainWhereATwinDiesBeforeItTookIt) {
  auto owner = make_listener(), first = make_listener(), second = make_listener();
  auto newest = first;
  auto journal = make_listener([](const caf::message&) { return caf::make_message(committed{}); });
  auto pool = make_listener(finds(newest));
  const allocation_id id{{7}, {2}};
  const auto actor = on_stage(spawn_allocation(
    *system_, {id}, {}, {owner.as<allocation_owner>(), journal.as<journal_actor>(), pool.as<pool_actor>()},
    {allocation_placed{{}, {{"a1", {0}}}}}));
  run();
  first.send(actor, task_started{id, "a1", 7});
  run();
  first.die();
  caf::anon_send(actor, agent_lost{"a1", "died"});
  run();
  EXPECT_EQ(owner.all<allocation_ended>().size(), 1u);
  EXPECT_TRUE(first.all<forget_ordered>().empty());
  newest = second;
  pass(std::chrono::seconds(1));
  EXPECT_EQ(second.all<forget_ordered>().size(), 1u);
  pass(std::chrono::seconds(60));
  EXPECT_EQ(second.all<forget_ordered>().size(), 1u);
}

TEST_F(AllocationOnStage, AsksAfterAStartOrderThatNobodyAnswers) {
  auto owner = make_listener(), twin = make_listener();
  auto journal = make_listener([](const caf::message&) { return caf::make_message(committed{}); });
  auto pool = make_listener(finds(twin)), next = make_listener(finds(twin));
  const allocation_id id{{7}, {2}};
  const auto actor = on_stage(
    spawn_allocation(*system_, {id}, {},
                     {owner.as<allocation_owner>(), journal.as<journal_actor>(), pool.as<pool_actor>()}, {}));
  pool.send(actor, slots_granted{id, {{"a1", {0}}}});
  run();
  const auto orders = twin.all<start_ordered>();
  ASSERT_EQ(orders.size(), 1u);
  pass(std::chrono::seconds(5));
  const auto asked = pool.all<watch_by_name>();
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].watch.placed, orders[0].placed);
  twin.send(actor, task_started{id, "a1", 7});
  pass(std::chrono::seconds(60));
  EXPECT_EQ(pool.all<watch_by_name>().size(), 1u);
  // A pool that was made again may know a twin that this allocation has not met.
  owner.send(actor, pool_renewed{"default", next.as<pool_actor>()});
  run();
  EXPECT_EQ(next.all<slots_held>().size(), 1u);
  EXPECT_EQ(next.all<watch_by_name>().size(), 1u);
}

TEST_F(AllocationOnStage, ARunThatNoAgentIsLeftForEndsAndSaysSo) {
  auto owner = make_listener(), pool = make_listener(), other = make_listener();
  auto journal = make_listener([](const caf::message&) { return caf::make_message(committed{}); });
  const allocation_id id{{7}, {2}};
  const auto actor = on_stage(
    spawn_allocation(*system_, {id}, {},
                     {owner.as<allocation_owner>(), journal.as<journal_actor>(), pool.as<pool_actor>()}, {}));
  run();
  other.send(actor, report_unplaceable{id, 1, 1, {"a1"}}); // from a pool that the allocation has left
  run();
  EXPECT_TRUE(owner.all<allocation_ended>().empty());
  pool.send(actor, report_unplaceable{id, 1, 1, {"a1"}});
  run();
  const auto ended = owner.all<allocation_ended>();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_TRUE(ended[0].unplaceable);
  EXPECT_EQ(ended[0].why, end::failed);
}

/// What is seen from outside of one run of a notebook, whose owner keeps no checkpoints.
struct notebook_run {
  std::promise<std::string> refusal; ///< refusal in the words that the task's agent heard
  std::promise<allocation_ended> end;
};

/// A twin whose task runs, writes a checkpoint, and fails as soon as the checkpoint is answered.
twin_actor spawn_twin_of_a_notebook(caf::actor_system& sys, std::shared_ptr<notebook_run> run,
                                    allocation_id id) {
  return sys.spawn([run, id](twin_actor::pointer self) -> twin_actor::behavior_type {
    return {
      [](const agent_registered&, const agent_actor&) {},
      [](const agent_heartbeat&) {},
      [](const link_report&) {},
      [](const start_ordered&) {},
      [](const preempt_ordered&) {},
      [](const kill_ordered&) {},
      [](const forget_ordered&) {},
      [self, id](const watch_ordered&) {
        const auto allocation = caf::actor_cast<allocation_actor>(self->current_sender());
        self->send(allocation, task_started{id, "a1", 4711});
        self->send(allocation, task_checkpoint{{id, 0, "p", 1}, {.uuid = "uuid-1", .steps = 10}});
      },
      [](const expect_tasks&) {},
      [](const death_confirmed&) {},
      [](const time_passed&) {},
      [](const task_checkpoint&) {},
      [](const progress_heard&) {},
      [self, run, id](const checkpoint_answer& x) {
        run->refusal.set_value(to_string(x.allocation) + " " + x.uuid + ": " + x.refused);
        self->send(caf::actor_cast<allocation_actor>(self->current_sender()),
                   task_exited{id, "a1", 3, 0, "exit code 3"});
      },
      [](const validation_answer&) {},
      [](const worker_ordered&) {},
      [](const pool_renewed&) { return pool_joined{}; },
      [](const service_ordered&) {},
    };
  });
}

allocation_owner spawn_owner_without_checkpoints(caf::actor_system& sys, std::shared_ptr<notebook_run> run) {
  return sys.spawn([run](allocation_owner::pointer self) -> allocation_owner::behavior_type {
    return {
      [run](const allocation_ended& x) { run->end.set_value(x); },
      [self](const task_checkpoint& x) {
        self->send(caf::actor_cast<allocation_actor>(self->current_sender()),
                   checkpoint_answer{x.origin.allocation, x.saved.uuid, "a notebook keeps no checkpoints"});
      },
      [](const progress_heard&) {},
    };
  });
}

TEST(AllocationActor, ServesAnOwnerThatIsNotATrialAndRefusesCheckpoints) {
  node_config config;
  caf::actor_system system{config};
  const allocation_id id{task_id::of(task_kind::notebook, 1, 2), {1}};
  auto run = std::make_shared<notebook_run>();
  auto stored = storage::make_memory_journal();
  auto reads = stored->reads();
  auto journal = spawn_journal(system, std::move(stored), {});
  auto pool = spawn_pool(system, "default");
  auto twin = spawn_twin_of_a_notebook(system, run, id);
  auto owner = spawn_owner_without_checkpoints(system, run);
  caf::anon_send(pool, twin, std::string("a1"));
  const allocation_placed placed{{}, {{"a1", {0}}}};
  caf::scoped_actor self{system};
  self->request(journal, std::chrono::seconds(60), append_facts{entity(id), 0, {encode(placed)}})
    .receive([](const committed&) {}, [](const caf::error& why) { ADD_FAILURE() << to_string(why); });
  spawn_allocation(system, {id}, {}, {owner, journal, pool}, {placed});

  auto refusal = run->refusal.get_future();
  ASSERT_EQ(refusal.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_EQ(refusal.get(), to_string(id) + " uuid-1: a notebook keeps no checkpoints");
  auto end = run->end.get_future();
  ASSERT_EQ(end.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  const auto ended = end.get();
  EXPECT_EQ(ended.run, run_id{1});
  EXPECT_EQ(ended.why, end::failed);
  EXPECT_EQ(ended.detail, "exit code 3");
  EXPECT_EQ(reads->facts_of(entity(id))->size(), 2u) << "placed, closed";
  std::vector<log_line> lines;
  for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
       lines.empty() && std::chrono::steady_clock::now() < until; std::this_thread::yield())
    lines = *reads->logs(id.task, 0, 10);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].text, "notebook " + to_string(id.task) +
                             " crashed: resources failed with non-zero exit code:  (exit code 3)");

  for (const auto& one : {caf::actor_cast<caf::actor>(pool), caf::actor_cast<caf::actor>(twin),
                          caf::actor_cast<caf::actor>(owner), caf::actor_cast<caf::actor>(journal)})
    caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
}

} // namespace
} // namespace troupe
