// The shell of a task that is not a trial: what it asks for, and when.

#include "actors/shells/obey.hpp"
#include "actors/task/task_actor.hpp"
#include "storage/stored_journal.hpp"

#include "stage.hpp"

namespace troupe {
namespace {

using testing::ElementsAre;

const task_id a_command = task_id::of(task_kind::command, 1, 2);
const task_id a_program = task_id::of(task_kind::generic, 3, 4);
const task_id a_notebook = task_id::of(task_kind::notebook, 5, 6);

class TaskActor : public Stage {
protected:
  void SetUp() override {
    cluster = make_listener();
    pool = make_listener();
    other = make_listener();
    auto made = storage::make_journal(storage::make_memory_store(), {});
    ASSERT_TRUE(made);
    kept = std::move(*made);
  }
  void TearDown() override {
    Stage::TearDown();
    task = nullptr;
  }
  void start(task_id id, listener::answers answer, const std::vector<task_fact>& more = {}) {
    journal = make_listener(std::move(answer));
    task_created made;
    made.id = id;
    made.owner = "ada";
    made.config = {
      {"entrypoint", {"sh", "-c", "true"}}, {"resources", {{"slots", 1}}}, {"idle_timeout", "60s"}};
    auto settings = task_settings_of(made, "lab");
    ASSERT_TRUE(settings) << settings.error().what;
    auto past = task::birth(made);
    past.insert(past.end(), more.begin(), more.end());
    task = on_stage(spawn_task_actor(
      *system_, std::move(*settings),
      {cluster.as<cluster_actor>(),
       journal.as<journal_actor>(),
       known_pools({{"gpu", pool.as<pool_actor>()}, {"other", other.as<pool_actor>()}}, "gpu"),
       kept->reads(),
       {}},
      past));
    run();
  }
  static caf::result<caf::message> commits(const caf::message&) { return caf::make_message(committed{}); }
  static caf::result<caf::message> refuses(const caf::message&) {
    return to_caf({errc::io, "the disk is broken"});
  }
  template <class Order>
  std::string ask(task_id id, Order order) {
    std::string said = "nothing";
    caf::scoped_actor self{*system_};
    auto got = self->request(task, caf::infinite, task_call_of({id, {}}, std::move(order)));
    run();
    got.receive([&](const command_result& x) { said = x.got ? "done" : x.got.error().what; },
                [&](const caf::error& why) { said = from_caf(why).what; });
    return said;
  }
  std::vector<std::string> asked() const { // allocations that asked for slots
    std::vector<std::string> ids;
    for (const auto& x : pool.all<slots_requested>())
      ids.push_back(to_string(x.allocation));
    return ids;
  }
  std::vector<std::string> facts(task_id id) const { // tags of the facts that were appended to its stream
    std::vector<std::string> tags;
    for (const auto& x : journal.all<append_facts>())
      if (x.entity == entity(id))
        for (const auto& bytes : x.facts)
          if (auto fact = decode(bytes))
            tags.push_back(std::visit([](const auto& one) -> std::string { return one.tag; }, *fact));
    return tags;
  }

  listener cluster, pool, other, journal;
  std::unique_ptr<storage::journal> kept; ///< journal that an allocation reads at its recovery; it is empty
  task_actor task;
};

TEST_F(TaskActor, AsksForSlotsAsItWasBornWithItsRun) {
  start(a_command, commits);
  EXPECT_THAT(asked(), ElementsAre(to_string(allocation_id{a_command, {1}})));
  EXPECT_TRUE(facts(a_command).empty()) << "the cluster has committed its birth";
}

TEST_F(TaskActor, OneThatIsKilledBeforeItRanAnswersOnceItIsDurableAndTellsTheCluster) {
  start(a_command, commits);
  EXPECT_EQ(ask(a_command, commands::task_stop{"killed by eve"}), "done");
  EXPECT_EQ(facts(a_command).front(), "task_stop_ordered");
  EXPECT_EQ(facts(a_command).back(), "task_ended");
  const auto told = cluster.all<task_finished>();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].id, a_command);
}

TEST_F(TaskActor, OfWhatIsNotDurableNothingIsSaid) {
  start(a_command, refuses);
  EXPECT_NE(ask(a_command, commands::task_stop{"killed by eve"}), "done");
  EXPECT_TRUE(cluster.all<task_finished>().empty());
}

