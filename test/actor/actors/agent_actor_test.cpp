// The shell of an agent between its master and its children: when it calls the master, whom it tells first,
// and what it does when a child dies.

#include "actors/agent/agent_actor.hpp"
#include "actors/allocation/task_launch.hpp"
#include "workers/worker_messages.hpp"

#include "stage.hpp"

#include <cstdlib>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class AgentActor : public Stage {
protected:
  void SetUp() override {
    char pattern[] = "/tmp/troupe-agent-XXXXXX";
    folder = ::mkdtemp(pattern);
    twin = make_listener();
    journal = make_listener();
    master = make_listener([this](const caf::message& asked) -> caf::result<caf::message> {
      if (!asked.match_element<register_agent>(0))
        return caf::message{};
      if (refusal)
        return to_caf(*refusal);
      registered yes;
      yes.epoch = ++epoch;
      yes.twin = twin.as<twin_actor>();
      yes.journal = journal.as<journal_actor>();
      return caf::make_message(std::move(yes));
    });
    agent_setup setup;
    setup.name = "a";
    setup.slots = 2;
    setup.dir = folder;
    setup.look_every = 0ms;
    setup.on_fatal = [this](const error& why) { fatal.push_back(why.what); };
    setup.say = [this](const std::string& line) { said.push_back(line); };
    setup.children = {
      [this](auto&, const auto&, auto) -> result<harness_gateway> {
        gateways.push_back(make_listener([this](const caf::message& x) -> caf::result<caf::message> {
          if (x.match_element<harness_task>(0))
            told.push_back("gateway");
          return caf::message{};
        }));
        return harness_gateway{gateways.back().as<harness_actor>(), "tcp://127.0.0.1:1"};
      },
      [this](auto&, auto) {
        pumps.push_back(make_listener());
        return pumps.back().as<log_pump_actor>();
      },
      [this](auto&, auto, auto) {
        runtimes.push_back(make_listener([this](const caf::message& x) -> caf::result<caf::message> {
          if (x.match_element<launch_order>(0))
            told.push_back("runtime");
          return caf::message{};
        }));
        return runtimes.back().as<worker_runtime_actor>();
      }};
    agent = on_stage(spawn_agent(*system_, setup, [this](const agent_actor& self) {
      ++dials;
      caf::anon_send(self, master_found{master.as<caf::actor>(), "", false});
    }));
    run();
  }
  void TearDown() override {
    Stage::TearDown();
    for (auto* all : {&gateways, &pumps, &runtimes})
      all->clear();
    agent = nullptr;
    run();
    std::filesystem::remove_all(folder);
  }

  void news(task_change change, task_report task = {}) {
    task_news x;
    x.change = change;
    x.task = std::move(task);
    x.spool = folder / "spool";
    caf::anon_send(agent, std::move(x));
    run();
  }
  void order_start(allocation_id task, int slot = 0) {
    task_launch launch;
    launch.entrypoint = {"true"};
    launch.token = "a token";
    link_order order{epoch};
    order.start = {{task, {slot}, encode(launch)}};
    caf::anon_send(agent, std::move(order));
    run();
  }
  std::vector<task_exited> exits() const {
    std::vector<task_exited> all;
    for (const auto& x : twin.all<link_report>())
      all.insert(all.end(), x.exited.begin(), x.exited.end());
    return all;
  }

  const allocation_id id{{1}, {1}};
  std::filesystem::path folder;
  listener master, twin, journal;
  std::vector<listener> gateways, pumps, runtimes; ///< all lives of each child, the newest last
  std::vector<std::string> told;                   ///< names of those who were told of a task, in order
  std::vector<std::string> fatal, said;
  std::optional<error> refusal;
  std::uint64_t epoch = 0;
  int dials = 0;
  agent_actor agent;
};

