// Tests each reason that a pool gives for a run that waits.

#include "actors/pool/pool.hpp"
#include "test/unit/pool/supply.hpp"

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
  value why(std::uint64_t trial, const std::vector<run_outlook>& outlooks) {
    return machine_.explain(run(trial), outlooks, now);
  }
  value details() { return machine_.details(); }
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

/// The reason with its code, and the advice.
std::string said(explained_pool& p, std::uint64_t trial) {
  const auto why = p.why(trial, {});
  return why["reason"]["code"].get<std::string>() + ": " + why["reason"]["text"].get<std::string>() + " > " +
         why["advice"].get<std::string>();
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

TEST(PoolExplain, SaysThatWholeAgentsDoNotMakeUpAGang) {
  explained_pool p(with([](auto& s) { s.gangs = gang_rule::whole; }));
  const auto why = p.up("a", 4).up("b", 4).ask(1, 6).ask(2, 9).why(1)["reason"];
  EXPECT_EQ(why["code"], "too_large");
  EXPECT_EQ(why["text"], "it needs 6 slots, and no whole agents of the pool make up as many");
  EXPECT_EQ(p.why(2)["reason"]["text"], "it needs 9 slots, and the pool has 8");
  explained_pool any;
  any.up("a", 4).ask(1, 6).ask(2, 6, 42, [](run_terms& r) { r.rules.single_node = true; }).up("b", 2);
  any.ask(3, 9);
  EXPECT_EQ(any.why(3, {})["advice"], "lower resources.slots_per_trial, or start more or larger agents");
  EXPECT_EQ(any.why(2, {})["advice"], "lower resources.slots_per_trial, or start larger agents");
}

TEST(PoolExplain, NamesThoseWhoHoldWhatALimitLeaves) {
  explained_pool p(with([](auto& s) { s.quotas.push_back({"ada", "", 2}); }));
  const auto bob = [](run_terms& r) { r.job.user = "bob"; };
  const auto on_b = [](run_terms& r) { r.rules.agents = {"b"}; };
  p.up("a", 2).up("b", 2).ask(1, 1, 42, bob).ask(2, 2).ask(3, 1, 42, on_b);
  EXPECT_EQ(p.code(3), "quota");
  const auto frees = p.why(3)["wouldFree"];
  ASSERT_EQ(frees.size(), 1u) << frees.dump();
  EXPECT_EQ(frees[0]["allocation"], "2.1") << "not bob's, whose slots are not ada's";
}

TEST(PoolExplain, NamesNobodyWhereNoEndCouldHelp) {
  explained_pool p(with([](auto& s) {
    s.quotas = {{"ada", "", 2}};
    s.max_slots = 3;
  }));
  const auto of = [](const char* user) { return [user](run_terms& r) { r.job.user = user; }; };
  p.up("a", 4).ask(1, 1, 42, of("bob")).ask(2, 9, 42, of("bob")).ask(3, 3).ask(4, 4, 42, of("bob"));
  EXPECT_EQ(p.code(2), "too_large");
  EXPECT_TRUE(p.why(2)["wouldFree"].empty()) << p.why(2).dump();
  const auto quota = p.why(3);
  EXPECT_EQ(quota["reason"]["text"], "it needs 3 slots, and the quota of user ada is 2");
  EXPECT_TRUE(quota["wouldFree"].empty()) << quota.dump();
  const auto all = p.why(4);
  EXPECT_EQ(all["reason"]["text"], "it needs 4 slots, and the max_slots of the pool is 3");
  EXPECT_TRUE(all["wouldFree"].empty()) << all.dump();
}

TEST(PoolExplain, TellsWhatAQuotaIsUsedFor) {
  explained_pool p(with([](auto& s) { s.quotas = {{"*", "", 3}, {"bob", "", 9}}; }));
  const auto of = [](const char* user) { return [user](run_terms& r) { r.job.user = user; }; };
  p.up("a", 8).ask(1, 1).ask(2, 2, 42, of("eve")).ask(3, 4, 42, of("bob"));
  const auto quotas = p.details()["quotas"];
  EXPECT_EQ(quotas[0]["used"], 2) << "eve's, who has more than ada";
  EXPECT_EQ(quotas[1]["used"], 4);
}

TEST(PoolExplain, ListsNoJobsThatWaitAtHome) {
  explained_pool p;
  p.up("a", 1).ask(1, 1);
  slots_requested guest{run(2), 1};
  guest.run.job.job = {2};
  guest.home = "home";
  p.tell(guest);
  ASSERT_EQ(p.details()["jobs"].size(), 1u);
  EXPECT_EQ(p.details()["jobs"][0]["experiment"], 1);
  p.tell(slots_released{run(1), ""});
  ASSERT_EQ(p.details()["jobs"].size(), 1u) << "it runs here now";
  EXPECT_EQ(p.details()["jobs"][0]["experiment"], 2);
}

TEST(PoolExplain, ForgetsARunThatAnInventoryHasNamedOnceItsAgentLetsGoOfIt) {
  explained_pool p;
  p.tell(agent_up{"a", 2, {{to_string(run(7)), {0}}}, {}});
  EXPECT_EQ(p.details()["jobs"].size(), 1u);
  p.tell(slots_released{run(7), "a"});
  EXPECT_EQ(p.details()["jobs"].size(), 0u);
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
  EXPECT_EQ(frees[0]["stopping"], true);
  EXPECT_EQ(frees[0]["preemptedFor"], "2.1");
  const auto victim = p.why(1, {});
  EXPECT_EQ(victim["reason"]["text"], "it was preempted, and saves; its slots go to trial 2");
  EXPECT_EQ(victim["behind"], "2.1");
  p.tell(slots_released{run(2)});
  EXPECT_EQ(p.why(1)["reason"]["text"], "it was preempted, and saves") << "the one it was for is gone";
  EXPECT_TRUE(p.why(1, {})["behind"].is_null());
  p.ask(3, 1, 50);
  EXPECT_EQ(p.why(3)["wouldFree"][0]["preemptedFor"], "3.1") << "what stops already counts as coming";
}

TEST(PoolExplain, TellsThatWhatIsDisabledIsKilled) {
  explained_pool p;
  p.up("a", 2).ask(1, 1).ask(2, 1).up("b", 1).ask(3, 1);
  p.tell(agent_drain{"a", false, {0}, false, {0}, "", "ada"}).tell(agent_drain{"b", true, {}, true});
  EXPECT_EQ(p.why(1)["reason"], (value{{"code", "stopping"},
                                       {"text", "slot 0 of agent a was disabled by ada, so it is killed"}}));
  EXPECT_EQ(p.code(2), "running");
  EXPECT_EQ(p.why(3)["reason"]["text"], "agent b was disabled, so it is killed") << "nobody knows by whom";
  p.tell(agent_drain{"b", false});
  EXPECT_EQ(p.why(3)["reason"]["text"], "its agent or its slots were disabled, so it is killed")
    << "the order to kill it is not taken back";
}

TEST(PoolExplain, TellsThatAVictimWhoseAgentIsDisabledIsKilledToo) {
  explained_pool p(with([](auto& s) { s.preemption = true; }));
  p.up("a", 2).ask(1, 2, 50).ask(2, 1, 10);
  EXPECT_EQ(p.why(1)["reason"]["text"], "it was preempted, and saves; its slots go to trial 2");
  p.tell(agent_drain{"a", true, {}, true});
  EXPECT_EQ(std::string(p.why(1)["reason"]["text"]).find("agent a was disabled, so it is killed"), 0u);
}

TEST(PoolExplain, TellsThatWhatIsFreeIsKeptForAnother) {
  explained_pool p;
  p.up("a", 2).ask(1, 1).ask(2, 2).ask(3, 1); // run 3 passes run 2
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

// ---- explanations with the outlook of the runs that hold slots

run_outlook outlook(std::uint64_t trial, double seconds) {
  return {run(trial), seconds, "history", t0 + 10s};
}

/// A holder's slots go to the next run of its experiment, which was submitted earlier and waits for
/// max_slots.
TEST(PoolExplain, GivesNoStartWhereOlderRunsBelowALimitTakeWhatBecomesFree) {
  explained_pool p;
  const auto of_first = [](run_terms& r) {
    r.job.job = {1};
    r.job.submitted = t0;
    r.job.max_slots = 2;
  };
  p.up("a", 3).ask(1, 1, 42, of_first).ask(2, 1, 42, of_first).ask(3, 1, 42, of_first).ask(4, 2);
  EXPECT_EQ(p.code(3), "max_slots");
  EXPECT_TRUE(p.why(4, {outlook(1, 30), outlook(2, 90)})["estimate"].is_null());
  p.tell(slots_released{run(3), ""});
  EXPECT_EQ(p.why(4, {outlook(1, 30), outlook(2, 90)})["estimate"]["seconds"], 30);
}

/// In a pool of turns the older job, which asks again, has as little as the newcomer once its gang has ended.
TEST(PoolExplain, GivesNoStartWhereTheOlderJobHasItsTurnOnceMore) {
  pool_settings turns;
  turns.scheduler = scheduler_kind::round_robin;
  explained_pool p(turns);
  const auto of_first = [](run_terms& r) {
    r.job.job = {1};
    r.job.submitted = t0;
  };
  p.up("a", 4).ask(1, 4, 42, of_first).wait(30s).ask(3, 2);
  EXPECT_EQ(p.why(3, {outlook(1, 40)})["estimate"]["seconds"], 40) << "nobody else waits";
  p.ask(2, 4, 42, of_first);
  auto said = p.why(3, {outlook(1, 40)});
  EXPECT_EQ(said["position"], 1);
  EXPECT_TRUE(said["estimate"].is_null());
  EXPECT_EQ(said["also"].back()["code"], "behind");
  EXPECT_EQ(said["also"].back()["text"],
            "once these slots become free it is the turn of trial 2: its job has "
            "fewer slots then, or as many and is older");
  p.wait(40s).tell(slots_released{run(1), ""});
  EXPECT_EQ(p.code(2), "running");
  said = p.why(3, {outlook(2, 40)});
  EXPECT_EQ(said["estimate"]["seconds"], 40) << "the second turn was the last before it";
  p.ask(4, 4, 42, of_first);
  EXPECT_EQ(p.why(3, {outlook(2, 40)})["estimate"]["seconds"], 40);
  p.wait(40s).tell(slots_released{run(2), ""});
  EXPECT_EQ(p.code(3), "running");
}

TEST(PoolExplain, WhoIsNextStartsWhenEnoughHoldersHaveEnded) {
  explained_pool p;
  p.up("a", 1).up("b", 1).ask(1, 1).ask(2, 1).ask(3, 2);
  auto said = p.why(3, {outlook(1, 30), outlook(2, 90)});
  EXPECT_EQ(said["estimate"]["seconds"], 90);
  EXPECT_EQ(said["estimate"]["from"], "history");
  EXPECT_EQ(said["slots"], 2);
  EXPECT_EQ(said["user"], "ada");
  EXPECT_TRUE(p.why(3, {outlook(1, 30)})["estimate"].is_null()) << "of the other holder nothing is known";
  p.ask(4, 1);
  EXPECT_TRUE(p.why(4, {outlook(1, 30), outlook(2, 90)})["estimate"].is_null()) << "another comes first";
  for (std::uint64_t gone : {4, 1, 2})
    p.tell(slots_released{run(gone)});
  EXPECT_EQ(p.code(3), "running") << "what was asked has changed nothing";
}

TEST(PoolExplain, WhoHasAReservationStartsWhenItsHoldersHaveEnded) {
  explained_pool p(with([](pool_settings& s) {
    s.preemption = true;
    s.reserve_after = 8s;
  }));
  p.up("a", 2).ask(1, 1).ask(2, 2);
  p.ask(3, 1, 42, [](run_terms& r) { r.preemptible = false; }).wait(8s); // run 3 passes run 2
  const auto said = p.why(2, {outlook(1, 31), outlook(3, 23)});
  ASSERT_TRUE(said["reservation"].is_object());
  EXPECT_EQ(said["estimate"]["seconds"], 31) << said.dump();
  EXPECT_TRUE(p.why(2, {outlook(1, 31)})["estimate"].is_null()) << "of the other holder nothing is known";
  EXPECT_EQ(p.tell(slots_released{run(3)}).why(2, {outlook(1, 31)})["estimate"]["seconds"], 31);
  EXPECT_EQ(p.tell(slots_released{run(1)}).code(2), "running") << "what was asked has changed nothing";
}

TEST(PoolExplain, NamesWhoIsPreemptedOnceItHasRunForMinRun) {
  explained_pool p(with([](pool_settings& s) { s.preemption = true; }));
  p.up("a", 1).ask(2, 1).wait(13s).ask(1, 1); // the job of run 1 is the older one
  auto said = p.why(1, {outlook(2, 57)});
  ASSERT_EQ(said["wouldFree"].size(), 1u);
  EXPECT_EQ(said["wouldFree"][0]["how"], "preempted");
  EXPECT_EQ(said["wouldFree"][0]["expectedSeconds"], 17) << "what is left of its 30 s";
  EXPECT_TRUE(said["estimate"].is_null()) << "how long it saves is not known";
  EXPECT_EQ(p.why(1)["wouldFree"][0]["expectedSeconds"], 17);
  said = p.why(1, {outlook(2, 9)});
  EXPECT_EQ(said["wouldFree"][0]["how"], "ends") << "before it is preempted";
  EXPECT_EQ(said["wouldFree"][0]["expectedSeconds"], 9);
  EXPECT_EQ(said["estimate"]["seconds"], 9);
  p.wait(17s);
  EXPECT_EQ(p.code(2), "stopping");

  explained_pool shares(with([](pool_settings& s) {
    s.preemption = true;
    s.scheduler = scheduler_kind::fair;
  }));
  const auto of_first = [](run_terms& r) {
    r.job.job = {1};
    r.job.submitted = t0 + 1s;
  };
  shares.up("a", 2).ask(1, 1, 42, of_first).wait(6s).ask(3, 1, 42, of_first).wait(10s).ask(5, 1);
  const auto frees = shares.why(5, {outlook(1, 67), outlook(3, 80)})["wouldFree"];
  ASSERT_EQ(frees.size(), 2u);
  EXPECT_EQ(frees[0]["how"], "preempted");
  EXPECT_EQ(frees[0]["expectedSeconds"], 14);
  EXPECT_EQ(frees[1]["how"], "ends") << "its job has a share of one slot";
  EXPECT_EQ(frees[1]["expectedSeconds"], 80);
}

TEST(PoolExplain, SaysWhoIsNotPreemptedAsItsJobWouldFallBelowItsShare) {
  const auto fair = with([](auto& s) {
    s.scheduler = scheduler_kind::fair;
    s.preemption = true;
  });
  for (const int least : {0, 2}) {
    explained_pool p(fair);
    slots_requested gang{run(1), 8, least};
    gang.run.job.job = {1};
    p.up("a", 8).tell(gang).ask(2, 2);
    EXPECT_EQ(said(p, 2),
              "busy: it is next, and waits for 2 slots, which others hold; trial 1 is not preempted, as its "
              "experiment would fall below its share of 6 slots > " +
                std::string(least > 0 ? "troupe experiment set 1 --max-slots 6" : ""));
    const auto frees = p.why(2)["wouldFree"];
    ASSERT_EQ(frees.size(), 1u);
    EXPECT_EQ(frees[0]["how"], "ends");
    job_changed lower{gang.run.job};
    lower.job.max_slots = 6;
    EXPECT_EQ(p.tell(lower).code(1), "stopping");
  }
  explained_pool p(fair);
  p.up("a", 2).up("b", 2).ask(1, 2).ask(3, 2, 42, [](run_terms& r) { r.job.job = {1}; }).ask(2, 2);
  EXPECT_EQ(p.code(2), "busy");
  EXPECT_EQ(said(p, 2).find("not preempted"), std::string::npos) << "one is, once it has run for min_run";
}

TEST(PoolExplain, WhoWaitsForALimitStartsWhenThoseBelowItHaveEnded) {
  const auto of_first = [](run_terms& r) {
    r.job.job = {1};
    r.job.submitted = t0 + 1s;
    r.job.max_slots = 2;
  };
  explained_pool p;
  p.up("a", 4).ask(1, 1, 42, of_first).ask(3, 1, 42, of_first).ask(5, 2, 42, of_first);
  EXPECT_EQ(p.code(5), "max_slots");
  const std::vector<run_outlook> all = {outlook(1, 30), outlook(3, 90), outlook(7, 50)};
  EXPECT_EQ(p.why(5, all)["estimate"]["seconds"], 90);
  EXPECT_TRUE(p.why(5, {outlook(3, 90)})["estimate"].is_null()) << "of the other nothing is known";
  p.ask(6, 2, 42, of_first);
  EXPECT_TRUE(p.why(6, all)["estimate"].is_null()) << "another below the limit comes first";
  p.ask(7, 2).ask(8, 3);
  EXPECT_EQ(p.code(8), "busy");
  EXPECT_TRUE(p.why(5, all)["estimate"].is_null()) << "what becomes free first may go to another";
  p.tell(slots_released{run(8)}).tell(slots_released{run(6)}).tell(slots_released{run(7)});
  EXPECT_EQ(p.why(5, all)["estimate"]["seconds"], 90);
  p.ask(9, 1, 42, of_first);
  EXPECT_TRUE(p.why(5, all)["estimate"].is_null()) << "one that needs less may pass it";
  p.tell(slots_released{run(9)}).tell(slots_released{run(1)}).tell(slots_released{run(3)});
  EXPECT_EQ(p.code(5), "running") << "what was asked has changed nothing";
}

TEST(PoolExplain, SaysWhatHoldersLoseAndWhenTheyEnd) {
  explained_pool p(with([](pool_settings& s) { s.preemption = true; }));
  p.up("a", 2).ask(1, 2, 50).wait(20s).ask(2, 2, 60);
  const auto said = p.why(2, {{run(1), 40, "progress", t0 + 15s}});
  EXPECT_EQ(said["wouldFree"][0]["how"], "ends");
  EXPECT_EQ(said["wouldFree"][0]["expectedSeconds"], 40);
  EXPECT_EQ(said["wouldFree"][0]["costSeconds"], 10) << "two slots, five seconds since its checkpoint";
  EXPECT_EQ(said["wouldFree"][0]["fromPriority"], 49);
  const auto urgent = p.ask(3, 1, 10).wait(1s).why(3, {{run(1), 40, "progress", t0 + 15s}});
  EXPECT_EQ(urgent["reason"]["code"], "preempting");
  EXPECT_EQ(urgent["wouldFree"][0]["how"], "preempted");
  EXPECT_EQ(urgent["wouldFree"][0]["costSeconds"], 12) << "two slots, six seconds since its checkpoint";
  EXPECT_TRUE(urgent["wouldFree"][0]["fromPriority"].is_null()) << "it is preempted already";
  explained_pool calm; // in this pool nobody is preempted
  const auto waits = calm.up("a", 1).ask(1, 1, 50).wait(20s).ask(2, 1, 60).why(2)["wouldFree"];
  EXPECT_EQ(waits[0]["costSeconds"], 0);
  EXPECT_TRUE(waits[0]["fromPriority"].is_null());
}

TEST(PoolExplain, TellsThatRoomBelowALimitIsKeptForAnother) {
  explained_pool p(with([](pool_settings& s) { s.quotas = {{"ada", "", 3}}; }));
  p.up("a", 2).up("b", 2).ask(1, 1); // run 1 gets a slot of agent a
  p.ask(2, 2, 42, [](run_terms& r) { r.rules.agents = {"a"}; });
  p.ask(3, 1, 42, [](run_terms& r) { r.rules.agents = {"b"}; }); // run 3 passes run 2
  p.wait(60s).tell(slots_released{run(3)});
  ASSERT_TRUE(p.why(2)["reservation"].is_object());
  p.ask(4, 2, 42, [](run_terms& r) { r.rules.agents = {"b"}; });
  EXPECT_EQ(p.code(4), "reserved") << "of the two slots that the quota has left, the second needs one";
}

TEST(PoolExplain, SaysThatAnElasticPoolCannotGrowSoLarge) {
  explained_pool p;
  p.tell(supply(1, 2)).ask(1, 2).ask(2, 3);
  EXPECT_EQ(p.code(1), "scaling");
  EXPECT_EQ(p.code(2), "too_large");
  EXPECT_EQ(p.details()["jobs"][0]["waiting"], 2) << "no agent is there, and it waits";
}

TEST(PoolExplain, TellsWhatTheProviderOfAnElasticPoolDoes) {
  const auto single = [](run_terms& r) { r.rules.single_node = true; };
  const auto rack = [](run_terms& r) { r.rules.labels["rack"] = {"x"}; };
  {
    explained_pool p; // one of two instances is there
    p.tell(supply(2, 2, 1)).up("i1", 2).ask(1, 4).ask(2, 5).ask(3, 3, 42, single).ask(4, 1, 42, rack);
    EXPECT_EQ(said(p, 1), "scaling: the provider is asked for instances > ") << "larger than what is there";
    EXPECT_EQ(said(p, 2), "too_large: it needs 5 slots, and the pool grows to 4 > lower "
                          "resources.slots_per_trial, or raise max_instances of the pool's provider");
    EXPECT_EQ(said(p, 3), "single_node: it needs 3 slots on one agent, and none has as many > lower "
                          "resources.slots_per_trial, or raise instance_slots of the pool's provider");
    EXPECT_EQ(p.code(4), "constraints");
    p.ask(5, 3);
    EXPECT_EQ(said(p, 5), "too_large: it needs 3 slots, and instances start for whole multiples of 2 alone > "
                          "set resources.slots_per_trial to a multiple of 2");
    EXPECT_TRUE(p.why(5)["wouldFree"].empty());
    p.tell(supply(2, 2, 2, 1));
    EXPECT_EQ(said(p, 1), "scaling: 1 instance of 2 slots starts > ");
    p.tell(supply(2, 2, 1, 0, "no quota"));
    EXPECT_EQ(said(p, 1), "provider_failed: the provider of the pool failed: no quota > "
                          "troupe pool describe shows what its provider says");
  }
  {
    explained_pool p; // all instances are there
    p.tell(supply(2, 1, 1, 0, "list: timeout")).up("i1", 2).ask(1, 2).ask(2, 1);
    EXPECT_EQ(p.code(2), "busy") << "no further instance may come, so that no provider holds it up";
  }
  {
    explained_pool p; // all instances are there, and the only one is drained
    p.tell(supply(2, 1, 1)).up("i1", 2).tell(agent_drain{"i1"}).ask(1, 2);
    EXPECT_EQ(p.code(1), "drained");
    EXPECT_EQ(p.why(1, {})["advice"], "troupe agent enable i1");
  }
  {
    explained_pool p; // all instances are there, and one of them is away
    p.tell(supply(2, 2, 2)).up("i1", 2).up("i2", 2).tell(agent_down{"i2"}).ask(1, 4);
    EXPECT_EQ(p.code(1), "no_agents");
  }
  {
    explained_pool p; // no instance is there
    p.tell(supply(2, 2)).ask(1, 3, 42, single).ask(2, 1, 42, rack).ask(3, 0, 42, rack).ask(4, 0);
    EXPECT_EQ(p.code(1), "single_node");
    EXPECT_EQ(p.code(2), "constraints");
    EXPECT_EQ(p.code(3), "constraints");
    EXPECT_EQ(p.code(4), "scaling");
    p.tell(supply(2, 2, 2)); // the agents of both instances are away
    EXPECT_EQ(p.code(4), "no_agents");
  }
  {
    explained_pool p(with([](pool_settings& s) { s.quotas = {{"ada", "", 1}}; }));
    p.tell(supply(1, 2, 1)).up("i1", 1).ask(1, 1).ask(2, 1);
    EXPECT_EQ(p.code(2), "quota");
    EXPECT_TRUE(p.why(2, {})["also"].empty()) << "more instances are not asked for because of it";
  }
  {
    explained_pool p; // an agent that met the constraints of the run has gone
    p.tell(supply(2, 2)).up("a", 2, "x", 0).ask(1, 0, 42, rack).tell(agent_down{"a"});
    EXPECT_EQ(p.code(1), "constraints");
  }
  {
    explained_pool p; // the instances have no slots, for tasks that need none
    p.tell(supply(0, 2)).ask(1, 0);
    EXPECT_EQ(p.code(1), "scaling");
    p.tell(supply(0, 2, 0, 0, "no quota"));
    EXPECT_EQ(p.code(1), "provider_failed");
  }
  {
    explained_pool p; // enabling the agent helps
    p.tell(supply(2, 2)).up("a", 4).tell(agent_drain{"a"}).ask(1, 3);
    EXPECT_EQ(p.code(1), "drained");
    EXPECT_EQ(p.why(1, {})["advice"], "troupe agent enable a");
  }
}

TEST(PoolExplain, SaysWhenAProviderThatFailedIsTriedAgain) {
  explained_pool p;
  auto told = supply(1, 2, 0, 0, "no quota");
  EXPECT_TRUE(p.tell(told).details()["provider"]["retryAt"].is_null());
  told.retry_at = t0 + 12s;
  told.failed_launches = 3;
  told.launch_failed_at = t0 - 8s;
  p.tell(told).ask(1, 1).wait(200ms);
  const std::string failed = "the provider of the pool failed: no quota";
  EXPECT_EQ(p.why(1)["reason"]["text"], failed + "; it is tried again in 12 s");
  EXPECT_EQ(p.why(1, {})["reason"]["text"], failed + "; it is tried again in 12 s");
  const auto provider = p.details()["provider"];
  EXPECT_EQ(provider["retryAt"], to_rfc3339(t0 + 12s));
  EXPECT_EQ(provider["failedLaunches"], 3);
  EXPECT_EQ(provider["launchFailedAt"], to_rfc3339(t0 - 8s));
  EXPECT_EQ(p.wait(12s).why(1)["reason"]["text"], failed) << "it is tried now";
}

TEST(PoolExplain, CountsInstancesThatStop) {
  explained_pool p;
  auto told = supply(2, 2, 0);
  told.stopping = 2;
  p.tell(told).ask(1, 2);
  EXPECT_EQ(said(p, 1), "scaling: 2 instances end before the provider is asked for others > ");
  const auto provider = p.details()["provider"];
  EXPECT_EQ(provider["instances"], 2) << "with those that stop";
  EXPECT_EQ(provider["stopping"], 2);
  told.type.clear();
  EXPECT_EQ(p.tell(told).details()["provider"]["instances"], 2) << "also where the provider was taken out";
  told.stopping = 0;
  EXPECT_TRUE(p.tell(told).details()["provider"].is_null());
}

TEST(PoolExplain, NamesAgentsThatAreAwayAndCouldHoldIt) {
  const auto on_b = [](run_terms& r) { r.rules.agents = {"b"}; };
  const auto rack = [](run_terms& r) { r.rules.labels["rack"] = {"x"}; };
  const std::string none = "constraints: its constraints leave no agents that could hold it",
                    away = "; agent b, which could hold it, is away > start agent b again";
  {
    explained_pool p;
    p.up("a", 2, "y").up("b", 2, "x").tell(agent_down{"b"});
    p.ask(1, 1, 42, on_b).ask(2, 1, 42, rack).ask(3, 0, 42, rack).ask(4, 3);
    for (const std::uint64_t trial : {1, 2, 3})
      EXPECT_EQ(said(p, trial), none + away) << trial;
    EXPECT_EQ(said(p, 4),
              "too_large: it needs 3 slots, and the pool has 2; agent b, with which the pool could "
              "hold it, is away > start agent b again");
    const auto agents = p.why(2)["agents"];
    ASSERT_EQ(agents.size(), 2u) << agents.dump();
    EXPECT_EQ(agents[1], (value{{"agent", "b"}, {"free", 0}, {"fits", false}, {"why", "is away"}}));
    p.ask(5, 3, 42, on_b).ask(6, 1).ask(7, 2);
    EXPECT_EQ(said(p, 5).find("away"), std::string::npos) << "it has two slots";
    EXPECT_EQ(p.why(7)["agents"].size(), 1u) << "one that is there could hold it";
    p.tell(agent_down{"a"});
    EXPECT_EQ(p.why(2)["reason"]["text"], "the pool has no agents; agent b, which could hold it, is away");
    p.tell(agent_down{"b", true}).up("a", 2, "y");
    EXPECT_EQ(said(p, 2), none + " > loosen resources.constraints, or start agents that meet them")
      << "it was removed";
  }
  {
    explained_pool p;
    p.up("a", 2).up("b", 2).tell(agent_drain{"b"}).tell(agent_down{"b"}).ask(1, 1, 42, on_b);
    EXPECT_EQ(said(p, 1), none +
                            "; agent b, which could hold it, is away and drained > start agent b again, and "
                            "troupe agent enable b");
  }
  {
    explained_pool p; // the pool was made again, and agent b has not registered yet
    p.up("a", 2).tell(agent_down{"b"}).ask(1, 1, 42, on_b).ask(2, 1, 42, rack);
    EXPECT_EQ(said(p, 1), none + "; agent b, which it asks for, is away > start agent b again")
      << "nobody knows what it has";
    EXPECT_EQ(said(p, 2).find("away"), std::string::npos) << "nobody knows what labels it has";
  }
}

TEST(PoolExplain, SaysThatAgentsAreExpectedBackUntilTheirLeasesAreOver) {
  const auto rack = [](run_terms& r) { r.rules.labels["rack"] = {"x"}; };
  const auto not_b = [](run_terms& r) { r.rules.not_agents = {"b"}; };
  {
    explained_pool p; // the master was started again, and neither has registered yet
    p.tell(agent_down{"a", false, t0 + 40s}).tell(agent_down{"b", false, t0 + 45s});
    p.ask(1, 1).ask(2, 3).ask(3, 0).ask(4, 1, 42, not_b);
    for (const std::uint64_t trial : {1, 2, 3})
      EXPECT_EQ(said(p, trial), "no_agents: the pool has no agents; agents a, b are expected back within "
                                "45 s > ");
    EXPECT_EQ(said(p, 4), "no_agents: the pool has no agents; agent a is expected back within 40 s > ");
    EXPECT_EQ(p.why(1)["agents"][0]["why"], "is away, and expected back");
    p.up("a", 2, "y").ask(5, 3).ask(6, 1, 42, rack);
    EXPECT_EQ(said(p, 5), "too_large: it needs 3 slots, and the pool has 2; agent b is expected back within "
                          "45 s > ");
    EXPECT_EQ(said(p, 6), "constraints: its constraints leave no agents that could hold it; agent b is "
                          "expected back within 45 s > ");
    p.wait(45s);
    EXPECT_EQ(said(p, 5),
              "too_large: it needs 3 slots, and the pool has 2 > lower resources.slots_per_trial, "
              "or start more or larger agents")
      << "nobody knows what b has";
  }
  {
    explained_pool p; // the agents that were here lost their connections
    p.up("a", 2).up("b", 2).up("c", 1);
    p.tell(agent_down{"a", false, t0 + 44s}).tell(agent_down{"b", false, t0 + 20s}).ask(1, 2).ask(2, 3);
    EXPECT_EQ(said(p, 1), "too_large: it needs 2 slots, and the pool has 1; agents a, b, each of which could "
                          "hold it, are expected back within 44 s > ");
    p.wait(20s); // the lease of b is over
    EXPECT_EQ(said(p, 1), "too_large: it needs 2 slots, and the pool has 1; agents a, b, each of which could "
                          "hold it, are away; agent a is expected back within 24 s > ");
    p.ask(3, 5);
    EXPECT_EQ(said(p, 3), "too_large: it needs 5 slots, and the pool has 1; agents a, b, with which together "
                          "the pool could hold it, are away; agent a is expected back within 24 s > start "
                          "agent b again");
    p.wait(24s);
    EXPECT_EQ(said(p, 1), "too_large: it needs 2 slots, and the pool has 1; agents a, b, each of which could "
                          "hold it, are away > start agent a again");
  }
  {
    explained_pool p;
    p.tell(agent_down{"a", false, t0 + 40s}).ask(1, 1).wait(40s);
    EXPECT_EQ(said(p, 1), "no_agents: the pool has no agents > start an agent of this pool");
  }
}

TEST(PoolExplain, NamesNoAgentWhoseInstanceWasEnded) {
  explained_pool p;
  p.tell(supply(2, 1, 1)).up("i1", 2).ask(1, 2);
  supply_told told; // the provider was taken out
  told.stopping = 1;
  told.ended = {"i1"};
  p.tell(told).tell(agent_drain{"i1"}).ask(2, 2);
  p.tell(slots_released{run(1)});
  EXPECT_EQ(said(p, 2), "drained: the instances of agents that it needs end: i1 > ");
  EXPECT_EQ(p.why(2)["agents"][0]["why"], "is on an instance that ends");
  p.tell(agent_down{"i1", false, t0 + 45s});
  EXPECT_EQ(said(p, 2), "no_agents: the pool has no agents > start an agent of this pool");
  EXPECT_TRUE(p.why(2)["agents"].empty());
}

TEST(PoolExplain, SaysWhichAgentsThatAreAwayAGangNeedsTogether) {
  struct row {
    int slots;
    const char* away;
    const char* advice;
  } rows[] = {
    {3, "; agent e, which could hold it, is away", "start agent e again"},
    {4, "; agent e, which could hold it, is away", "start agent e again"},
    {5, "; agent e, with which the pool could hold it, is away", "start agent e again"},
    {6, "; agents d, e, with which together the pool could hold it, are away", "start agents d, e again"},
    {8, "; agents c, d, e, with which together the pool could hold it, are away",
     "start agents c, d, e again, and troupe agent enable c"},
    {9, "; agents b, c, d, e, with which together the pool could hold it, are away",
     "start agents b, c, d, e again, and troupe agent enable c"},
    {10, "", "lower resources.slots_per_trial, or start more or larger agents"},
  };
  for (const auto& r : rows) {
    explained_pool p;
    p.up("a", 1).up("b", 1).up("c", 1).up("d", 2).up("e", 4).tell(agent_drain{"c"});
    for (const char* away : {"b", "c", "d", "e"})
      p.tell(agent_down{away});
    const auto why = p.ask(1, r.slots).why(1, {});
    EXPECT_EQ(why["reason"]["text"],
              "it needs " + std::to_string(r.slots) + " slots, and the pool has 1" + r.away);
    EXPECT_EQ(why["advice"], r.advice) << r.slots;
  }
  explained_pool p;
  p.up("a", 1).up("b", 2).up("c", 2).tell(agent_down{"b"}).tell(agent_down{"c"}).ask(1, 2);
  EXPECT_EQ(p.why(1)["reason"]["text"],
            "it needs 2 slots, and the pool has 1; agents b, c, each of which could hold it, are away");
}

TEST(PoolExplain, NamesTheRunsWithoutSlotsOfEachAgent) {
  explained_pool p;
  p.up("a", 1, "", 1).up("b", 1, "", 2).ask(1, 1);
  EXPECT_EQ(p.details()["auxRuns"], value::object());
  p.ask(2, 0).ask(3, 0).ask(4, 0).ask(5, 0);
  const auto runs = p.details()["auxRuns"];
  ASSERT_EQ(runs.size(), 2u) << to_json(runs);
  EXPECT_EQ(runs["a"].size(), 1u);
  EXPECT_EQ(runs["b"].size(), 2u) << "and one waits";
  p.tell(slots_released{run(2)}).tell(slots_released{run(3)}).tell(slots_released{run(4)});
  EXPECT_EQ(p.details()["auxRuns"].size(), 1u) << "the one that waited";
}

TEST(PoolExplain, AdvisesAPriorityWithWhichItWouldStart) {
  explained_pool p(with([](pool_settings& s) { s.preemption = true; }));
  p.up("a", 2).ask(1, 1, 30).ask(2, 1, 40).ask(3, 1, 45);
  EXPECT_EQ(p.why(3, {})["advice"], "troupe experiment set 3 --priority 39");
  p.ask(4, 2, 45);
  EXPECT_EQ(p.why(4, {})["advice"], "troupe experiment set 4 --priority 29") << "both have to make room";
  explained_pool calm; // in this pool nobody is preempted
  calm.up("a", 1).ask(1, 1, 30).ask(2, 1, 40).ask(3, 1, 45);
  EXPECT_EQ(calm.why(2, {})["advice"], "") << "it is next already";
  EXPECT_EQ(calm.why(3, {})["advice"], "troupe experiment set 3 --priority 39");
}

/// Makes runs of the job `job`, which is older than jobs with a larger number.
std::function<void(run_terms&)> of_job(std::uint64_t job, std::function<void(run_terms&)> set = {}) {
  return [job, set](run_terms& r) {
    r.job.job = {job};
    r.job.submitted = t0 + std::chrono::seconds(job);
    r.started = {};
    if (set)
      set(r);
  };
}

TEST(PoolExplain, AdvisesAPriorityThatServesTheTrialsBeforeItToo) {
  const auto fixed = [](run_terms& r) { r.preemptible = false; };
  struct row {
    const char* what;
    bool preempts;
    std::vector<std::pair<int, int>> holders; ///< slots and priority of each
    std::vector<int> trials;                  ///< slots of the trials of experiment 50, which has priority 42
    std::vector<int> advised;                 ///< priority for each of these; 0: none
  } rows[] = {
    {"nobody else is before them", false, {{4, 42}}, {2, 2, 2}, {0, 0, 0}},
    {"one slot to preempt", true, {{1, 42}}, {1, 1}, {41, 0}},
    {"room for two of three", true, {{4, 42}}, {2, 2, 2}, {41, 41, 0}},
    {"the second needs a further victim", true, {{2, 40}, {2, 30}}, {2, 2}, {39, 29}},
    {"a smaller one behind a larger one", true, {{2, 40}, {2, 30}}, {3, 1}, {29, 29}},
    {"a larger one before it that only all slots hold", true, {{2, 40}, {2, 30}}, {4, 1}, {29, 0}},
  };
  for (const auto& r : rows)
    for (std::size_t i = 0; i < r.trials.size(); ++i) {
      SCOPED_TRACE(r.what + std::string(", trial ") + std::to_string(i + 50));
      explained_pool p(with([&](pool_settings& s) { s.preemption = r.preempts; }));
      int total = 0;
      for (const auto& [slots, priority] : r.holders)
        total += slots;
      p.up("a", total);
      std::uint64_t trial = 1;
      for (const auto& [slots, priority] : r.holders)
        p.ask(trial++, slots, priority, r.preempts ? nullptr : std::function<void(run_terms&)>(fixed));
      for (std::size_t k = 0; k < r.trials.size(); ++k)
        p.ask(50 + k, r.trials[k], 42, of_job(50));
      EXPECT_EQ(p.why(50 + i, {})["advice"],
                r.advised[i] ? "troupe experiment set 50 --priority " + std::to_string(r.advised[i]) : "");
      if (r.advised[i] == 0)
        continue;
      job_changed ev;
      ev.job.job = {50};
      ev.job.priority = r.advised[i];
      p.tell(ev);
      for (std::uint64_t holder = 1; holder < trial; ++holder)
        if (p.code(holder) == "stopping")
          p.tell(slots_released{run(holder)});
      EXPECT_EQ(p.code(50 + i), "running") << "with that priority it starts";
    }
}

TEST(PoolExplain, CountsATrialBeforeItThatALimitLetsStartOnceOthersHaveStopped) {
  explained_pool p(with([](pool_settings& s) { s.preemption = true; }));
  const auto four = of_job(50, [](run_terms& r) { r.job.max_slots = 4; });
  p.up("a", 3).ask(1, 1, 42).ask(51, 2, 42, four).ask(50, 3, 42, four).ask(2, 2, 40).ask(52, 2, 42, four);
  ASSERT_EQ(p.code(51), "stopping");
  ASSERT_EQ(p.code(50), "max_slots");
  EXPECT_EQ(p.code(52), "behind");
  EXPECT_EQ(p.why(52, {})["advice"], "") << "the pool has 3 slots, and trial 50 takes them";
}

TEST(PoolExplain, AdvisesNoPriorityWhereTrialsBeforeItTakeWhatIsKeptForAnother) {
  const auto fixed = [](run_terms& r) { r.preemptible = false; };
  for (const bool preempts : {false, true}) {
    explained_pool p(with([&](pool_settings& s) {
      s.preemption = preempts;
      s.reserve_after = 8s;
    }));
    p.up("a", 3).ask(1, 1, 42, fixed).ask(3, 3).ask(4, 2, 42, fixed).wait(8s);
    ASSERT_TRUE(p.why(3)["reservation"].is_object());
    p.tell(slots_released{run(4)});
    for (const std::uint64_t trial : {50, 51, 52})
      p.ask(trial, 1, 42, of_job(50));
    EXPECT_EQ(p.code(52), "reserved");
    EXPECT_EQ(p.why(52, {})["advice"], "") << "two slots are kept";
    EXPECT_EQ(p.why(51, {})["advice"], "troupe experiment set 50 --priority 41");
    job_changed ev;
    ev.job.job = {50};
    ev.job.priority = 41;
    p.tell(ev);
    EXPECT_EQ(p.code(51), "running") << "with that priority it starts";
    EXPECT_NE(p.code(52), "running");
  }
}

TEST(PoolExplain, AdvisesALimitThatHasRoomForTheTrialsBeforeIt) {
  struct row {
    const char* what;
    std::vector<int> trials; ///< slots of the trials of an experiment whose max_slots is 1
    int advised;             ///< max_slots for the last one to start; 0: none
  } rows[] = {
    {"the next one", {1, 1}, 2},
    {"the third", {1, 1, 1}, 3},
    {"a larger one before it", {1, 2, 1}, 4},
    {"more than the pool has", {1, 3, 1}, 0},
  };
  for (const auto& r : rows) {
    SCOPED_TRACE(r.what);
    explained_pool p;
    p.up("a", 4);
    std::uint64_t last = 49;
    for (const int slots : r.trials)
      p.ask(++last, slots, 42, of_job(50, [](run_terms& t) { t.job.max_slots = 1; }));
    EXPECT_EQ(p.code(last), "max_slots");
    EXPECT_EQ(p.why(last, {})["advice"],
              r.advised ? "troupe experiment set 50 --max-slots " + std::to_string(r.advised) : "");
    if (r.advised == 0)
      continue;
    job_changed ev;
    ev.job.job = {50};
    ev.job.max_slots = r.advised;
    p.tell(ev);
    EXPECT_EQ(p.code(last), "running") << "with that limit it starts";
  }
}

TEST(PoolExplain, AdvisesToEnableWhatItNames) {
  explained_pool p;
  p.up("a", 1).up("b", 2, "x").ask(1, 1, 42, [](run_terms& r) { r.rules.agents = {"b"}; }).ask(2, 1);
  p.ask(3, 2, 42, [](run_terms& r) { r.rules.agents = {"b"}; });
  p.tell(agent_drain{"a"}).tell(agent_drain{"b", false, {1}});
  EXPECT_EQ(p.code(3), "drained");
  EXPECT_EQ(p.why(3, {})["advice"], "troupe slot enable b 1");
  p.tell(agent_drain{"b"});
  EXPECT_EQ(p.why(3, {})["advice"], "troupe agent enable b");
}

TEST(PoolExplain, AdvisesAPriorityThatTakesWhatIsKeptForAnother) {
  const auto fixed = [](run_terms& r) { r.preemptible = false; };
  struct row {
    const char* what;
    bool preempts;
    std::uint64_t who; ///< asks once slots are kept for run 3, and is older than that where it is 2
    int kept_for;      ///< priority of run 3
    const char* advice;
  } rows[] = {
    {"preempts", true, 5, 42, "troupe experiment set 5 --priority 41"},
    {"preempts, the older one", true, 2, 42, "troupe experiment set 2 --priority 41"},
    {"calm", false, 5, 42, "troupe experiment set 5 --priority 41"},
    {"calm, the older one", false, 2, 42, "troupe experiment set 2 --priority 41"},
    {"for one that is more urgent", true, 5, 7, "troupe experiment set 5 --priority 6"},
    {"for one than which none is more urgent", true, 5, 1, ""},
  };
  for (const auto& r : rows) {
    SCOPED_TRACE(r.what);
    explained_pool p(with([&](pool_settings& s) {
      s.preemption = r.preempts;
      s.reserve_after = 8s;
    }));
    p.up("a", 2).ask(1, 1, 42, fixed).ask(3, 2, r.kept_for).ask(4, 1, r.kept_for, fixed).wait(8s);
    ASSERT_TRUE(p.why(3)["reservation"].is_object());
    p.tell(slots_released{run(4)}).ask(r.who, 1);
    EXPECT_EQ(p.code(r.who), "reserved");
    EXPECT_EQ(p.why(r.who, {})["advice"], r.advice);
    if (r.advice[0] == 0)
      continue;
    job_changed ev;
    ev.job.job = {r.who};
    ev.job.priority = r.kept_for - 1;
    p.tell(ev);
    EXPECT_EQ(p.code(r.who), "running") << "with that priority it starts";
  }
}

TEST(PoolExplain, AdvisesNoPriorityAgainstHoldersThatNoneMoves) {
  explained_pool p(with([](pool_settings& s) { s.preemption = true; }));
  p.up("a", 1).ask(1, 1, 42, [](run_terms& r) { r.preemptible = false; }).ask(2, 1);
  EXPECT_EQ(p.code(2), "busy");
  EXPECT_EQ(p.why(2, {})["advice"], "");
}

TEST(PoolExplain, AdvisesToEnableAllThatIsNeededTogetherOrOneThatSuffices) {
  struct row {
    int slots;
    const char* advice;
  } rows[] = {
    {3,
     "one of: troupe agent enable b, troupe agent enable c, troupe agent enable a, troupe slot enable d 0"},
    {4, "one of: troupe agent enable b, troupe agent enable c"},
    {5, "troupe agent enable b, and troupe agent enable c"},
    {7, "troupe agent enable b, and troupe agent enable c, and troupe agent enable a"},
    {8, "troupe agent enable b, and troupe agent enable c, and troupe agent enable a, and troupe slot enable "
        "d 0"},
  };
  for (const auto& r : rows) {
    explained_pool p;
    p.up("a", 1).up("b", 2).up("c", 2).up("d", 3);
    p.tell(agent_drain{"a"}).tell(agent_drain{"b"}).tell(agent_drain{"c"}).tell(agent_drain{"d", false, {0}});
    p.ask(1, r.slots);
    EXPECT_EQ(p.code(1), "drained") << r.slots;
    EXPECT_EQ(p.why(1, {})["advice"], r.advice) << r.slots;
  }
  explained_pool p;
  p.up("a", 1).up("b", 1).tell(agent_drain{"a"}).tell(agent_drain{"b"}).ask(1, 0);
  EXPECT_EQ(p.why(1, {})["advice"], "one of: troupe agent enable a, troupe agent enable b");
}

TEST(PoolExplain, SaysBehindOnlyOfOnesThatAreServedBefore) {
  explained_pool p;
  const auto one_slot = [](run_terms& r) { r.job.max_slots = 1; };
  const auto of_first = [&](run_terms& r) {
    r.job.job = {1};
    r.job.submitted = t0 + 1s;
    one_slot(r);
  };
  p.up("a", 2).ask(1, 1, 42, one_slot).ask(2, 1).ask(3, 1, 42, of_first).ask(4, 1); // the pool is full
  EXPECT_EQ(p.code(3), "max_slots");
  EXPECT_EQ(p.why(4)["position"], 1);
  EXPECT_EQ(p.code(4), "busy") << "the third is above its limit, and holds nobody up";
  EXPECT_TRUE(p.why(4, {})["behind"].is_null());
  EXPECT_EQ(p.why(4, {})["advice"], "") << "it is next already";
  EXPECT_EQ(p.why(4, {{run(1), 9, "history", t0}})["estimate"]["seconds"], 9);

  explained_pool turns(with([](auto& s) { s.scheduler = scheduler_kind::round_robin; }));
  const auto of_two = [](run_terms& r) {
    r.job.job = {2};
    r.job.submitted = t0 + 2s;
  };
  turns.up("a", 2).ask(2, 1).ask(5, 1, 42, of_two).ask(6, 1, 42, of_two).ask(7, 1);
  EXPECT_EQ(turns.why(7)["position"], 1) << "its job holds nothing";
  EXPECT_EQ(turns.code(7), "busy");
  EXPECT_EQ(turns.why(6)["reason"]["text"], "waits for 1 slot behind trial 7");
}

TEST(PoolExplain, NamesAgentsThatLeaveThePool) {
  explained_pool p;
  const auto on = [](std::vector<std::string> agents) {
    return [agents](run_terms& r) { r.rules.agents = agents; };
  };
  p.up("a", 1).up("b", 1).ask(1, 1, 42, on({"b"})).ask(2, 1, 42, on({"b"})).ask(3, 0, 42, on({"b"}));
  p.tell(agent_drain{"b", true, {}, false, {}, "cpu"}).ask(4, 2).ask(5, 0, 42, on({"b"}));
  EXPECT_EQ(p.code(2), "drained");
  EXPECT_EQ(p.why(2)["reason"]["text"], "agents that it needs leave this pool: b for cpu");
  EXPECT_EQ(p.why(2)["agents"][1]["why"], "leaves for pool cpu");
  EXPECT_EQ(p.why(2, {})["advice"], "troupe experiment set 2 --pool cpu");
  EXPECT_EQ(p.why(5)["reason"]["text"], "agents that it needs leave this pool: b for cpu");
  p.tell(agent_drain{"a"});
  EXPECT_EQ(p.why(4)["reason"]["text"],
            "agents or slots that it needs are drained or disabled, or leave this pool: b for cpu");
  EXPECT_EQ(p.why(4, {})["advice"], "troupe agent enable a");
  p.tell(agent_drain{"b", false});
  EXPECT_EQ(p.code(2), "busy") << "it stays";
}

TEST(PoolExplain, NamesTheOtherReasonsToo) {
  explained_pool p(with([](pool_settings& s) {
    s.max_slots = 1;
    s.quotas = {{"ada", "", 1}};
  }));
  p.up("a", 4).ask(1, 1).ask(2, 1, 42, [](run_terms& r) { r.job.max_slots = 0; });
  const auto said = p.why(2, {});
  EXPECT_EQ(said["reason"]["code"], "max_slots");
  EXPECT_EQ(said["advice"], "troupe experiment set 2 --max-slots 1");
  std::string also;
  for (const auto& one : said["also"])
    also += one["code"].get<std::string>() + " ";
  EXPECT_EQ(also, "quota pool_max_slots ");
}

TEST(PoolQuotas, CountWhatAJobHoldsForItsOwnerOfNow) {
  explained_pool p(with([](pool_settings& s) { s.quotas = {{"*", "", 2}}; }));
  const auto of = [](std::uint64_t job, const char* user) {
    return [=](run_terms& r) {
      r.job.job = {job};
      r.job.user = user;
      r.job.submitted = t0 + std::chrono::seconds(job);
    };
  };
  p.up("a", 8).ask(1, 1, 42, of(1, "ada")).ask(2, 1, 42, of(1, "ada"));
  p.ask(3, 2, 42, of(2, "bob"));
  EXPECT_EQ(p.code(3), "running");
  p.ask(4, 1, 42, of(1, "ada"));
  EXPECT_EQ(p.code(4), "quota");
  p.ask(5, 1, 42, of(1, "eve")); // the user ada has the name eve from now on
  EXPECT_EQ(p.code(5), "quota") << "eve holds two";
  p.ask(6, 1, 42, of(3, "ada"));
  EXPECT_EQ(p.code(6), "running") << "another ada holds nothing";
  p.tell(slots_released{run(1)});
  EXPECT_EQ(p.code(4), "running");
  EXPECT_EQ(p.code(5), "quota");
}

TEST(PoolQuotas, KnowAWorkspaceInAnyCase) {
  for (const auto scheduler :
       {scheduler_kind::fifo, scheduler_kind::round_robin, scheduler_kind::priority, scheduler_kind::fair}) {
    explained_pool p(with([&](pool_settings& s) {
      s.scheduler = scheduler;
      s.quotas = {{"", "Vision", 3}};
    }));
    const auto in = [](const char* workspace) {
      return [workspace](run_terms& r) { r.job.workspace = workspace; };
    };
    p.up("a", 8).ask(1, 2, 42, in("vision")).ask(2, 1, 42, in("VISION")).ask(3, 1, 42, in("vision"));
    EXPECT_EQ(p.code(2), "running");
    EXPECT_EQ(p.why(3)["reason"]["text"], "it needs 1 slot, and 0 are left of the quota of workspace vision");
    EXPECT_EQ(p.details()["quotas"][0], (value{{"workspace", "Vision"}, {"maxSlots", 3}, {"used", 3}}));
    p.tell(slots_released{run(2)});
    EXPECT_EQ(p.code(3), "running");
  }
}

TEST(PoolQuotas, KnowAUserInAnyCase) {
  for (const auto scheduler :
       {scheduler_kind::fifo, scheduler_kind::round_robin, scheduler_kind::priority, scheduler_kind::fair}) {
    explained_pool p(with([&](pool_settings& s) {
      s.scheduler = scheduler;
      s.quotas = {{"*", "", 6}, {"Ada", "", 2}};
    }));
    const auto of = [](run_terms& r) { r.job.user = "ada"; };
    p.up("a", 8).ask(1, 1, 42, of).ask(2, 1, 42, of).ask(3, 1, 42, of);
    EXPECT_EQ(p.code(2), "running");
    EXPECT_EQ(p.why(3)["reason"]["text"], "it needs 1 slot, and 0 are left of the quota of user ada");
    EXPECT_EQ(p.details()["quotas"][1], (value{{"user", "Ada"}, {"maxSlots", 2}, {"used", 2}}));
    p.tell(slots_released{run(2)});
    EXPECT_EQ(p.code(3), "running");
  }
}

TEST(PoolSettings, AreReadFromACompletedFile) {
  const auto got = pool_settings_of({{"scheduler", "fair"},
                                     {"quotas", {{{"user", "*"}, {"workspace", nullptr}, {"max_slots", 1}}}},
                                     {"launch_error", true}});
  ASSERT_TRUE(got) << got.error().what;
  ASSERT_EQ(got->quotas.size(), 1u);
  EXPECT_EQ(got->quotas[0].user, "*");
  EXPECT_TRUE(got->launch_error);
}

TEST(PoolSettings, RefuseAPoolThatCouldHoldNothing) {
  EXPECT_FALSE(pool_settings_of({{"max_slots", 0}}));
  EXPECT_TRUE(pool_settings_of({{"max_slots", 1}}));
}

TEST(Pool, TellsWhomItCannotHoldWithTheLastOfSeveralEvents) {
  pool p(pool::phase::placing, pool_settings{});
  const auto told = [&](std::vector<pool_event> events) {
    std::string out;
    for (const auto& action : p.apply(events, t0))
      if (const auto* no = std::get_if<report_unplaceable>(&action))
        out += "no " + to_string(no->allocation) + "; ";
      else if (const auto* grant = std::get_if<grant_slots>(&action))
        out += to_string(grant->allocation) + "; ";
    return out;
  };
  EXPECT_EQ(told({agent_up{"a", 4, {}, {}}, slots_requested{run(1), 6}, agent_up{"b", 4, {}, {}}}), "1.1; ");
  EXPECT_EQ(told({slots_requested{run(2), 9}, slots_released{run(2)}}), "");
  EXPECT_EQ(told({slots_requested{run(3), 9}}), "no 3.1; ");
}

// ---- agents that are disabled

std::string ended(const std::vector<pool_action>& actions) {
  std::string out;
  for (const auto& action : actions)
    if (const auto* x = std::get_if<preempt_allocation>(&action))
      out += to_string(x->allocation) + " " + x->reason + (x->detail.empty() ? "" : ": " + x->detail) + "; ";
  return out;
}
slots_requested wants(std::uint64_t trial, int slots) {
  slots_requested ev{run(trial), slots};
  ev.run.job.job = {trial};
  return ev;
}

TEST(PoolDisabling, EndsWhatRunsThereAlsoWithoutSlotsAndWhereItSavesAlready) {
  pool p;
  static_cast<void>(p.apply(agent_up{"a", 3}, t0));
  for (int slots : {1, 1, 0})
    static_cast<void>(
      p.apply(wants(static_cast<std::uint64_t>(p.used_slots() + 1 + (slots == 0)), slots), t0));
  EXPECT_EQ(ended(p.apply(agent_drain{"a", true}, t0)), "") << "it runs to its end";
  EXPECT_EQ(ended(p.apply(agent_drain{"a", false, {1}, false, {1}, "", "ada"}, t0)),
            "2.1 disabled: slot 1 of agent a was disabled by ada; ");
  const std::string by_eve = " disabled: agent a was disabled by eve; ";
  EXPECT_EQ(ended(p.apply(agent_drain{"a", true, {}, true, {}, "", "eve"}, t0)),
            "1.1" + by_eve + "2.1" + by_eve + "4.1" + by_eve);
}

TEST(PoolDisabling, EndsWhatARestartedMasterFindsThere) {
  pool p(pool::phase::recovering);
  static_cast<void>(p.apply(agent_drain{"a", true, {}, true}, t0));
  static_cast<void>(p.apply(agent_up{"a", 2}, t0));
  slots_held held{run(1), {{"a", {0}}}, {}, 1};
  held.run.job.job = {1};
  EXPECT_EQ(ended(p.apply(held, t0)), "1.1 disabled: agent a was disabled; ");
}

/// Nobody could take the order before.
TEST(PoolDisabling, EndsWhatAnInventoryHasNamedOnceItsAllocationSpeaks) {
  const agent_up up{"a", 2, {{to_string(run(1)), {0}}, {to_string(run(2)), {1}}}, {}};
  pool p(pool::phase::recovering);
  static_cast<void>(p.apply(up, t0));
  EXPECT_EQ(ended(p.apply(agent_drain{"a", true, {}, true}, t0)), "");
  slots_held held{run(1), {{"a", {0}}}, {}, 1};
  held.run.job.job = {1};
  EXPECT_EQ(ended(p.apply(held, t0)), "1.1 disabled: agent a was disabled; ");
  EXPECT_EQ(ended(p.apply(wants(2, 1), t0)), "2.1 disabled: agent a was disabled; ");
  EXPECT_EQ(p.details()["jobs"].size(), 2u);
}

std::string numbered(char letter, int n) { return letter + std::to_string(1000 + n); }

TEST(PoolExplain, OfManyAgentsShowsTheFreeOnesThatTheRunMayUseFirst) {
  explained_pool p;
  std::uint64_t trial = 1;
  for (int i = 0; i < 30; ++i)
    p.up(numbered('a', i), 1).ask(trial++, 1);
  for (int i = 0; i < 210; ++i)
    p.up(numbered('b', i), 1 + i % 2);
  p.ask(trial, 1000);
  std::map<int, int> count; // agents by their free slots
  std::string before;
  const auto said = p.why(trial);
  for (const auto& one : said["agents"]) {
    ++count[one["free"].get<int>()];
    EXPECT_LT(before, one["agent"].get<std::string>());
    before = one["agent"];
  }
  EXPECT_EQ(count, (std::map<int, int>{{1, 95}, {2, 105}}));
}

TEST(PoolExplain, OfManyAgentsShowsTheOnesThatTheRunMayNotUseLast) {
  explained_pool p;
  const auto rack = [](run_terms& r) {
    r.rules.labels["rack"] = {"x"};
    r.rules.single_node = true;
  };
  std::uint64_t trial = 1;
  for (int i = 0; i < 150; ++i)
    p.up(numbered('u', i), 2, "x").ask(trial++, 2, 42, rack);
  for (int i = 0; i < 5; ++i)
    p.up(numbered('z', i), 1, "x");
  for (int i = 0; i < 100; ++i)
    p.up(numbered('a', i), 1 + i % 2, "y");
  p.ask(trial, 2, 42, rack);
  std::map<char, int> count; // agents by the first letter of their names
  std::string last_refused;
  const auto said = p.why(trial);
  for (const auto& one : said["agents"]) {
    const auto name = one["agent"].get<std::string>();
    ++count[name[0]];
    if (name[0] == 'a') {
      EXPECT_EQ(one["free"], 2) << name;
      last_refused = name;
    }
  }
  EXPECT_EQ(count, (std::map<char, int>{{'a', 45}, {'u', 150}, {'z', 5}}));
  EXPECT_EQ(last_refused, numbered('a', 89)) << "of equal agents the first ones by name";
}

} // namespace
} // namespace troupe