TEST_F(TaskActor, OnlyGenericTasksArePausedAndGoOnWithANewRun) {
  start(a_command, commits);
  EXPECT_NE(ask(a_command, commands::task_hold{true, "eve"}), "done");
  start(a_program, commits);
  EXPECT_EQ(ask(a_program, commands::task_hold{true, "eve"}), "done");
  EXPECT_NE(ask(a_program, commands::task_hold{true, "eve"}), "done") << "it is paused";
  EXPECT_EQ(ask(a_program, commands::task_hold{false, "eve"}), "done");
  EXPECT_EQ(asked().back(), to_string(allocation_id{a_program, {2}}));
}

TEST_F(TaskActor, AMatchOfItsLogPoliciesIsDurableAndKeepsItsNextRunAway) {
  start(a_program, commits);
  const commands::log_match match{{1}, "a1", "ecc", "E.C", "an ECC fault", true, false};
  EXPECT_EQ(ask(a_program, match), "done");
  EXPECT_THAT(facts(a_program), ElementsAre("log_policy_matched"));
  EXPECT_EQ(ask(a_program, match), "done");
  EXPECT_THAT(facts(a_program), ElementsAre("log_policy_matched")) << "once on each agent";
  std::vector<std::string> said;
  for (const auto& x : journal.all<append_log>())
    for (const auto& line : x.lines)
      said.push_back(line.text);
  EXPECT_THAT(said,
              ElementsAre("(log '\"an ECC fault\"' matched regex E.C) therefore will not schedule on a1"));
  EXPECT_EQ(ask(a_program, commands::task_hold{true, "eve"}), "done");
  EXPECT_EQ(ask(a_program, commands::task_hold{false, "eve"}), "done");
  const auto asked_for = pool.all<slots_requested>();
  EXPECT_TRUE(asked_for.front().run.rules.not_agents.empty());
  EXPECT_THAT(asked_for.back().run.rules.not_agents, ElementsAre("a1"));
}

TEST_F(TaskActor, ANotebookThatNobodyUsesEndsAndAUseKeepsIt) {
  // For two minutes after a start no notebook counts as idle.
  start(a_notebook, commits, {task_ready{{}, {1}}});
  pass(110s);
  EXPECT_EQ(ask(a_notebook, commands::task_use{to_string(a_notebook)}), "done");
  pass(50s);
  EXPECT_THAT(facts(a_notebook), ElementsAre("task_active")) << "50 s without a use are not too many";
  pass(20s);
  EXPECT_EQ(facts(a_notebook).back(), "task_ended");
  EXPECT_EQ(cluster.all<task_finished>().size(), 1u);
}

TEST_F(TaskActor, OtherKindsAreNeverIdle) {
  start(a_command, commits, {task_ready{{}, {1}}});
  pass(300s);
  EXPECT_TRUE(facts(a_command).empty());
}

/// Otherwise its own pool would not hear that the run has got slots elsewhere.
TEST_F(TaskActor, OneThatFallsBackIsAGuestInTheOtherPool) {
  start(a_command, commits);
  const auto run_of = config_.probes->find(entity(allocation_id{a_command, {1}}));
  ASSERT_TRUE(run_of);
  const auto allocation = caf::actor_cast<allocation_actor>(run_of->who.lock());
  pool.send(allocation, fall_back{{a_command, {1}}, {"other"}});
  run();
  const auto asked = other.all<slots_requested>();
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].home, "gpu");
}

TEST_F(TaskActor, IsTheClustersAndItsRunIsItsOwn) {
  start(a_command, commits);
  const auto owner_of = [this](const std::string& name) {
    const auto entry = config_.probes->find(name);
    return entry ? entry->what->owner : "nobody";
  };
  EXPECT_EQ(owner_of(entity(a_command)), "cluster");
  EXPECT_EQ(owner_of(entity(allocation_id{a_command, {1}})), entity(a_command));
}

TEST_F(TaskActor, OneThatHadBegunToStopEndsAfterARecovery) {
  start(a_command, commits, {task_stop_ordered{{}, "killed by eve"}});
  EXPECT_EQ(facts(a_command).back(), "task_ended");
  EXPECT_EQ(cluster.all<task_finished>().size(), 1u);
}

} // namespace
} // namespace troupe
