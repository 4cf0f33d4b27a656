// Calls every route as every kind of caller. A caller that is not let in gets 401 or 403 and reaches no
// handler.

#include "golden_access.hpp"
#include "table.hpp"

#include "runtime/api/bodies.hpp"
#include "runtime/api/router.hpp"

namespace troupe::api {
namespace {

std::string filled(const std::string& pattern, const std::string& trial, const std::string& experiment,
                   const std::string& allocation) {
  std::string out;
  const auto shape = parse_target(pattern).value();
  for (const auto& segment : shape.segments)
    out += "/" + (segment == "{trialId}" || segment == "{labels_trialId}" ? trial
                  : segment == "{experimentId}"                           ? experiment
                  : segment == "{allocationId}"                           ? allocation
                  : segment == "{taskId}"  ? task_name({7}, parse_id<trial_id>(trial))
                  : segment.front() == '{' ? "1"
                                           : segment);
  return out;
}

/// Adds webhook 1 of all workspaces, which only admins may change.
void add_webhook(table& t) {
  webhook_changed hook;
  hook.at = t0, hook.id = {1}, hook.url = "http://x/", hook.triggers = value::array();
  t.reader->record_rows[storage::keys::record(webhook_changed::tag, "1")] = encode(fact(hook));
}

enum class caller {
  nobody,
  garbage,
  expired,
  logged_out,
  ended_task,
  other_task,
  own_task,
  user,
  admin,
  ended_experiment
};

unsigned expected(const route& route, caller who) {
  const auto right = access_of(route.method, route.path);
  if (right == access::open)
    return 0;
  // Tasks may look at what all users may look at.
  const auto* rule = authority::rule_of(route.right);
  const bool looks = route.right.what == action::view && rule && rule->of_users == authority::users::all;
  switch (who) {
  case caller::nobody:
  case caller::garbage:
  case caller::expired:
  case caller::logged_out:
  case caller::ended_task:
  case caller::ended_experiment:
    return 401;
  case caller::user:
    return right == access::admin || right == access::own_allocation || right == access::own_trial ||
               right == access::task
             ? 403
             : 0;
  case caller::admin:
    return right == access::own_allocation || right == access::own_trial || right == access::task ? 403 : 0;
  case caller::other_task:
    return looks || right == access::anyone || right == access::task || right == access::task_or_unmanaged
             ? 0
             : 403;
  case caller::own_task:
    return (right == access::user && !looks) || right == access::admin ? 403 : 0;
  }
  return 0;
}

request_headers headers_of(table& t, caller who) {
  request_headers h;
  const auto bearer = [&](const std::string& token) { h.authorization = "Bearer " + token; };
  switch (who) {
  case caller::nobody:
    break;
  case caller::garbage:
    bearer("u1.1.1.x.99999999999999999.00");
    break;
  case caller::expired:
    bearer(t.users->log_in("admin", "", true, t0 - std::chrono::hours{24 * 8})->token);
    break;
  case caller::logged_out: {
    auto session = *t.users->log_in("admin", "", true, t0);
    t.users->take(
      token_changed{t0, "admin", {session.claim.user_id}, session.claim.id, "", session.claim.until, true});
    bearer(session.token);
    break;
  }
  case caller::ended_task:
    return t.task({{12}, {1}});
  case caller::other_task:
    return t.task({{13}, {1}});
  case caller::own_task:
    return t.task({{12}, {2}});
  case caller::user:
    return t.user("determined");
  case caller::admin:
    return t.user("admin");
  case caller::ended_experiment:
    bearer(t.users->experiment_token({9}, 2));
    break;
  }
  return h;
}

TEST(Access, EveryRouteForEveryCaller) {
  table t;
  experiment_row ended = t.reader->experiment_rows[7];
  ended.id = {9};
  ended.state = experiment_state::completed;
  t.reader->experiment_rows[9] = ended;
  int refused = 0;
  for (const auto& row : t.api.table())
    for (int who = 0; who <= static_cast<int>(caller::ended_experiment); ++who) {
      const auto target = filled(row.path, "12", "7", "12.2");
      auto got = t.api.admit({row.method, target, headers_of(t, static_cast<caller>(who))});
      const auto* no = std::get_if<response>(&got);
      EXPECT_EQ(no ? no->status : 0u, expected(row, static_cast<caller>(who)))
        << row.method << " " << target << " by " << who;
      if (no) {
        ++refused;
        EXPECT_EQ(no->body.find("digits"), std::string::npos); // a refusal tells nothing about the experiment
      }
    }
  EXPECT_GT(refused, 1000);
  EXPECT_TRUE(t.cluster.all().empty());
}

TEST(Access, IdsInBodiesHaveToBeTheCallersOwn) {
  table t;
  struct {
    const char* method;
    const char* target;
    const char* body;
    unsigned status;
  } cases[] = {
    {"POST", "/api/v1/runs/start", R"({"runId":13})", 403},
    {"POST", "/api/v1/checkpoints",
     R"({"uuid":"abc","allocationId":"13.1","metadata":{"steps_completed":1}})", 400},
    {"POST", "/api/v1/checkpoints", R"({"uuid":"../../etc","metadata":{"steps_completed":1}})", 400},
    {"POST", "/api/v1/checkpoints", R"({"uuid":"abc","metadata":{}})", 400},
    {"POST", "/api/v1/trials/12/metrics",
     R"({"group":"validation","metrics":{"trialId":12,"trialRunId":1,"stepsCompleted":5,"metrics":{"avgMetrics":{"a":1}}}})",
     400},
    {"POST", "/api/v1/trials/12/metrics",
     R"({"group":"a.b","metrics":{"trialRunId":2,"metrics":{"avgMetrics":{}}}})", 400},
    {"POST", "/api/v1/trials/12/metrics",
     R"({"group":"training","metrics":{"trialRunId":2,"metrics":{"avgMetrics":[]}}})", 400},
    {"POST", "/api/v1/trials/12/metrics",
     R"({"group":"training","metrics":{"trialRunId":2,"stepsCompleted":-1,"metrics":{"avgMetrics":{"a":1}}}})",
     400},
    {"POST", "/api/v1/trials/12/metrics",
     R"({"group":"training","metrics":{"trialRunId":2,"stepsCompleted":2147483648,"metrics":{"avgMetrics":{"a":1}}}})",
     400},
    {"POST", "/api/v1/trials/12/metrics",
     R"({"group":"training","metrics":{"trialRunId":2,"metrics":{"avgMetrics":{"epoch":"three"}}}})", 400},
    {"POST", "/api/v1/trials/12/metrics",
     R"({"group":"training","metrics":{"trialRunId":2,"metrics":{"avgMetrics":{"epochs":true}}}})", 400},
    {"POST", "/api/v1/checkpoints", R"({"uuid":"abc","metadata":{"steps_completed":-1}})", 400},
    {"POST", "/api/v1/checkpoints",
     R"({"uuid":"abc","metadata":{"steps_completed":1},"resources":{"../x":"1"}})", 400},
    {"POST", "/api/v1/checkpoints",
     R"({"uuid":"abc","metadata":{"steps_completed":1},"resources":{"a\u0000b":"1"}})", 400},
    {"POST", "/api/v1/checkpoints",
     R"({"uuid":"abc","metadata":{"steps_completed":1},"resources":{"a":"-1"}})", 400},
    {"PATCH", "/api/v1/checkpoints",
     R"({"checkpoints":[{"uuid":"c1","resources":{"resources":{"/etc/passwd":"1"}}}]})", 400},
    {"POST", "/api/v1/trials/12/early_exit", R"({"reason":"BORED"})", 400},
    {"POST", "/api/v1/trials/12/progress", R"({"is_raw":true})", 400},
  };
  for (const auto& one : cases) {
    auto got = t.ask(one.method, one.target, t.task(), one.body);
    EXPECT_EQ(got.status, one.status) << one.target << " " << one.body << ": " << got.body;
  }
  EXPECT_TRUE(t.cluster.all().empty());
}

/// Returns a value that no field of this schema takes.
value not_of(const value& schema) {
  const auto type = schema.value("type", std::string());
  return type == "object" || type == "array" ? value("wrong") : value::array({"wrong"});
}

// A handler reads a body as the document describes it: a field of a wrong type is refused, and the refusal
// names the field.
TEST(Access, EveryFieldOfABodyIsReadAsTheDocumentSays) {
  const std::set<std::string> of_path{"allocationId", "resourcesId", "acceleratorData", "trialId"};
  table t;
  add_webhook(t); // a body is read once its webhook is found
  std::size_t tried = 0;
  for (const auto& row : t.api.table()) {
    const auto schema = body_schema(row.takes);
    if (!schema.is_object() || !schema.contains("properties") || row.takes == std::string("SearchOrders"))
      continue; // the searcher reads these bodies
    const auto* rule = authority::rule_of(row.right);
    const bool of_task = row.right.what == authority::action::report ||
                         (std::string(row.method) == "PATCH" && rule->of_tasks != authority::tasks::none);
    auto whole = value::object(); // all required fields
    const auto sample = [](const value& one) -> value {
      const auto type = one.value("type", std::string());
      if (one.contains("enum"))
        return one["enum"][0];
      return type == "object"    ? value::object()
             : type == "array"   ? value::array()
             : type == "boolean" ? value(true)
             : type == "string"  ? value("text")
             : type.empty()      ? value("any")
                                 : value(1);
    };
    for (const auto& name : schema.value("required", value::array()))
      whole[name.get<std::string>()] =
        name == "uuid" ? value("abc-1") : sample(schema["properties"][name.get<std::string>()]);
    for (const auto& [name, one] : schema["properties"].items()) {
      if (of_path.contains(name) || one.value("type", std::string()).empty())
        continue;
      auto body = whole;
      body[name] = not_of(one);
      const auto headers = of_task ? t.task() : t.user("admin");
      const auto got = t.ask(row.method, filled(row.path, "12", "7", "12.2"), headers, to_json(body));
      EXPECT_EQ(got.status, 400u) << row.method << " " << row.path << " " << to_json(body) << ": "
                                  << got.body;
      EXPECT_NE(got.body.find(name), std::string::npos) << row.path << " " << name << ": " << got.body;
      ++tried;
    }
  }
  EXPECT_GT(tried, 60u);
}

TEST(Access, WhoMayNotChangeAWebhookHearsNothingOfTheBody) {
  table t;
  add_webhook(t);
  for (const char* body : {R"({"url": [7]})", "{}", "("}) {
    EXPECT_EQ(t.ask("PATCH", "/api/v1/webhooks/1", t.user(), body).status, 403u) << body;
    EXPECT_EQ(t.ask("PATCH", "/api/v1/webhooks/2", t.user(), body).status, 404u) << body;
    EXPECT_EQ(t.ask("PATCH", "/api/v1/webhooks/1", t.user("admin"), body).status, 400u) << body;
  }
}

TEST(Access, TasksCommandsCarryTheCallersAllocation) {
  table t;
  struct {
    const char* method;
    const char* target;
    const char* body;
    const char* command;
    const char* fields;
  } cases[] = {
    {"POST", "/api/v1/trials/12/metrics",
     R"({"group":"validation","metrics":{"trialId":12,"trialRunId":2,"stepsCompleted":5,"reportTime":"2025-03-19T12:34:56.5Z","metrics":{"avgMetrics":{"a":0.5},"batchMetrics":null}}})",
     "trial.report",
     R"({"allocation":"12.2","experiment":7,"group":"validation","steps":5,"metrics":{"a":0.5},"at":1742387696500000})"},
    {"POST", "/api/v1/trials/12/metrics",
     R"({"group":"training","metrics":{"trialRunId":2,"stepsCompleted":2147483647,"metrics":{"avgMetrics":{"epoch":1.5,"epochs":null}}}})",
     "trial.report",
     R"({"allocation":"12.2","experiment":7,"group":"training","steps":2147483647,"metrics":{"epoch":1.5,"epochs":null}})"},
    {"POST", "/api/v1/checkpoints",
     R"({"allocationId":"12.2","uuid":"abc-1","reportTime":"2025-01-01T00:00:00+00:00","state":"STATE_COMPLETED","resources":{"a/":"0","a/b":"17"},"metadata":{"steps_completed":5,"k":1},"training":{},"storageId":null})",
     "checkpoint.report",
     R"({"allocation":"12.2","experiment":7,"uuid":"abc-1","steps":5,"files":{"a/":0,"a/b":17},"metadata":{"steps_completed":5,"k":1}})"},
    {"POST", "/api/v1/checkpoints",
     R"({"uuid":"0189C0DE-0000-7000-8000-00000000000A","resources":{"a":"1"},"metadata":{"steps_completed":5}})",
     "checkpoint.report",
     R"({"allocation":"12.2","experiment":7,"uuid":"0189c0de-0000-7000-8000-00000000000a","steps":5,"files":{"a":1},"metadata":{"steps_completed":5}})"},
    {"POST", "/api/v1/trials/12/progress", R"({"progress":0.25,"is_raw":true})", "trial.progress",
     R"({"allocation":"12.2","experiment":7,"progress":0.25})"},
    {"POST", "/api/v1/trials/12/early_exit", R"({"reason":"EXITED_REASON_INVALID_HP"})", "trial.early_exit",
     R"({"allocation":"12.2","experiment":7,"reason":"invalid_hp"})"},
    {"POST", "/api/v1/allocations/12.2/signals/ack_preemption", "", "allocation.ack_preemption",
     R"({"allocation":"12.2","experiment":7})"},
    {"GET", "/api/v1/allocations/12.2/resources/abc/rendezvous", "", "allocation.rendezvous",
     R"({"allocation":"12.2","experiment":7,"resources":"abc"})"},
    {"PATCH", "/api/v1/checkpoints",
     R"({"checkpoints":[{"uuid":"c1","resources":{"resources":{}}},{"uuid":"c1"}]})", "checkpoint.patch",
     R"({"checkpoints":[{"uuid":"c1","files":{}},{"uuid":"c1"}]})"},
    {"POST", "/api/v1/task/logs",
     R"({"logs":[{"timestamp":"2025-03-19T12:34:56.5+00:00","task_id":"7.00000000-0000-4000-8000-00000000000c","log":"hi\n","level":"ERROR","stdtype":"stderr","rank_id":1}]})",
     "task.log",
     R"({"allocation":"12.2","experiment":7,"lines":[{"at":1742387696500000,"rank":1,"stream":"stderr","level":"ERROR","agent":"","text":"hi"}]})"},
    {"POST", "/task-logs", // a level that the enum of the client does not know is left out
     R"([{"timestamp":"1970-01-01T00:00:00Z","log":"a","level":"FOO"},{"timestamp":"1970-01-01T00:00:00Z","log":"b","level":"info","rank":"3"},{"timestamp":"1970-01-01T00:00:00Z","log":"c","level":5},{"timestamp":"1970-01-01T00:00:00Z","log":"d","level":9}])",
     "task.log",
     R"({"allocation":"12.2","experiment":7,"lines":[{"at":0,"rank":-1,"stream":"stdout","level":"","agent":"","text":"a"},{"at":0,"rank":3,"stream":"stdout","level":"INFO","agent":"","text":"b"},{"at":0,"rank":-1,"stream":"stdout","level":"ERROR","agent":"","text":"c"},{"at":0,"rank":-1,"stream":"stdout","level":"","agent":"","text":"d"}]})"},
  };
  for (const auto& one : cases) {
    t.cluster.calls.clear();
    auto got = t.ask(one.method, one.target, t.task(), one.body);
    EXPECT_EQ(got.status, 200u) << one.target << ": " << got.body;
    ASSERT_EQ(t.cluster.calls.size(), 1u) << one.target;
    EXPECT_EQ(t.cluster.calls[0].command, one.command);
    EXPECT_EQ(t.cluster.calls[0].fields, *parse_json(one.fields)) << one.target;
    EXPECT_EQ(t.cluster.calls[0].who.user, "determined");
    EXPECT_EQ(t.cluster.calls[0].who.allocation, "12.2");
  }
}

TEST(Access, ALineForTheLogOfAnotherTaskRefusesTheRequestAsAWhole) {
  table t;
  const auto line = [](const char* task) { return value{{"task_id", task}, {"log", "x"}}; };
  const char* own = "7.00000000-0000-4000-8000-00000000000c";
  const struct {
    const char* task;
    unsigned status;
  } cases[] = {
    {"7.00000000-0000-4000-8000-00000000000d", 403},
    {"7.00000000-0000-4000-8000-000000000063", 404},
    {"1.x", 404},
  };
  for (const auto& [task, status] : cases)
    for (const auto& lines : {value::array({line(task)}), value::array({line(own), line(task)})}) {
      const auto bare = t.ask("POST", "/task-logs", t.task(), to_json(lines));
      EXPECT_EQ(bare.status, status) << task;
      EXPECT_NE(bare.body.find(task), std::string::npos) << bare.body;
      EXPECT_EQ(t.ask("POST", "/api/v1/task/logs", t.task(), to_json(value{{"logs", lines}})).status, status)
        << task;
    }
  EXPECT_TRUE(t.cluster.calls.empty());
  EXPECT_EQ(t.ask("POST", "/task-logs", t.task(), to_json(value::array({line(own)}))).status, 200u);
}

TEST(Access, LinesOfAUserForATaskThatDoesNotExistAreRefusedAsSuch) {
  table t;
  const struct {
    const char* task;
    unsigned status;
  } cases[] = {
    {"7.00000000-0000-4000-8000-00000000000d", 403}, // managed: only the task itself sends lines
    {"7.00000000-0000-4000-8000-000000000063", 404},
    {"40000000-0000-4000-8000-000000000063", 404},
    {"1.x", 404},
  };
  for (const auto& [task, status] : cases) {
    const value lines = value::array({value{{"task_id", task}, {"log", "x"}}});
    for (const auto& got : {t.ask("POST", "/task-logs", t.user(), to_json(lines)),
                            t.ask("POST", "/api/v1/task/logs", t.user(), to_json(value{{"logs", lines}}))}) {
      EXPECT_EQ(got.status, status) << task;
      EXPECT_TRUE(status == 403 ||
                  got.body.find("task '" + std::string(task) + "' not found") != got.body.npos)
        << got.body;
    }
  }
  EXPECT_TRUE(t.cluster.calls.empty());
}

/// 2^63 and above, as a number and as a text, and what is no whole number above 0.
TEST(Access, IdsOutOfRangeAreRefusedWithTheirPlace) {
  table t;
  const std::string ids[] = {"9223372036854775808",
                             "\"9223372036854775808\"",
                             "18446744073709551616",
                             "\"18446744073709551616\"",
                             "-1",
                             "\"-1\"",
                             "0",
                             "1.5",
                             "\"1.5\"",
                             "1e3",
                             "null"};
  const struct {
    const char *method, *path, *before, *place;
  } cases[] = {
    {"POST", "/api/v1/projects/1/experiments/kill", R"({"experimentIds":[7,)", "experimentIds[1]: "},
    {"POST", "/api/v1/projects/1/experiments/archive", R"({"experimentIds":[7,)", "experimentIds[1]: "},
    {"DELETE", "/api/v1/projects/1/experiments/delete", R"({"experimentIds":[7,)", "experimentIds[1]: "},
    {"POST", "/api/v1/projects/1/experiments/move", R"({"destinationProjectId":1,"experimentIds":[7,)",
     "experimentIds[1]: "},
    {"PUT", "/api/v1/projects/1/experiments/retain_logs", R"({"numDays":1,"experimentIds":[7,)",
     "experimentIds[1]: "},
    {"POST", "/api/v1/projects/1/experiments/pause", R"({"filters":{"excludedExperimentIds":[7,)",
     "filters.excludedExperimentIds[1]: "},
    {"POST", "/api/v1/runs/kill", R"({"runIds":[12,)", "runIds[1]: "},
    {"POST", "/api/v1/runs/move", R"({"destinationProjectId":1,"runIds":[12,)", "runIds[1]: "},
    {"POST", "/api/v1/runs/delete", R"({"runIds":[12,)", "runIds[1]: "},
    {"POST", "/api/v1/tensorboards", R"({"trialIds":[12,)", "trialIds[1]: "},
    {"PATCH", "/api/v1/users", R"({"activate":true,"userIds":[1,)", "userIds[1]: "},
  };
  for (const auto& one : cases)
    for (const auto& id : ids) {
      const std::string close = std::string(one.before).find("filters") == std::string::npos ? "]}" : "]}}";
      const auto got = t.ask(one.method, one.path, t.user("admin"), one.before + id + close);
      EXPECT_EQ(got.status, 400u) << one.path << " " << id << " " << got.body;
      EXPECT_NE(got.body.find(one.place + std::string("has to be a number above 0 and below 2^63")),
                std::string::npos)
        << one.path << " " << id << " " << got.body;
    }
  EXPECT_TRUE(t.cluster.calls.empty());
}

TEST(Access, ACheckOfAConfigurationRefusesAMaskThatNoParentMayStandFor) {
  table t;
  t.cluster.answers["experiment.validate"] = [](const fake_gate::heard&) {
    return value{{"masked", "x.yaml:3: a secret"}};
  };
  const auto check = [&](const char* body) {
    return t.ask("POST", "/api/v1/experiments", t.user("admin"), body);
  };
  const auto no = check(R"({"config":"name: x","validateOnly":true})");
  EXPECT_EQ(no.status, 400u);
  EXPECT_NE(no.body.find("x.yaml:3: a secret"), std::string::npos) << no.body;
  EXPECT_EQ(check(R"({"config":"name: x","validateOnly":true,"parentId":7})").status, 200u);
}

TEST(Access, ACheckpointIsFoundByItsUuidInUpperCase) {
  table t;
  const std::string uuid = "0189c0de-0000-7000-8000-00000000000a",
                    upper = "0189C0DE-0000-7000-8000-00000000000A";
  auto row = t.reader->checkpoint_rows[0];
  row.saved.uuid = uuid;
  t.reader->checkpoint_rows.push_back(row);
  const std::string at = "/api/v1/checkpoints/";
  EXPECT_EQ(t.ask("GET", at + upper, t.user("admin")).status, 200u);
  EXPECT_EQ(t.ask("GET", at + upper + "/metrics", t.user("admin")).status, 200u);
  EXPECT_EQ(t.ask("GET", at + "C1", t.user("admin")).status, 404u) << "it is not a UUID";
  const struct {
    const char* method;
    std::string target, body, command, fields;
  } cases[] = {
    {"POST", at + upper + "/metadata", R"({"checkpoint":{"metadata":{}}})", "checkpoint.describe",
     R"({"uuid":"UUID","metadata":{}})"},
    {"DELETE", "/api/v1/checkpoints", R"({"checkpointUuids":["UPPER","UUID"]})", "checkpoint.remove",
     R"({"uuids":["UUID"]})"},
    {"POST", "/api/v1/checkpoints/rm", R"({"checkpointUuids":["UPPER"],"checkpointGlobs":["*.pt"]})",
     "checkpoint.remove", R"({"uuids":["UUID"],"globs":["*.pt"]})"},
    {"PATCH", "/api/v1/checkpoints", R"({"checkpoints":[{"uuid":"UPPER","resources":{"resources":{}}}]})",
     "checkpoint.patch", R"({"checkpoints":[{"uuid":"UUID","files":{}}]})"},
  };
  for (const auto& c : cases) {
    const auto with_uuids = [&](std::string text) {
      for (const auto& [word, by] : {std::pair{"UPPER", upper}, {"UUID", uuid}})
        for (auto i = text.find(word); i != text.npos; i = text.find(word))
          text.replace(i, std::string(word).size(), by);
      return text;
    };
    t.cluster.calls.clear();
    const auto got = t.ask(c.method, c.target, t.user("admin"), with_uuids(c.body));
    ASSERT_EQ(t.cluster.calls.size(), 1u) << c.command << ": " << got.body;
    EXPECT_EQ(t.cluster.calls[0].command, c.command);
    const auto wanted = parse_json(with_uuids(c.fields)).value();
    for (const auto& [key, what] : wanted.items())
      EXPECT_EQ(t.cluster.calls[0].fields[key], what) << c.target;
  }
}

TEST(Access, ATaskReadsTheCheckpointsThatItsOwnerMayRead) {
  table t;
  const auto metadata = R"({"checkpoint":{"metadata":{"steps_completed":100}}})";
  const auto read = [&](allocation_id by) {
    return t.ask("GET", "/api/v1/checkpoints/c1", t.task(by)).status;
  };
  const auto write = [&](allocation_id by) {
    return t.ask("POST", "/api/v1/checkpoints/c1/metadata", t.task(by), metadata).status;
  };
  const allocation_id own{{12}, {2}}, other{{13}, {1}};
  EXPECT_EQ(read(own), 200u);
  EXPECT_EQ(read(other), 200u);
  EXPECT_EQ(write(own), 200u);
  EXPECT_EQ(write(other), 403u);
  // these owners have no account
  t.reader->experiment_rows[7].owner = t.reader->experiment_rows[8].owner = "gone";
  EXPECT_EQ(read(own), 200u);
  EXPECT_EQ(read(other), 403u);
}

} // namespace
} // namespace troupe::api
