// The shell of an elastic pool: when the provider is called, what the pool is told, and what outlives it.

#include "actors/provider/provisioner_actor.hpp"

#include "stage.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

/// The calls that a provider got, and the instances that it has.
struct cloud {
  std::vector<std::string> calls;
  std::vector<cloud_instance> has;
  std::string fault; ///< error of every call; empty: every call succeeds
  std::size_t closed = 0;
};

class recording_provider final : public instance_provider {
public:
  explicit recording_provider(cloud& of) : of_(of) {}

  result<std::vector<cloud_instance>> list() override {
    of_.calls.push_back("list");
    if (!of_.fault.empty())
      return error{errc::io, of_.fault};
    return of_.has;
  }
  result<std::vector<std::string>> launch(int count) override {
    of_.calls.push_back("launch " + std::to_string(count));
    if (!of_.fault.empty())
      return error{errc::io, of_.fault};
    std::vector<std::string> ids;
    for (int i = 0; i < count; ++i) {
      ids.push_back("i" + std::to_string(of_.has.size() + 1));
      of_.has.push_back({ids.back(), cloud_instance::phase::running, ids.back(), time_point{1h}});
    }
    return ids;
  }
  result<void> terminate(const std::vector<std::string>& ids) override {
    for (const auto& id : ids) {
      of_.calls.push_back("terminate " + id);
      std::erase_if(of_.has, [&](const auto& x) { return x.id == id; });
    }
    return {};
  }
  void close() override { ++of_.closed; }

private:
  cloud& of_;
};

class ProvisionerActor : public Stage {
protected:
  void SetUp() override { pool = make_listener(); }
  void TearDown() override {
    Stage::TearDown();
    shell = nullptr;
  }
  void start(listener::answers answer, const std::vector<provider_fact>& past = {}) {
    journal = make_listener(std::move(answer));
    cluster = make_listener(
      [](const caf::message&) -> caf::result<caf::message> { return caf::make_message(command_result{}); });
    provisioner_setup setup;
    setup.pool = "gpu";
    setup.settings = settings;
    setup.journal = journal.as<journal_actor>();
    setup.pool_of = pool.as<pool_actor>();
    setup.make = [this](const std::string&, const value&) {
      ++made;
      return std::make_unique<recording_provider>(there);
    };
    setup.say = [this](const std::string& line) { said.push_back(line); };
    setup.cluster = cluster.as<cluster_actor>();
    shell = on_stage(spawn_provisioner(*system_, std::move(setup), past));
    run();
  }
  static caf::result<caf::message> commits(const caf::message&) { return caf::make_message(committed{}); }
  static caf::result<caf::message> refuses(const caf::message&) {
    return to_caf({errc::io, "the disk is broken"});
  }
  void demand(int runs, std::vector<pool_agent_state> agents = {}) {
    pool_demand x;
    if (runs > 0)
      x.runs.push_back({1, 0, runs});
    x.agents = std::move(agents);
    pool.send(shell, std::move(x));
    run();
  }
  /// The durable facts, in words.
  std::vector<std::string> facts() const {
    std::vector<std::string> all;
    for (const auto& x : journal.all<append_facts>())
      for (const auto& bytes : x.facts)
        all.push_back(std::get<instance_changed>(decode_as<provider_fact>(bytes).value()).what);
    return all;
  }
  bool lives() const { return config_.probes->find("provider/gpu").has_value(); }

  value settings{
    {"type", "local"}, {"instance_slots", 1}, {"max_instances", 2}, {"max_idle_agent_period", "5s"}};
  cloud there;
  int made = 0; ///< number of providers that were made
  std::vector<std::string> said;
  listener pool, journal, cluster;
  provisioner_actor shell;
};

TEST_F(ProvisionerActor, TellsItsPoolWhatItCanHaveBeforeItsProviderIsCalled) {
  start(commits);
  const auto told = pool.all<supply_told>();
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.front().type, "local");
  EXPECT_EQ(told.front().max_instances, 2);
  EXPECT_TRUE(pool.all<provisioner_actor>() == std::vector{shell});
  EXPECT_THAT(there.calls, ElementsAre("list"));
  EXPECT_EQ(made, 1);
}

TEST_F(ProvisionerActor, ItsCallsAreItsOwn) {
  start(commits);
  const auto calls = config_.probes->find("provider_calls/gpu");
  ASSERT_TRUE(calls);
  EXPECT_EQ(calls->what->owner, "provider/gpu");
}