TEST_F(AgentActor, CallsItsMasterOnlyOnceItKnowsWhatRunsHere) {
  EXPECT_EQ(dials, 0);
  ASSERT_EQ(runtimes.size(), 1u);
  EXPECT_EQ(runtimes[0].all<adopt_order>().size(), 1u);
  news(task_change::adopted, {id, {1}, false, 7});
  EXPECT_EQ(dials, 0);
  news(task_change::all_adopted);
  EXPECT_EQ(dials, 1);
  const auto calls = master.all<register_agent>();
  ASSERT_EQ(calls.size(), 1u);
  ASSERT_EQ(calls[0].inventory.size(), 1u);
  EXPECT_EQ(calls[0].inventory[0].allocation, id);
  EXPECT_EQ(calls[0].inventory[0].pid, 7);
  EXPECT_GT(calls[0].life, 0u);
}

TEST_F(AgentActor, TheGatewayHearsOfATaskBeforeItIsStarted) {
  news(task_change::all_adopted);
  order_start(id);
  EXPECT_THAT(told, ElementsAre("gateway", "runtime"));
  ASSERT_EQ(gateways[0].all<harness_task>().size(), 1u);
  EXPECT_EQ(gateways[0].all<harness_task>()[0].token, "a token");
  EXPECT_TRUE(gateways[0].all<harness_task>()[0].begins);
}

TEST_F(AgentActor, TellsAnExitOnceOutputAndReportsAreDurable) {
  news(task_change::all_adopted);
  order_start(id);
  news(task_change::launched, {id, {0}, false, 7});
  news(task_change::ended, {id, {0}, true, 7, 3});
  EXPECT_EQ(pumps[0].all<pump_end>().size(), 1u);
  EXPECT_EQ(gateways[0].all<harness_gone>().size(), 1u);
  EXPECT_TRUE(exits().empty());
  caf::anon_send(agent, pumped{id});
  run();
  EXPECT_TRUE(exits().empty()) << "its reports are on their way";
  caf::anon_send(agent, harness_drained{id, true});
  run();
  ASSERT_EQ(exits().size(), 1u);
  EXPECT_EQ(exits()[0].exit_code, 3);
  EXPECT_TRUE(exits()[0].silent);
}

TEST_F(AgentActor, AsksAMasterThatIsBusyAgain) {
  refusal = error{errc::busy, "the master still starts"};
  news(task_change::all_adopted);
  EXPECT_EQ(master.all<register_agent>().size(), 1u);
  refusal.reset();
  pass(1s);
  EXPECT_EQ(master.all<register_agent>().size(), 2u);
  EXPECT_TRUE(fatal.empty());
}

TEST_F(AgentActor, EndsWhereItsMasterDeniesIt) {
  refusal = error{errc::denied, "the join token is not this cluster's"};
  news(task_change::all_adopted);
  pass(10s);
  EXPECT_EQ(master.all<register_agent>().size(), 1u);
  EXPECT_THAT(fatal, ElementsAre("the join token is not this cluster's"));
}

TEST_F(AgentActor, SaysOnceThatItIsRefusedAndGoesOnAsking) {
  news(task_change::all_adopted);
  const auto twin_is_gone = [&](std::optional<error> why) {
    refusal = std::move(why);
    twin.die();
    twin = make_listener();
    pass(20s);
  };
  twin_is_gone(error{errc::invalid, "there is no pool 'x' in this cluster"});
  EXPECT_GT(master.all<register_agent>().size(), 2u);
  const auto no_pool =
    "the master refuses this agent, which goes on asking: there is no pool 'x' in this cluster";
  EXPECT_THAT(said, ElementsAre(no_pool));
  refusal.reset();
  pass(20s);
  twin_is_gone(error{errc::busy, "the master still starts"});
  EXPECT_EQ(said.size(), 1u) << "that is no refusal";
  refusal = error{errc::invalid, "there is no pool 'x' in this cluster"};
  pass(20s);
  EXPECT_THAT(said, ElementsAre(no_pool, no_pool)) << "it was registered in between";
  EXPECT_TRUE(fatal.empty());
}

