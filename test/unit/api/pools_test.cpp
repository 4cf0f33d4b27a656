// Tests the routes of pools, jobs and live changes in Determined's format, over a cluster that answers as it
// is told.

#include "table.hpp"

namespace troupe::api {
namespace {

using namespace std::chrono_literals;

value some_pools(const char* scheduler) {
  return {{"pools",
           {{{"name", "main"},
             {"default", true},
             {"scheduler", scheduler},
             {"preemption", true},
             {"fitting", "best"},
             {"defaultPriority", 42},
             {"auxPerAgent", 100},
             {"auxUsed", 3},
             {"device", "cpu"},
             {"slots", {{"total", 4}, {"used", 2}}},
             {"agents", 2},
             {"jobs",
              {{{"experiment", 7},
                {"priority", 10},
                {"weight", 2.0},
                {"maxSlots", nullptr},
                {"share", nullptr},
                {"used", 2},
                {"waiting", 1}}}}}}}};
}

struct pools_table : table {
  explicit pools_table(const char* scheduler = "priority") {
    cluster.answers["job.list"] = [scheduler](const fake_gate::heard&) -> result<value> {
      return some_pools(scheduler);
    };
  }
  value get(const std::string& target) {
    auto got = ask("GET", target, user());
    EXPECT_EQ(got.status, 200u) << target << got.body;
    return parse_json(got.body).value();
  }
  /// Returns the fields of the newest command with this name.
  value heard(const std::string& command) {
    value fields;
    for (const auto& one : cluster.all())
      if (one.command == command)
        fields = one.fields;
    return fields;
  }
};

TEST(Jobs, AreListedWithAllThatTheClientReads) {
  pools_table t;
  const auto jobs = t.get("/api/v1/job-queues-v2?resourcePool=main")["jobs"];
  ASSERT_EQ(jobs.size(), 1u);
  const auto job = jobs[0]["full"];
  for (const char* key : {"allocatedSlots", "entityId", "isPreemptible", "jobId", "name", "requestedSlots",
                          "resourcePool", "submissionTime", "type", "username", "workspaceId"})
    EXPECT_TRUE(job.contains(key)) << key;
  EXPECT_EQ(job["allocatedSlots"], 2);
  EXPECT_EQ(job["requestedSlots"], 3);
  EXPECT_EQ(job["priority"], 10);
  EXPECT_EQ(job["summary"]["jobsAhead"], 0);
  EXPECT_EQ(t.get("/api/v1/job-queues")["jobs"][0]["jobId"], job["jobId"]) << "the default pool";
  EXPECT_EQ(t.get("/api/v1/job-queues-v2?resourcePool=other")["jobs"].size(), 0u);
  const auto other_state = job["summary"]["state"] == "STATE_QUEUED" ? "STATE_SCHEDULED" : "STATE_QUEUED";
  EXPECT_EQ(t.get(std::string("/api/v1/job-queues-v2?states=") + other_state)["jobs"].size(), 0u);
  EXPECT_EQ(t.get("/api/v1/job-queues/stats")["results"][0]["resourcePool"], "main");
}

TEST(Jobs, SayTheSameOfTheirStateInListsAndWithTheExperiment) {
  const run_row ended{.run = {1}, .started = t0, .ended = t0 + 1s, .on = {{"a1", {0}}}},
    asks{.run = {2}, .started = t0 + 2s}, holds{.run = {2}, .started = t0 + 2s, .on = {{"a1", {0}}}},
    without_slots{.run = {2}, .started = t0 + 2s, .on = {{"a1", {}}}},
    fills{.run = {2}, .started = t0 + 2s, .on = {{"a1", {0}}}, .backfilled = true};
  const struct {
    const char* what;
    std::vector<run_row> first, second; ///< the runs of the two trials
    const char* state;
  } rows[] = {
    {"both wait", {asks}, {asks}, "STATE_QUEUED"},
    {"a run that has ended holds nothing", {ended}, {ended, asks}, "STATE_QUEUED"},
    {"one has its slots", {holds}, {asks}, "STATE_SCHEDULED"},
    {"without slots", {without_slots}, {}, "STATE_SCHEDULED"},
    {"backfilled", {ended, fills}, {asks}, "STATE_SCHEDULED_BACKFILLED"},
    {"one is more than backfilled", {holds}, {fills}, "STATE_SCHEDULED"},
  };
  for (const char* scheduler : {"priority", "fair"})
    for (const auto& row : rows) {
      pools_table t(scheduler);
      auto second = t.reader->trial_rows[12];
      second.id = {14};
      second.runs = row.second;
      t.reader->trial_rows[12].runs = row.first;
      t.reader->trial_rows[14] = second;
      auto pools = some_pools(scheduler);
      auto& jobs = pools["pools"][0]["jobs"];
      jobs.insert(jobs.begin(), jobs[0]);
      jobs[0]["experiment"] = 99; // The caller may not see this experiment, so no number may reveal it.
      jobs[1]["used"] = 0;
      t.cluster.answers["job.list"] = [pools](const fake_gate::heard&) -> result<value> { return pools; };
      t.cluster.answers["pool.details"] = [pools](const fake_gate::heard&) -> result<value> {
        auto seen = pools["pools"][0];
        seen["jobs"].erase(0); // the guard leaves this job out
        return seen;
      };
      const value summary{{"state", row.state},
                          {"jobsAhead", std::string_view(scheduler) == "fair" ? -1 : 0}};
      EXPECT_EQ(t.get("/api/v1/experiments/7")["jobSummary"], summary) << row.what;
      EXPECT_EQ(t.get("/api/v1/job-queues-v2")["jobs"][0]["full"]["summary"], summary) << row.what;
      EXPECT_EQ(t.get("/api/v1/job-queues")["jobs"][0]["summary"], summary) << row.what;
      t.cluster.answers["pool.details"] = [](const fake_gate::heard&) -> result<value> {
        return value{{"scheduler", "priority"}, {"jobs", value::array()}};
      };
      // "?pretty" avoids the stored answer
      const auto elsewhere = t.get("/api/v1/experiments/7?pretty")["jobSummary"];
      if (std::string_view(row.state) == "STATE_QUEUED")
        EXPECT_TRUE(elsewhere.is_null()) << row.what;
      else
        EXPECT_EQ(elsewhere, (value{{"state", row.state}, {"jobsAhead", 0}})) << row.what;
    }
}

TEST(Jobs, OfFairPoolsHaveAWeightAndNoNumberAhead) {
  pools_table t("fair");
  const auto job = t.get("/api/v1/job-queues-v2")["jobs"][0]["full"];
  EXPECT_EQ(job["weight"], 2.0);
  EXPECT_FALSE(job.contains("priority"));
  EXPECT_EQ(job["summary"]["jobsAhead"], -1);
  EXPECT_EQ(t.get("/api/v1/resource-pools")["resourcePools"][0]["schedulerType"],
            "SCHEDULER_TYPE_FAIR_SHARE");
}

TEST(Jobs, AreChangedTogetherOrNotAtAll) {
  pools_table t;
  const auto job = job_name({7});
  const auto post = [&](const value& update) {
    return t.ask("POST", "/api/v1/job-queues", t.user(), to_json({{"updates", value::array({update})}}));
  };
  EXPECT_EQ(post({{"jobId", job}, {"priority", 5}}).status, 200u);
  EXPECT_EQ(t.heard("experiment.set"), (value{{"id", 7}, {"priority", 5}}));
  EXPECT_EQ(post({{"jobId", job}, {"weight", 1.5}, {"resourcePool", "default"}}).status, 200u);
  EXPECT_EQ(t.heard("experiment.set")["pool"], "default");
  EXPECT_EQ(post({{"jobId", job}, {"aheadOf", "x"}}).status, 400u);
  EXPECT_EQ(post({{"jobId", job_name({99})}, {"priority", 5}}).status, 404u);
  EXPECT_EQ(post({{"priority", 5}}).status, 400u);
  t.cluster.calls.clear();
  const auto several = t.ask("POST", "/api/v1/job-queues", t.user(),
                             to_json({{"updates",
                                       {{{"jobId", job}, {"priority", 5}},
                                        {{"jobId", job}, {"priority", 0}, {"weight", 0}},
                                        {{"jobId", job}, {"resourcePool", "moon"}}}}}));
  EXPECT_EQ(several.status, 400u);
  EXPECT_NE(
    several.body.find("encountered the following errors: updates.priority: priority must be between 1 and "
                      "99, not 0; updates.weight: has to be above 0; there is no pool 'moon'"),
    std::string::npos)
    << several.body;
  EXPECT_TRUE(t.cluster.calls.empty()) << "the first was right, and is not carried out";
  for (const auto& [second, why] :
       {std::pair{value{{"jobId", job}, {"weight", 1e308}}, "updates.weight: has to be at most 1000000000"},
        {value{{"jobId", job}}, "updates: nothing is set for job"}}) {
    const auto no = t.ask("POST", "/api/v1/job-queues", t.user(),
                          to_json({{"updates", {{{"jobId", job}, {"priority", 5}}, second}}}));
    EXPECT_EQ(no.status, 400u) << no.body;
    EXPECT_NE(no.body.find(why), std::string::npos) << no.body;
    EXPECT_TRUE(t.cluster.calls.empty()) << why;
  }
  for (const auto& [body, why] :
       {std::pair{R"({"resources": {"weight": 1e308}})", "\"weight: has to be at most 1000000000\""},
        {R"({"resources": {"weight": 0}})", "\"weight: has to be above 0\""},
        {R"({"resources": {"priority": 0}})", "\"priority: priority must be between 1 and 99, not 0\""},
        {R"({"resources": {"maxSlots": 2000000000}})", "\"maxSlots: has to be at most 1000000000\""},
        {R"({"checkpointStorage": {"saveTrialBest": 2000000000}})",
         "\"checkpointStorage.saveTrialBest: has to be 0 to 1000000000\""}}) {
    const auto no = t.ask("PATCH", "/api/v1/experiments/7", t.user(), body);
    EXPECT_EQ(no.status, 400u) << body;
    EXPECT_NE(no.body.find(why), std::string::npos) << no.body;
    EXPECT_TRUE(t.cluster.calls.empty()) << body;
  }
  EXPECT_EQ(t.ask("POST", "/troupe/v1/experiments/7/resources", t.user(), R"({"weight": 0})").status, 200u)
    << "0 is the weight of what takes left-over slots alone";
  t.cluster.calls.clear();
  // An update that has become impossible since the check stops no other update.
  t.cluster.answers["experiment.set"] = [](const fake_gate::heard& x) {
    return x.fields.at("id") == 7 ? result<value>(error{errc::conflict, "experiment 7 has ended"})
                                  : result<value>(value::object());
  };
  const auto late = t.ask(
    "POST", "/api/v1/job-queues", t.user("admin"),
    to_json({{"updates", {{{"jobId", job}, {"priority", 5}}, {{"jobId", job_name({8})}, {"priority", 6}}}}}));
  EXPECT_EQ(late.status, 409u);
  EXPECT_NE(late.body.find("experiment 7 has ended"), std::string::npos) << late.body;
  EXPECT_EQ(t.heard("experiment.set"), (value{{"id", 8}, {"priority", 6}}));
}

TEST(ResourcePools, HaveAllThatTheClientReads) {
  pools_table t;
  const auto pool = t.get("/api/v1/resource-pools")["resourcePools"][0];
  for (const char* key : {"agentDockerImage",
                          "agentDockerNetwork",
                          "agentDockerRuntime",
                          "agentFluentImage",
                          "auxContainerCapacity",
                          "auxContainerCapacityPerAgent",
                          "auxContainersRunning",
                          "clusterName",
                          "containerStartupScript",
                          "defaultAuxPool",
                          "defaultComputePool",
                          "description",
                          "details",
                          "imageId",
                          "instanceType",
                          "location",
                          "masterCertName",
                          "masterUrl",
                          "maxAgentStartingPeriod",
                          "maxAgents",
                          "maxIdleAgentPeriod",
                          "minAgents",
                          "name",
                          "numAgents",
                          "preemptible",
                          "resourceManagerMetadata",
                          "schedulerFittingPolicy",
                          "schedulerType",
                          "slotType",
                          "slotsAvailable",
                          "slotsUsed",
                          "startupScript",
                          "type"})
    EXPECT_TRUE(pool.contains(key)) << key;
  EXPECT_EQ(pool["slotsAvailable"], 4);
  EXPECT_EQ(pool["auxContainerCapacity"], 200);
  EXPECT_EQ(pool["details"]["priorityScheduler"]["defaultPriority"], 42);
}

TEST(ResourcePools, TellWhatAProviderMayBring) {
  pools_table t;
  const auto fixed = t.get("/api/v1/resource-pools")["resourcePools"][0];
  EXPECT_EQ(fixed["minAgents"], 0);
  EXPECT_EQ(fixed["maxAgents"], 2);
  EXPECT_FALSE(fixed.contains("slotsPerAgent"));
  t.cluster.answers["job.list"] = [](const fake_gate::heard&) -> result<value> {
    auto pools = some_pools("priority");
    pools["pools"][0]["provider"] = {{"instanceSlots", 4},
                                     {"minInstances", 1},
                                     {"maxInstances", 9},
                                     {"maxIdleSeconds", 300.0},
                                     {"maxStartingSeconds", 1200.0}};
    return pools;
  };
  const auto elastic = t.get("/api/v1/resource-pools")["resourcePools"][0];
  EXPECT_EQ(elastic["numAgents"], 2) << "those that are there";
  EXPECT_EQ(elastic["minAgents"], 1);
  EXPECT_EQ(elastic["maxAgents"], 9);
  EXPECT_EQ(elastic["slotsPerAgent"], 4);
  EXPECT_EQ(elastic["maxIdleAgentPeriod"], 300);
  EXPECT_EQ(elastic["maxAgentStartingPeriod"], 1200);
}

TEST(LiveChanges, OfAnExperimentComeByTwoRoutes) {
  pools_table t;
  EXPECT_EQ(
    t.ask("PATCH", "/api/v1/experiments/7", t.user(), R"({"id": 7, "resources": {"maxSlots": null}})").status,
    200u);
  EXPECT_EQ(t.heard("experiment.set"), (value{{"id", 7}, {"max_slots", -1}}));
  EXPECT_TRUE(t.heard("experiment.describe").is_null()) << "nothing else was asked for";
  EXPECT_EQ(
    t.ask("PATCH", "/api/v1/experiments/7", t.user(), R"({"name": "n", "resources": {"weight": 3}})").status,
    200u);
  EXPECT_EQ(t.heard("experiment.set")["weight"], 3.0);
  EXPECT_EQ(t.heard("experiment.describe")["name"], "n");
  EXPECT_EQ(
    t.ask("POST", "/troupe/v1/experiments/7/resources", t.user(), R"({"pool": "gpu", "maxSlots": 2})").status,
    200u);
  EXPECT_EQ(t.heard("experiment.set"), (value{{"id", 7}, {"max_slots", 2}, {"pool", "gpu"}}));
  EXPECT_EQ(t.ask("POST", "/troupe/v1/experiments/7/resources", t.user(), R"({"weight": "much"})").status,
            400u);
}

TEST(Creation, HandsOnTheWarningsOfThePool) {
  pools_table t;
  const auto warnings = [&t](const char* path, value created) {
    t.cluster.answers["experiment.create"] = [created](const fake_gate::heard&) -> result<value> {
      return created;
    };
    const auto got = t.ask("POST", path, t.user(), R"({"config": "name: x"})");
    EXPECT_EQ(got.status, 200u) << got.body;
    return parse_json(got.body).value()["warnings"];
  };
  const char *const own = "/troupe/v1/experiments", *const stock = "/api/v1/experiments";
  const auto larger = value::array({"LAUNCH_WARNING_LARGER_THAN_INSTANCES"});
  EXPECT_EQ(warnings(own, {{"id", 7}, {"warnings", larger}}), larger);
  EXPECT_EQ(warnings(stock, {{"id", 7}, {"warnings", larger}}),
            value::array({"LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED"}))
    << "the one code that Determined's client knows";
  EXPECT_EQ(warnings(own, {{"id", 7}, {"warnings", value::array()}}), value::array());
}

TEST(Disabling, KillsUnlessItIsToDrain) {
  pools_table t;
  t.cluster.answers["agent.list"] = [](const fake_gate::heard&) -> result<value> {
    return value{{"agents",
                  {{{"id", "x"},
                    {"name", "a1"},
                    {"enabled", false},
                    {"draining", false},
                    {"slots", {{{"id", 0}, {"enabled", false}, {"draining", true}}}}}}}};
  };
  auto got = t.ask("POST", "/api/v1/agents/a1/disable", t.user("admin"), "");
  ASSERT_EQ(got.status, 200u) << got.body;
  EXPECT_EQ(parse_json(got.body).value()["agent"]["enabled"], false);
  EXPECT_EQ(t.heard("agent.drain")["ends"], true);
  got = t.ask("POST", "/api/v1/agents/a1/slots/0/disable", t.user("admin"), R"({"drain": true})");
  ASSERT_EQ(got.status, 200u) << got.body;
  EXPECT_EQ(parse_json(got.body).value()["slot"]["draining"], true);
  EXPECT_EQ(t.heard("agent.drain")["ends"], false);
  EXPECT_EQ(t.heard("agent.drain")["slot"], 0);
  EXPECT_EQ(t.ask("POST", "/api/v1/agents/a1/slots/one/disable", t.user("admin"), "").status, 404u);
  EXPECT_EQ(t.ask("POST", "/api/v1/agents/a1/enable", t.user(), "").status, 403u);
}

TEST(Tasks, SayTheirPoolAndPriority) {
  pools_table t;
  const auto all = t.get("/api/v1/tasks")["allocationIdToSummary"];
  ASSERT_FALSE(all.empty());
  bool seen = false;
  for (const auto& [name, one] : all.items())
    if (one["taskId"].get<std::string>().starts_with("7.")) {
      seen = true;
      EXPECT_EQ(one["resourcePool"], "main");
      EXPECT_EQ(one["priority"], 10);
      EXPECT_EQ(one["schedulerType"], "priority");
    }
  EXPECT_TRUE(seen) << all.dump();
}

} // namespace
} // namespace troupe::api
