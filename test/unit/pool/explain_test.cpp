// Each reason that a pool gives for a run that waits.

#include "actors/pool/pool.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{std::chrono::hours(1)};

allocation_id run(std::uint64_t trial) { return {trial_id{trial}, {1}}; }

class explained_pool {
public:
  explicit explained_pool(pool_settings settings = {})
      : machine_(pool::phase::placing, std::move(settings)) {}

  explained_pool& up(const std::string& name, int slots, const std::string& rack = "", int aux = -1) {
    agent_up ev{name, slots, {}, {}};
    if (!rack.empty())
      ev.traits.labels["rack"] = rack;
    ev.traits.aux = aux;
    return tell(ev);
  }
  explained_pool& ask(std::uint64_t trial, int slots, int priority = 42,
                      std::function<void(run_terms&)> set = {}) {
    slots_requested ev{run(trial), slots};
    ev.run.job.job = {trial};
    ev.run.job.submitted = t0 + std::chrono::seconds(trial);
    ev.run.job.priority = priority;
    ev.run.job.user = "ada";
    ev.run.started = now;
    if (set)
      set(ev.run);
    return tell(ev);
  }
  explained_pool& tell(const pool_event& ev) {
    static_cast<void>(machine_.apply(ev, now));
    return *this;
  }
  explained_pool& wait(duration time) {
    now += time;
    return tell(time_passed{});
  }
  value why(std::uint64_t trial) { return machine_.explain(run(trial), now); }
  std::string code(std::uint64_t trial) {
    const auto said = why(trial);
    return said.is_null() ? "" : said["reason"]["code"].get<std::string>();
  }

  time_point now = t0;

private:
  pool machine_;
};

pool_settings with(std::function<void(pool_settings&)> set) {
  pool_settings s;
  set(s);
  return s;
}

TEST(PoolExplain, GivesTheFirstReasonThatHolds) {
  EXPECT_EQ(explained_pool().code(1), "") << "it does not know it";
  EXPECT_EQ(explained_pool().ask(1, 1).code(1), "no_agents");
  EXPECT_EQ(explained_pool().up("a", 1).ask(1, 1).code(1), "running");
  EXPECT_EQ(explained_pool().up("a", 2).up("b", 2).ask(1, 5).code(1), "too_large");
  const auto single = [](run_terms& r) { r.rules.single_node = true; };
  EXPECT_EQ(explained_pool().up("a", 2).up("b", 2).ask(1, 3, 42, single).code(1), "single_node");
  const auto rack = [](run_terms& r) { r.rules.labels["rack"] = {"x"}; };
  EXPECT_EQ(explained_pool().up("a", 2, "y").ask(1, 1, 42, rack).code(1), "constraints");
  EXPECT_EQ(explained_pool().up("a", 2).tell(agent_drain{"a"}).ask(1, 1).code(1), "drained");
  const auto capped = [](run_terms& r) { r.job.max_slots = 1; };
  EXPECT_EQ(explained_pool().up("a", 4).ask(1, 2, 42, capped).code(1), "max_slots");
  EXPECT_EQ(explained_pool(with([](auto& s) {
              s.quotas.push_back({"*", "", 1});
            }))
              .up("a", 4)
              .ask(1, 2)
              .code(1),
            "quota");
  EXPECT_EQ(explained_pool(with([](auto& s) { s.max_slots = 1; })).up("a", 4).ask(1, 2).code(1),
            "pool_max_slots");
  EXPECT_EQ(explained_pool().up("a", 1, "", 0).ask(1, 0).code(1), "aux");
  EXPECT_EQ(explained_pool().up("a", 1).ask(1, 1).ask(2, 1).code(2), "busy");
  EXPECT_EQ(explained_pool().up("a", 1).ask(1, 1).ask(2, 1).ask(3, 1).code(3), "behind");
}

TEST(PoolExplain, TellsThatVictimsSave) {
  explained_pool p(with([](auto& s) { s.preemption = true; }));
  p.up("a", 2).ask(1, 2, 50).ask(2, 1, 10);
  EXPECT_EQ(p.code(1), "stopping");
  EXPECT_EQ(p.code(2), "preempting");
  p.wait(10s);
  const auto frees = p.why(2)["wouldFree"];
  ASSERT_EQ(frees.size(), 1u);
  EXPECT_EQ(frees[0]["how"], "preempted");
  EXPECT_EQ(frees[0]["costSeconds"], 20) << "slots times seconds";
}

TEST(PoolExplain, TellsThatWhatIsFreeIsKeptForAnother) {
  explained_pool p;
  p.up("a", 2).ask(1, 1).ask(2, 2).ask(3, 1); // the third passes the second
  p.wait(60s);
  EXPECT_EQ(p.code(2), "busy");
  EXPECT_TRUE(p.why(2)["reservation"].is_object());
  p.tell(slots_released{run(3)}).ask(4, 1);
  EXPECT_EQ(p.code(4), "reserved");
  EXPECT_EQ(p.why(4)["position"], 2);
}

TEST(PoolExplain, SaysOfEachAgentWhatItLacks) {
  explained_pool p;
  p.up("gpu01", 4, "a1").up("gpu02", 2, "a1").up("gpu03", 4, "b2");
  p.ask(1, 1, 42, [](run_terms& r) { r.rules.agents = {"gpu01"}; });
  p.ask(2, 4, 42, [](run_terms& r) {
    r.rules.labels["rack"] = {"a1"};
    r.rules.single_node = true;
  });
  const auto agents = p.why(2)["agents"];
  ASSERT_EQ(agents.size(), 3u);
  EXPECT_EQ(agents[0]["free"], 3);
  EXPECT_EQ(agents[0]["why"], "has 3 of 4 slots free");
  EXPECT_EQ(agents[1]["why"], "has 2 slots in all");
  EXPECT_EQ(agents[2]["why"], "lacks rack=a1, has rack=b2");
  EXPECT_EQ(agents[2]["fits"], false);
}

} // namespace
} // namespace troupe