TEST_F(AgentActor, CallsAgainWhereTheLinkIsLost) {
  news(task_change::all_adopted);
  twin.die();
  twin = make_listener();
  pass(2s);
  EXPECT_EQ(master.all<register_agent>().size(), 2u);
  ASSERT_FALSE(pumps[0].all<journal_actor>().empty());
  EXPECT_EQ(pumps[0].all<journal_actor>().back(), journal.as<journal_actor>());
}

TEST_F(AgentActor, WhatADeadRuntimeHadNotBegunIsLostAndTheRestGoesOn) {
  news(task_change::all_adopted);
  const allocation_id never{{2}, {1}};
  order_start(id);
  news(task_change::launched, {id, {0}, false, 7});
  order_start(never, 1);
  runtimes[0].die();
  run();
  ASSERT_EQ(runtimes.size(), 2u);
  EXPECT_EQ(runtimes[1].all<adopt_order>().size(), 1u);
  news(task_change::adopted, {id, {0}, false, 7});
  news(task_change::all_adopted);
  caf::anon_send(agent, pumped{never});
  caf::anon_send(agent, harness_drained{never});
  run();
  ASSERT_EQ(exits().size(), 1u);
  EXPECT_EQ(exits()[0].allocation, never);
  EXPECT_FALSE(exits()[0].certain) << "nobody saw how it ended";
  EXPECT_EQ(dials, 1) << "the master need not know";
}

TEST_F(AgentActor, ANewGatewayIsToldWhichTasksRun) {
  news(task_change::all_adopted);
  order_start(id);
  gateways[0].die();
  run();
  ASSERT_EQ(gateways.size(), 2u);
  ASSERT_EQ(gateways[1].all<harness_task>().size(), 1u);
  EXPECT_EQ(gateways[1].all<harness_task>()[0].allocation, id);
  EXPECT_FALSE(gateways[1].all<harness_task>()[0].begins) << "it may have said something to the dead one";
  EXPECT_EQ(gateways[1].all<journal_actor>().size(), 1u);
}

TEST_F(AgentActor, AStandInThatDiesIsMadeAgainWithTheNextWordOfItsWorker) {
  news(task_change::all_adopted);
  order_start(id);
  news(task_change::launched, {id, {0}, false, 7});
  const auto word = [this] {
    caf::anon_send(agent,
                   worker_frame{id, 0, "p", workers::worker_protocol,
                                workers::encode_worker(workers::worker_word{workers::worker_status{}})});
    run();
    return config_.probes->find("worker/1.1");
  };
  for (int n = 0; n < 6; ++n) {
    const auto stand_in = word();
    ASSERT_TRUE(stand_in) << "after " << n << " deaths";
    EXPECT_EQ(stand_in->what->owner, "agent_node");
    end_with_fault(caf::actor_cast<caf::actor>(stand_in->who.lock()), "a fault");
    run();
    EXPECT_FALSE(config_.probes->find("worker/1.1"));
  }
  std::vector<std::string> failed;
  for (const auto& x : twin.all<link_report>())
    for (const auto& one : x.failed)
      failed.push_back(one.detail);
  ASSERT_EQ(failed.size(), 1u) << "the sixth time within a minute the rank fails";
  EXPECT_THAT(failed[0], testing::HasSubstr("died again and again: a fault"));
}

TEST_F(AgentActor, AChildThatDiesAgainAndAgainIsItsEnd) {
  news(task_change::all_adopted);
  for (int n = 0; n < 6; ++n) {
    EXPECT_TRUE(fatal.empty());
    pumps.back().die();
    run();
  }
  ASSERT_EQ(fatal.size(), 1u);
  EXPECT_THAT(fatal[0], testing::HasSubstr("the log pump of agent a died again and again"));
}

TEST(ErrorOfALink, ASlowHandshakeIsTriedAgainAsAMasterThatIsAway) {
  EXPECT_EQ(from_caf(caf::make_error(caf::sec::connection_timeout)).code, errc::unreachable);
  EXPECT_EQ(from_caf(caf::make_error(caf::sec::request_timeout)).code, errc::timeout);
  EXPECT_EQ(from_caf(to_caf({errc::unsupported, "another version"})).code, errc::unsupported);
}

} // namespace
} // namespace troupe
