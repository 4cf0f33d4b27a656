// Tests routes that serve every kind of task, with a task that is not a trial and belongs to no experiment.

#include "table.hpp"

#include <gtest/gtest.h>

namespace troupe::api {
namespace {

const task_id shell = task_id::of(task_kind::shell, 1, 2);
const allocation_id first{shell, {1}}, second{shell, {2}};

/// A table with a shell of `determined` whose run 2 is open.
struct with_a_shell : table {
  with_a_shell() {
    auto& task = reader->uuid_tasks[shell];
    task.row = {.id = shell, .owner = "determined", .created = t0, .run = {2}, .open = true};
    run_row run;
    run.run = {1};
    run.started = t0;
    run.ended = t0 + 1s;
    task.runs.push_back(run);
    run.run = {2};
    run.ended = {};
    run.on = {{"a1", {0}}};
    task.runs.push_back(run);
    reader->log_lines.push_back({.number = 1, .at = t0, .allocation = second, .text = "hello from a shell"});
  }
  int status(const std::string& method, const std::string& target, request_headers headers,
             const std::string& body = {}) {
    return ask(method, target, std::move(headers), body).status;
  }
};

TEST(OtherTasks, AreListedAndShownByTheirUuid) {
  with_a_shell t;
  const auto name = to_string(shell);
  const auto task = parse_json(t.ask("GET", "/api/v1/tasks/" + name, t.user()).body).value()["task"];
  EXPECT_EQ(task["taskId"], name);
  EXPECT_EQ(task["taskType"], "TASK_TYPE_SHELL");
  ASSERT_EQ(task["allocations"].size(), 2u);
  EXPECT_EQ(task["allocations"][1]["allocationId"], name + ".2");
  const auto allocation =
    parse_json(t.ask("GET", "/api/v1/allocations/" + name + ".2", t.user()).body).value();
  EXPECT_EQ(allocation["allocation"]["state"], "STATE_RUNNING");
  const auto all = parse_json(t.ask("GET", "/api/v1/tasks", t.user()).body).value()["allocationIdToSummary"];
  ASSERT_TRUE(all.contains(name + ".2")) << to_json(all);
  EXPECT_EQ(all[name + ".2"]["name"], "shell " + name);
  EXPECT_EQ(t.status("GET", "/api/v1/tasks/" + to_string(task_id::of(task_kind::shell, 3, 4)), t.user()),
            404);
  EXPECT_EQ(t.status("GET", "/api/v1/allocations/" + name + ".3", t.user()), 404);
}

/// A table with a collection of checkpoints of experiment 7, which is over if `ended` is true, and waits for
/// an agent if `placed` is false.
struct with_a_collection : table {
  const task_id gc = task_id::of(task_kind::checkpoint_gc, 1, 2);
  explicit with_a_collection(bool ended, bool placed = true) {
    auto& task = reader->uuid_tasks[gc];
    task.row = {
      .id = gc, .experiment = {7}, .owner = "determined", .created = t0, .run = {1}, .open = !ended};
    run_row run;
    run.run = {1};
    run.started = t0;
    run.placed = placed ? t0 : time_point{};
    auto& made = task.detail.made;
    made.at = t0;
    made.id = gc;
    made.owner = "determined";
    made.name = "Checkpoint GC (Experiment 7)";
    made.config = value::object();
    made.pool = "default";
    made.details = {{"experiment", 7}};
    if (ended) {
      task.row.ended = run.ended = task.detail.ended = t0 + 1s;
      task.detail.state = task_state::completed;
      task.detail.exit_code = 0;
    }
    task.runs = task.detail.runs = {run};
    reader->log_lines.push_back({.number = 1,
                                 .at = t0,
                                 .allocation = {gc, {1}},
                                 .stream = "troupe",
                                 .level = "INFO",
                                 .text = "Checkpoint u: 5 files removed"});
  }
  value get(const std::string& target) { return parse_json(ask("GET", target, user()).body).value(); }
};

TEST(Collections, AreInTheListOfTasksWhileTheyRun) {
  with_a_collection t(false);
  t.cluster.answers["job.list"] = [](const auto&) {
    return value{{"pools", {{{"name", "default"}, {"scheduler", "fair"}, {"jobs", value::array()}}}}};
  };
  const auto name = to_string(t.gc);
  const auto all = t.get("/api/v1/tasks")["allocationIdToSummary"];
  ASSERT_TRUE(all.contains(name + ".1")) << to_json(all);
  const auto& one = all[name + ".1"];
  EXPECT_EQ(one["name"], "Checkpoint GC (Experiment 7)");
  EXPECT_EQ(one["taskId"], name);
  EXPECT_EQ(one["slotsNeeded"], 0);
  EXPECT_EQ(one["resourcePool"], "default");
  EXPECT_EQ(one["schedulerType"], "fair_share");
  EXPECT_EQ(one["resources"], value::array());
  const auto task = t.get("/api/v1/tasks/" + name)["task"];
  EXPECT_EQ(task["taskType"], "TASK_TYPE_CHECKPOINT_GC");
  EXPECT_FALSE(task.contains("endTime"));
  ASSERT_EQ(task["allocations"].size(), 1u);
  EXPECT_EQ(task["allocations"][0]["state"], "STATE_RUNNING");
  EXPECT_EQ(t.get("/api/v1/tasks/count"),
            (value{{"commands", 0}, {"notebooks", 0}, {"shells", 0}, {"tensorboards", 0}}));
}

TEST(Collections, AreQueuedWhileTheyWaitForAnAgent) {
  with_a_collection t(false, false);
  const auto task = t.get("/api/v1/tasks/" + to_string(t.gc))["task"];
  EXPECT_EQ(task["allocations"][0]["state"], "STATE_QUEUED");
}

TEST(Collections, AreShownAfterTheirEndWithTheirLog) {
  with_a_collection t(true);
  const auto name = to_string(t.gc);
  EXPECT_FALSE(t.get("/api/v1/tasks")["allocationIdToSummary"].contains(name + ".1"));
  const auto task = t.get("/api/v1/tasks/" + name)["task"];
  EXPECT_TRUE(task.contains("endTime"));
  EXPECT_EQ(task["allocations"][0]["state"], "STATE_TERMINATED");
  const auto log = t.ask("GET", "/api/v1/tasks/" + name + "/logs", t.user());
  EXPECT_EQ(log.status, 200);
  EXPECT_NE(log.body.find("INFO: Checkpoint u: 5 files removed"), std::string::npos) << log.body;
  const auto fields = t.ask("GET", "/api/v1/tasks/" + name + "/logs/fields", t.user());
  EXPECT_EQ(fields.status, 200);
  EXPECT_NE(fields.body.find("\"master\""), std::string::npos) << fields.body;
  EXPECT_EQ(t.get("/api/v1/tasks/" + name + "/context_directory")["b64Tgz"], "");
}

TEST(OtherTasks, HaveALogOfTheirOwn) {
  with_a_shell t;
  const auto logs = "/api/v1/tasks/" + to_string(shell) + "/logs";
  for (const auto& who : {t.user(), t.task(second)}) {
    const auto got = t.ask("GET", logs, who);
    EXPECT_EQ(got.status, 200);
    EXPECT_NE(got.body.find("hello from a shell"), std::string::npos) << got.body;
    EXPECT_NE(got.body.find(to_string(second)), std::string::npos) << got.body;
  }
  EXPECT_EQ(t.status("GET", logs, t.task()), 200) << "another task looks at what its owner may look at";
  EXPECT_EQ(t.status("GET", logs + "/fields", t.task(second)), 200);
}

TEST(OtherTasks, SpeakWithTheTokenOfTheirOpenRunOnly) {
  with_a_shell t;
  const auto allocations = "/api/v1/allocations/" + to_string(second);
  EXPECT_EQ(t.status("POST", allocations + "/signals/ack_preemption", t.task(second)), 200);
  ASSERT_EQ(t.cluster.calls.size(), 1u);
  EXPECT_EQ(t.cluster.calls[0].who.user, "determined");
  EXPECT_EQ(t.cluster.calls[0].who.allocation, to_string(second));
  EXPECT_EQ(t.cluster.calls[0].fields["experiment"], 0);
  EXPECT_EQ(t.status("POST", allocations + "/signals/ack_preemption", t.task(first)), 401)
    << "a run that has ended";
  EXPECT_EQ(t.status("POST", allocations + "/signals/ack_preemption", t.task()), 403) << "another task's run";
  EXPECT_EQ(t.status("GET", "/api/v1/trials/12", t.task(second)), 200);
  EXPECT_EQ(t.status("POST", "/api/v1/trials/12/kill", t.task(second)), 403);
  EXPECT_EQ(t.status("POST", "/api/v1/experiments/7/pause", t.task(second)), 403);
  const auto files = t.ask("GET", "/api/v1/tasks/" + to_string(shell) + "/context_directory", t.task(second));
  EXPECT_EQ(files.status, 200);
  EXPECT_EQ(parse_json(files.body).value()["b64Tgz"], "");
}

TEST(OtherTasks, AreSpokenForByWhoMayChangeThem) {
  with_a_shell t;
  const auto open = "/api/v1/allocations/" + to_string(second);
  const auto ended = "/api/v1/allocations/" + to_string(first);
  EXPECT_EQ(t.status("POST", open + "/ready", t.user()), 200);
  ASSERT_EQ(t.cluster.calls.size(), 1u);
  EXPECT_EQ(t.cluster.calls[0].command, "task.answers");
  EXPECT_EQ(t.cluster.calls[0].fields["allocation"], to_string(second));
  EXPECT_EQ(t.status("POST", "/api/v1/allocations/12.2/ready", t.user()), 200) << "a trial has no service";
  const std::pair<const char*, const char*> rows[] = {
    {"/ready", ""},
    {"/waiting", ""},
    {"/proxy_address", R"({"proxyAddress": "127.0.0.1"})"},
    {"/notify_container_running",
     R"({"requestUuid": "x", "numPeers": 1, "rank": 0, "nodeName": "n", "data": {}})"},
  };
  for (const auto& [what, body] : rows) {
    EXPECT_EQ(t.status("POST", open + what, t.user(), body), 200) << what;
    EXPECT_EQ(t.status("POST", open + what, t.task(second), body), 200) << what;
    EXPECT_EQ(t.status("POST", open + what, t.task(), body), 403) << what << " by another task";
    EXPECT_EQ(t.status("POST", ended + what, t.user(), body), 404) << what << " of a run that has ended";
    EXPECT_EQ(t.status("POST", std::string("/api/v1/allocations/77.1") + what, t.user(), body), 404) << what;
    EXPECT_EQ(t.status("POST", std::string("/api/v1/allocations/nothing") + what, t.user(), body), 404);
  }
}

TEST(OtherTasks, OfAnOwnerWhoIsNotActiveReportAndLookAtTheirOwnAlone) {
  with_a_shell t;
  const auto own = "/api/v1/tasks/" + to_string(shell) + "/logs";
  const auto others = "/api/v1/trials/12";
  EXPECT_EQ(t.status("GET", others, t.task(second)), 200);
  user_changed gone{t0, "admin", {t.users->find("determined")->id}, "determined"};
  gone.active = false;
  t.users->take(gone);
  ASSERT_FALSE(t.users->find("determined")->active);
  EXPECT_EQ(t.status("GET", others, t.task(second)), 403);
  EXPECT_EQ(t.status("GET", own, t.task(second)), 200);
  const auto me = parse_json(t.ask("GET", "/api/v1/me", t.task(second)).body).value()["user"];
  EXPECT_EQ(me["username"], "determined");
  EXPECT_EQ(me["active"], false);
  EXPECT_EQ(
    t.status("POST", "/api/v1/allocations/" + to_string(second) + "/signals/ack_preemption", t.task(second)),
    200);
}

} // namespace
} // namespace troupe::api