TEST_F(ProvisionerActor, OneWhoseCallsDieEndsSoThatItIsMadeAgain) {
  start(commits);
  const auto calls = config_.probes->find("provider_calls/gpu");
  ASSERT_TRUE(calls);
  end_with_fault(caf::actor_cast<caf::actor>(calls->who.lock()), "a fault");
  run();
  EXPECT_FALSE(lives());
}

TEST_F(ProvisionerActor, LaunchesOnceTheOrderIsDurable) {
  start(commits);
  demand(1);
  EXPECT_THAT(there.calls, ElementsAre("list", "launch 1"));
  EXPECT_THAT(facts(), ElementsAre("ordered", "launched"));
  EXPECT_EQ(pool.all<supply_told>().back().instances, 1);
}

TEST_F(ProvisionerActor, LaunchesNothingWhereItsFactsAreRefusedAndEnds) {
  start(refuses);
  demand(1);
  EXPECT_THAT(there.calls, ElementsAre("list"));
  EXPECT_FALSE(lives()) << "its owner makes it again from the journal";
}

TEST_F(ProvisionerActor, WhatFailsIsSaidOnceAndTriedLaterEachTime) {
  start(commits);
  there.fault = "quota is used up";
  demand(1);
  EXPECT_THAT(facts(), ElementsAre("ordered", "failed"));
  EXPECT_EQ(pool.all<supply_told>().back().error, "quota is used up");
  const auto launches = [&] { return std::count(there.calls.begin(), there.calls.end(), "launch 1"); };
  pass(4s);
  EXPECT_EQ(launches(), 1);
  pass(2s);
  EXPECT_EQ(launches(), 2) << "5 s after the first failure";
  pass(8s);
  EXPECT_EQ(launches(), 2);
  pass(3s);
  EXPECT_EQ(launches(), 3) << "10 s after the second";
  EXPECT_EQ(std::count(said.begin(), said.end(), "provider of pool gpu: quota is used up"), 1);
}

TEST_F(ProvisionerActor, EndsWhatIsIdleAndHasItsAgentForgotten) {
  start(commits);
  demand(1);
  demand(0, {{"i1", true, true}});
  pass(4s);
  EXPECT_EQ(there.has.size(), 1u);
  pass(7s);
  EXPECT_THAT(there.has, IsEmpty());
  EXPECT_THAT(there.calls, testing::Contains("terminate i1"));
  pass(10s);
  const auto ordered = cluster.all<client_command>();
  ASSERT_FALSE(ordered.empty());
  EXPECT_EQ(ordered.back().name, "agent.remove");
  EXPECT_EQ(ordered.back().fields, (value{{"agent", "i1"}}));
}

TEST_F(ProvisionerActor, KnowsAfterARestartWhatItHas) {
  there.has.push_back({"i1", cloud_instance::phase::running, "i1", time_point{1h}});
  start(commits, {instance_changed{time_point{1h}, "gpu", "ordered", 1, 1, {}, "local"},
                  instance_changed{time_point{1h}, "gpu", "launched", 1, 1, {"i1"}, ""}});
  EXPECT_EQ(pool.all<supply_told>().back().instances, 1);
  demand(0, {{"i1", true, false}});
  EXPECT_THAT(there.calls, ElementsAre("list"));
  demand(1, {{"i1", true, false}});
  EXPECT_THAT(there.calls, ElementsAre("list", "launch 1"));
}

TEST_F(ProvisionerActor, APoolThatWasMadeAgainHearsOfIt) {
  start(commits);
  auto again = make_listener();
  again.send(shell, pool_renewed{"gpu", again.as<pool_actor>()});
  run();
  EXPECT_TRUE(again.all<provisioner_actor>() == std::vector{shell});
  EXPECT_EQ(again.all<supply_told>().size(), 1u);
}

TEST_F(ProvisionerActor, OneThatRetiresEndsOnceNothingIsLeft) {
  start(commits);
  demand(1);
  demand(0, {{"i1", true, false}});
  auto retired = value::object(); // as if the cluster file named no provider any more
  retired["former"] = value::array({settings});
  pool.send(shell, provider_configured{retired});
  run();
  EXPECT_EQ(there.has.size(), 1u) << "it runs something";
  EXPECT_TRUE(lives());
  demand(0, {{"i1", true, true}});
  pass(20s);
  EXPECT_THAT(there.has, IsEmpty());
  EXPECT_FALSE(lives());
}

TEST_F(ProvisionerActor, ANodeThatEndsClosesItsProvider) {
  start(commits);
  caf::anon_send_exit(shell, caf::exit_reason::user_shutdown);
  run();
  EXPECT_EQ(there.closed, 1u);
}

} // namespace
} // namespace troupe
