// Compares every answer that the API gives with the classes of the client: required keys are present and not
// null, and no enum value is unknown.

#include "table.hpp"

#include "runtime/api/errors.hpp"
#include "runtime/api/fact_shape.hpp"
#include "runtime/api/openapi.hpp"
#include "runtime/api/router.hpp"

#include <fstream>
#include <sstream>

namespace troupe::api {
namespace {

TEST(Shapes, WhatLosesItsPartsIsToldAsUnknown) {
  table t;
  auto& experiment = t.reader->experiment_rows[7];
  const auto told = [&](const std::string& method, const std::string& target) {
    const auto got = t.ask(method, target, t.user(), method == "POST" ? "{}" : "");
    const auto body = parse_json(got.body);
    return std::to_string(got.status) +
           (body && body->is_object() ? " " + body->value("message", std::string()) : " ");
  };
  const std::pair<std::string, std::string> cases[] = {
    {"/api/v1/experiments/7/trials", "404 experiment '7' not found"},
    {"/api/v1/experiments/7/checkpoints", "404 experiment '7' not found"},
    {"/troupe/v1/experiments/7/outcome", "404 experiment '7' not found"},
    {"/troupe/v1/experiments/7/pareto", "404 experiment '7' not found"},
    {"/experiments/7/preview_gc", "404 experiment '7' not found"},
    {"/api/v1/trials/12", "404 trial '12' not found"},
    {"/api/v1/trials/12/checkpoints", "404 trial '12' not found"},
    {"/api/v1/checkpoints/c1", "404 checkpoint 'c1' not found"},
  };
  for (const auto& [target, said] : cases)
    EXPECT_EQ(told("GET", target), "200 ") << target;
  t.reader->metric_rows.erase(12); // the first step of the deletion of a trial
  experiment.state = experiment_state::deleting;
  for (const auto& [target, said] : cases)
    EXPECT_EQ(told("GET", target), said) << target;
  EXPECT_EQ(told("POST", "/api/v1/experiments-search"), "200 ");
  experiment.state = experiment_state::completed; // only its trial is deleted
  t.reader->trial_rows[12].deletion = deletion_step::ordered;
  for (const auto& [target, said] : cases)
    if (target.find("experiments/7/") != target.npos) {
      EXPECT_EQ(told("GET", target), "200 ") << target;
    }
  EXPECT_EQ(told("GET", "/api/v1/trials/12"), "404 trial '12' not found");
}

value data_file(const char* name) {
  std::ifstream in(std::string(TROUPE_SOURCE_DIR "/test/data/api/") + name);
  return value::parse(in);
}
const value& required() {
  static const value x = data_file("required-fields.json");
  return x;
}
const value& bindings() {
  static const value x = data_file("bindings.json");
  return x;
}

void check(const value& x, const std::string& type, const std::string& where);

void check_nested(const value& x, const value& rule, const std::string& where) {
  const std::string how = rule[0], type = rule[1];
  if (how == "enum") {
    const auto& names = bindings()["enums"][type];
    EXPECT_NE(std::find(names.begin(), names.end(), x), names.end())
      << where << ": " << x << " is no " << type;
  } else if (how == "one")
    check(x, type, where);
  else if (how == "list") {
    ASSERT_TRUE(x.is_array()) << where;
    for (const auto& one : x)
      check(one, type, where + "[]");
  } else {
    ASSERT_TRUE(x.is_object()) << where << ": " << x;
    for (const auto& [key, one] : x.items())
      check(one, type, where + "{" + key + "}");
  }
}

void check(const value& x, const std::string& type, const std::string& where) {
  ASSERT_TRUE(x.is_object()) << where << " is no " << type << ": " << x;
  ASSERT_TRUE(required().contains(type)) << type;
  const auto& nested = bindings()["nested"].value(type, value::object());
  for (const std::string key : required()[type]["required"]) {
    EXPECT_TRUE(x.contains(key)) << where << ": " << type << " needs " << key;
    EXPECT_FALSE(nested.contains(key) && x.value(key, value(0)).is_null()) << where << "." << key;
  }
  for (const auto& [key, rule] : nested.items())
    if (x.contains(key) && !x[key].is_null())
      check_nested(x[key], rule, where + "." + key);
}

TEST(Shapes, EveryAnswerFitsTheClientsClass) {
  table t;
  const std::string task = task_name({7}, trial_id{12}),
                    allocation = allocation_name({7}, {trial_id{12}, {2}});
  enum { as_user, as_admin, as_task };
  struct {
    int who;
    const char* method;
    std::string target, body;
    const char* type;
  } cases[] = {
    {as_user, "POST", "/api/v1/auth/login", R"({"username":"admin"})", "v1LoginResponse"},
    {as_user, "GET", "/api/v1/me", "", "v1GetMeResponse"},
    {as_task, "GET", "/api/v1/me", "", "v1GetMeResponse"},
    {as_user, "GET", "/api/v1/master", "", "v1GetMasterResponse"},
    {as_user, "GET", "/api/v1/users?limit=1", "", "v1GetUsersResponse"},
    {as_user, "GET", "/api/v1/users/1", "", "v1GetUserResponse"},
    {as_user, "GET", "/api/v1/users/admin/by-username", "", "v1GetUserByUsernameResponse"},
    {as_admin, "POST", "/api/v1/users",
     R"({"user":{"username":"ada","active":true,"admin":false},"password":""})", "v1PostUserResponse"},
    {as_admin, "PATCH", "/api/v1/users/3",
     R"({"displayName":"Ada","agentUserGroup":{"agentUid":5,"agentGid":6,"agentUser":"u","agentGroup":"g"}})",
     "v1PatchUserResponse"},
    {as_user, "GET", "/api/v1/agents", "", "v1GetAgentsResponse"},
    {as_user, "GET", "/api/v1/agents/a1", "", "v1GetAgentResponse"},
    {as_user, "GET", "/api/v1/agents/a1/slots", "", "v1GetSlotsResponse"},
    {as_user, "GET", "/api/v1/agents/a1/slots/0", "", "v1GetSlotResponse"},
    {as_user, "GET", "/api/v1/experiments", "", "v1GetExperimentsResponse"},
    {as_user, "GET", "/api/v1/experiments/7", "", "v1GetExperimentResponse"},
    {as_user, "POST", "/api/v1/experiments",
     R"({"config":"name: x","modelDefinition":[{"path":"a.py","type":48,"content":"eA==","mtime":"1","mode":420,"uid":0,"gid":0}]})",
     "v1CreateExperimentResponse"},
    {as_user, "POST", "/api/v1/experiments", R"({"config":"name: x","validateOnly":true})",
     "v1CreateExperimentResponse"},
    {as_user, "GET", "/api/v1/experiments/7/trials", "", "v1GetExperimentTrialsResponse"},
    {as_user, "GET",
     "/api/v1/experiments/7/checkpoints?sortByAttr=SORT_BY_SEARCHER_METRIC&orderBy=ORDER_BY_DESC", "",
     "v1GetExperimentCheckpointsResponse"},
    {as_user, "GET", "/api/v1/experiments/7/model_def", "", "v1GetModelDefResponse"},
    {as_task, "GET", "/api/v1/experiments/7/searcher/best_searcher_validation_metric", "",
     "v1GetBestSearcherValidationMetricResponse"},
    {as_user, "GET", "/api/v1/trials/12", "", "v1GetTrialResponse"},
    {as_user, "GET", "/api/v1/trials/12/workloads?limit=500", "", "v1GetTrialWorkloadsResponse"},
    {as_user, "GET", "/api/v1/trials/12/checkpoints", "", "v1GetTrialCheckpointsResponse"},
    {as_user, "GET", "/api/v1/trials/12/logs", "", "stream v1TrialLogsResponse"},
    {as_user, "GET", "/api/v1/trials/12/logs/fields", "", "stream v1TrialLogsFieldsResponse"},
    {as_user, "GET", "/api/v1/trials/metrics/training_metrics?trialIds=12", "",
     "stream v1GetTrainingMetricsResponse"},
    {as_user, "GET", "/api/v1/trials/metrics/validation_metrics?trialIds=12", "",
     "stream v1GetValidationMetricsResponse"},
    {as_user, "GET", "/api/v1/trials/metrics/trial_metrics?trialIds=12&group=training", "",
     "stream v1GetMetricsResponse"},
    {as_user, "GET", "/api/v1/checkpoints/c1", "", "v1GetCheckpointResponse"},
    {as_user, "GET", "/api/v1/tasks", "", "v1GetTasksResponse"},
    {as_user, "GET", "/api/v1/tasks/" + task, "", "v1GetTaskResponse"},
    {as_user, "GET", "/api/v1/tasks/" + task + "/logs", "", "stream v1TaskLogsResponse"},
    {as_user, "GET", "/api/v1/allocations/" + allocation, "", "v1GetAllocationResponse"},
    {as_task, "GET", "/api/v1/tasks/" + task + "/context_directory", "", "v1GetTaskContextDirectoryResponse"},
    {as_task, "GET", "/api/v1/allocations/" + allocation + "/resources/r1/rendezvous", "",
     "v1AllocationRendezvousInfoResponse"},
    {as_task, "GET", "/api/v1/allocations/" + allocation + "/signals/preemption?timeout_seconds=0", "",
     "v1AllocationPreemptionSignalResponse"},
    {as_task, "POST", "/api/v1/allocations/" + allocation + "/all_gather",
     R"({"allocationId":"x","requestUuid":"u","numPeers":1,"data":{"a":1}})",
     "v1AllocationAllGatherResponse"},
    {as_task, "POST", "/api/v1/runs/start", R"({"runId":12,"checkpointStorage":null})",
     "v1RunPrepareForReportingResponse"},
    {as_task, "GET", "/api/v1/runs/12/metadata", "", "v1GetRunMetadataResponse"},
    {as_task, "POST", "/api/v1/runs/12/metadata", R"({"runId":12,"metadata":{"a":1}})",
     "v1PostRunMetadataResponse"},
  };
  for (const auto& one : cases) {
    auto got =
      t.ask(one.method, one.target,
            one.who == as_task ? t.task() : t.user(one.who == as_admin ? "admin" : "determined"), one.body);
    ASSERT_EQ(got.status, 200u) << one.target << ": " << got.body;
    const std::string type = one.type;
    if (!type.starts_with("stream ")) {
      check(*parse_json(got.body), type, one.target);
      continue;
    }
    std::istringstream lines(got.body);
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count)
      check((*parse_json(line))["result"], type.substr(7), one.target);
    EXPECT_GT(count, 0) << one.target;
  }
}

TEST(Shapes, EveryOperationOfTheContractIsBuilt) {
  router all{all_routes()};
  for (const auto& one : bindings()["operations"]) {
    auto m = all.find(one[0].get<std::string>(), parse_target(one[1].get<std::string>())->segments);
    ASSERT_NE(m.found, nullptr) << one;
    const std::string answers = m.found->answers, known = one[2];
    const bool says_more = !answers.empty() && answers != "Empty" && !known.empty();
    EXPECT_EQ(says_more ? answers : "", says_more ? (one[3].get<bool>() ? "stream of " : "") + known : "")
      << one;
  }
}

TEST(Shapes, EachTaskOfAContinuedTrialHasItsOwnLog) {
  table t;
  t.reader->trial_rows[12].continued = {{1}};
  t.reader->log_lines.insert(t.reader->log_lines.begin(),
                             {0, t0, {{12}, {1}}, "a0", 0, "stderr", "", "line 0"});
  for (auto& line : t.reader->log_lines)
    ++line.number;
  const std::string first = "7.00000000-0000-4000-8000-00000000000c";
  const auto texts = [&](const std::string& path) {
    std::istringstream body(t.ask("GET", path, t.user()).body);
    std::string all;
    for (std::string line; std::getline(body, line);)
      all += (*parse_json(line))["result"]["log"].get<std::string>();
    return all;
  };
  for (const char* query : {"", "?follow=true"})
    EXPECT_EQ(texts("/api/v1/tasks/" + first + "/logs" + query), "line 0\n") << "its end is known";
  EXPECT_EQ(texts("/api/v1/tasks/" + first + "-1/logs"), "line 1\nline 2\nline 3\n");
  EXPECT_EQ(texts("/api/v1/tasks/" + first + "-1/logs?limit=1"), "line 1\n");
  EXPECT_EQ(texts("/api/v1/trials/12/logs"), "line 0\nline 1\nline 2\nline 3\n");
  const auto agents = [&](const std::string& path) {
    return (*parse_json(t.ask("GET", path + "/logs/fields", t.user()).body))["result"]["agentIds"];
  };
  EXPECT_EQ(agents("/api/v1/tasks/" + first), value::array({"a0"}));
  EXPECT_EQ(agents("/api/v1/tasks/" + first + "-1"), value::array({"a1"}));
  EXPECT_EQ(agents("/api/v1/trials/12"), value::array({"a0", "a1"}));
}

TEST(Shapes, NumbersAndTextFollowTheGateway) {
  table t;
  auto trial = *parse_json(t.ask("GET", "/api/v1/trials/12", t.user()).body);
  EXPECT_EQ(trial["trial"]["totalCheckpointSize"], "5");
  EXPECT_EQ(trial["trial"]["bestValidation"]["metrics"]["avgMetrics"]["odd"], "NaN");
  EXPECT_EQ(trial["trial"]["bestCheckpoint"]["resources"], (value{{"model.pt", "5"}, {"code/", "0"}}));
  EXPECT_EQ(trial["trial"]["taskId"], "7.00000000-0000-4000-8000-00000000000c");
  auto checkpoint = (*parse_json(t.ask("GET", "/api/v1/checkpoints/c1", t.user()).body))["checkpoint"];
  EXPECT_EQ(checkpoint["training"]["searcherMetric"], 0.9);
  EXPECT_EQ(checkpoint["trialId"], 12);
  auto log = t.ask("GET", "/api/v1/trials/12/logs?limit=1&orderBy=ORDER_BY_DESC", t.user()).body;
  EXPECT_EQ((*parse_json(log))["result"]["message"],
            "[2023-11-14T22:13:20.000000Z]          [rank=0] || line 3\n");
  auto report = *parse_json(t.ask("GET", "/troupe/v1/trials/12/metrics", t.user()).body);
  ASSERT_EQ(report.size(), 3u);
  EXPECT_EQ(report[2], (value{{"row", 3},
                              {"group", "training"},
                              {"totalBatches", 150},
                              {"trialRunId", 1},
                              {"endTime", to_rfc3339(t0 + 6s)},
                              {"archived", true},
                              {"metrics", {{"loss", 0.4}}}}));
  auto outcome = *parse_json(t.ask("GET", "/troupe/v1/experiments/7/outcome", t.user()).body);
  EXPECT_EQ(outcome["bestTrial"]["bestValidation"]["metrics"]["avgMetrics"]["accuracy"], 0.9);
  EXPECT_EQ(outcome["bestCheckpoint"]["path"], "/nonexistent/c1");
  EXPECT_EQ(t.ask("GET", "/troupe/v1/checkpoints/c1/files", t.user()).status, 404u);
  const struct {
    value storage;
    const char* path;
  } places[] = {
    {{{"type", "shared_fs"}, {"host_path", "/nonexistent"}}, "/nonexistent/c1"},
    {{{"type", "s3"}, {"bucket", "b"}, {"prefix", nullptr}}, "s3://b/c1"},
    {{{"type", "s3"}, {"bucket", "b"}, {"prefix", "/p//q/./"}}, "s3://b/p/q/c1"},
    {{{"type", "gcs"}, {"bucket", "b"}, {"prefix", "p"}}, "gs://b/p/c1"},
    {{{"type", "azure"}, {"container", "c"}, {"connection_string", "C"}}, "azure://c/c1"},
  };
  for (const auto& place : places) {
    t.reader->experiment_rows[7].config = value{{"checkpoint_storage", place.storage}};
    outcome = *parse_json(t.ask("GET", "/troupe/v1/experiments/7/outcome", t.user()).body);
    EXPECT_EQ(outcome["bestCheckpoint"]["path"], place.path);
  }
}

TEST(Shapes, PagesAsTheContractSays) {
  struct {
    const char* query;
    int first, last; // -1: the query is refused
  } cases[] = {{"", 0, 10},
               {"limit=3", 0, 3},
               {"offset=8&limit=5", 8, 10},
               {"limit=-1", 0, 10},
               {"limit=-2", 0, 0},
               {"offset=-2", 8, 10},
               {"offset=11", -1, -1},
               {"offset=10", 10, 10},
               {"limit=x", -1, -1},
               {"limit=-3", -1, -1},
               {"offset=-11", -1, -1},
               {"limit=2147483647", 0, 10},
               {"limit=2147483648", -1, -1}};
  for (const auto& one : cases) {
    auto p = page_of(parse_target(std::string("/x?") + one.query)->query, 10);
    EXPECT_EQ(static_cast<bool>(p), one.first >= 0) << one.query;
    if (p) {
      EXPECT_EQ(static_cast<int>(p->first), one.first) << one.query;
      EXPECT_EQ(p->pagination["endIndex"], one.last) << one.query;
      EXPECT_EQ(p->pagination["total"], 10) << one.query;
    }
  }
}

TEST(Shapes, ErrorsHaveTheThreeFieldBody) {
  struct {
    errc code;
    unsigned status;
  } cases[] = {{errc::invalid, 400},     {errc::not_found, 404},    {errc::conflict, 409},
               {errc::denied, 403},      {errc::unauthorized, 401}, {errc::busy, 429},
               {errc::no_space, 503},    {errc::unreachable, 503},  {errc::timeout, 504},
               {errc::unsupported, 501}, {errc::corrupt, 500},      {errc::io, 500},
               {errc::internal, 500},    {errc::gap, 409}};
  for (const auto& one : cases) {
    auto got = failure({one.code, "why"});
    EXPECT_EQ(got.status, one.status) << name(one.code);
    auto body = *parse_json(got.body);
    EXPECT_EQ(body["error"]["error"], "why");
    EXPECT_EQ(body["message"], "why");
    EXPECT_TRUE(body["error"]["code"].is_number() && body["error"]["reason"].is_string());
  }
  table t;
  t.cluster.answers["experiment.activate"] = [](const auto&) {
    return result<value>(error{errc::conflict, "experiment in incompatible state COMPLETED"});
  };
  auto got = t.ask("POST", "/api/v1/experiments/7/activate", t.user());
  EXPECT_EQ(got.status, 400u);
  EXPECT_EQ((*parse_json(got.body))["error"]["reason"], "FailedPrecondition");
}

TEST(OpenApi, DocumentIsCurrent) {
  const auto made = to_json(openapi_document(all_routes()), 1) + "\n";
  const std::string file = TROUPE_SOURCE_DIR "/docs/openapi.json";
  std::ifstream in(file);
  std::ostringstream kept;
  kept << in.rdbuf();
  if (kept.str() != made)
    std::ofstream(TROUPE_BINARY_DIR "/openapi.json") << made;
  EXPECT_TRUE(kept.str() == made) << "docs/openapi.json is not current; take " TROUPE_BINARY_DIR
                                     "/openapi.json";
}

TEST(Shapes, AFactOfTheClusterNamesWhatItIsAbout) {
  user_setting_changed setting;
  setting.user = {4};
  workspace_changed workspace;
  workspace.id = {3};
  project_changed project;
  project.id = {9};
  project.workspace = {3};
  model_version_changed version;
  version.model = {5};
  user_changed user;
  user.id = {2};
  const struct {
    fact of;
    const char* entity;
  } cases[] = {{workspace, "workspace/3"}, {project, "workspace/3"}, {version, "model/5"},
               {user, "user/2"},           {setting, "user/4"},      {group_changed{}, "cluster"}};
  for (const auto& one : cases) {
    const auto shape = fact_shape({7, cluster_entity, 1, encode(one.of)});
    ASSERT_TRUE(shape);
    EXPECT_EQ(shape->at("entity"), one.entity);
  }
}

TEST(Shapes, AFactSaysWhoDidIt) {
  experiment_created experiment;
  experiment.owner = "ann";
  task_created task;
  task.owner = "ann";
  auto collection = task;
  collection.id = task_id::of(task_kind::checkpoint_gc, 1, 2);
  collection.details = {{"by", "eve"}};
  auto of_policy = collection;
  of_policy.details["by"] = "";
  const struct {
    const char* entity;
    fact of;
    const char* by;
  } cases[] = {{"cluster", experiment, "ann"},
               {"experiment/7", experiment_changed{{}, experiment_state::paused, "", "ann"}, "ann"},
               {"experiment/7", experiment_changed{}, ""}, // the search ends by itself
               {"trial/12", trial_stop_ordered{{}, trial_state::canceled, true, "killed", "ann"}, "ann"},
               {"trial/12", trial_metadata_set{{}, value{}, "ann"}, "ann"},
               {"trial/12", checkpoint_changed{{}, "u", {}, "ann"}, "ann"},
               {"task/x", task, "ann"},
               {"task/x", collection, "eve"},
               {"task/x", of_policy, ""},
               {"task/x", task_stop_ordered{{}, "killed", "ann"}, "ann"}};
  for (const auto& one : cases) {
    const auto shape = fact_shape({7, one.entity, 1, encode(one.of)});
    ASSERT_TRUE(shape);
    EXPECT_EQ(shape->value("by", "missing"), one.by) << to_json(*shape);
  }
}

} // namespace
} // namespace troupe::api
