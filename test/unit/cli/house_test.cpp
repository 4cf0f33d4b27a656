// Tests what the verbs of workspaces, models, people and rules send, and what they print.

#include "console_for_test.hpp"
#include "fake_server.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace troupe;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

const char* workspace_text = R"({"id": 2, "name": "vision", "username": "ann", "archived": false,
  "numProjects": 1, "numExperiments": 3, "pinned": true, "defaultComputePool": "gpu"})";
const char* project_text =
  R"({"id": 5, "name": "cats", "key": "CAT", "workspaceId": 2, "workspaceName": "vision",
  "description": "all", "notes": [{"name": "plan", "contents": "more layers"}]})";
const char* model_text =
  R"({"id": 4, "name": "digits", "labels": ["old", "b"], "metadata": {"lr": 0.1, "n": 3}, "numVersions": 1})";
const char* version_text = R"({"version": 1, "name": "first", "checkpoint": {"uuid": "c1"}, "labels": [],
  "metadata": {}, "model": {"id": 4}})";
const char* user_text = R"({"id": 3, "username": "eve", "admin": false, "active": true})";
const char* token_text = R"({"id": 6, "userId": 3, "description": "nightly", "revoked": false})";
const char* group_text = R"({"groupId": 8, "name": "team", "users": [{"id": 3, "username": "eve"}]})";
const char* webhook_text = R"({"id": 9, "name": "chat", "url": "http://chat/x", "triggers": [
  {"triggerType": "TRIGGER_TYPE_TASK_LOG", "condition": {"regex": "error"}}]})";
const char* experiment_text = R"({"id": 7, "name": "digits", "state": "STATE_COMPLETED", "labels": ["old"]})";
const char* role_text = R"({"roleId": 4, "name": "Viewer", "permissions": [{"name": "VIEW"}],
  "scopeTypeMask": {"workspace": true}})";

std::string list_of(const std::string& key, const std::string& rows) {
  return "{\"" + key + "\": [" + rows + "], \"pagination\": {\"total\": 1}}";
}
std::string under(const std::string& key, const std::string& text) {
  return "{\"" + key + "\": " + text + "}";
}

/// Answers with one object of each kind, which no order changes.
void house(const fake_server::received& r, fake_server::connection& to) {
  const auto path = r.target.substr(0, r.target.find('?'));
  struct {
    const char* path;
    std::string answer;
  } const known[] = {
    {"/api/v1/auth/login", R"({"token": "T"})"},
    {"/api/v1/workspaces",
     r.method == "POST" ? under("workspace", workspace_text) : list_of("workspaces", workspace_text)},
    {"/api/v1/workspaces/2",
     r.method == "DELETE" ? R"({"completed": true})" : under("workspace", workspace_text)},
    {"/api/v1/workspaces/2/projects",
     r.method == "POST" ? under("project", project_text) : list_of("projects", project_text)},
    {"/api/v1/projects/5", under("project", project_text)},
    {"/api/v1/projects/5/notes", R"({"notes": []})"},
    {"/api/v1/templates/small",
     R"({"template": {"name": "small", "workspaceId": 1, "config": {"resources": {"slots": 1}}}})"},
    {"/api/v1/templates/masked",
     R"({"template": {"name": "masked", "workspaceId": 1, "config": {"secret": "********"}}})"},
    {"/api/v1/template/rename", R"({"template": {"name": "tiny", "workspaceId": 1, "config": {}}})"},
    {"/api/v1/models", under("model", model_text)},
    {"/api/v1/models/digits", under("model", model_text)},
    {"/api/v1/models/4", under("model", model_text)},
    {"/api/v1/models/4/versions",
     r.method == "POST" ? under("modelVersion", version_text) : list_of("modelVersions", version_text)},
    {"/api/v1/models/4/versions/1", under("modelVersion", version_text)},
    {"/api/v1/users", r.method == "POST" ? under("user", user_text) : list_of("users", user_text)},
    {"/api/v1/users/3", under("user", user_text)},
    {"/api/v1/tokens",
     r.method == "POST" ? R"({"token": "p1.x", "tokenId": 6})" : list_of("tokenInfo", token_text)},
    {"/api/v1/tokens/6", under("tokenInfo", token_text)},
    {"/api/v1/groups/search",
     list_of("groups", R"({"group": {"groupId": 8, "name": "team"}, "numMembers": 1})")},
    {"/api/v1/groups/8", under("group", group_text)},
    {"/api/v1/roles/search", list_of("roles", role_text)},
    {"/api/v1/roles/search/by-ids",
     list_of("roles", under("role", role_text).substr(0, under("role", role_text).size() - 1) +
                        R"(, "userRoleAssignments": [{"userId": 3, "roleAssignment":
                        {"scopeWorkspaceId": 2}}], "groupRoleAssignments": [{"groupId": 8, "roleAssignment":
                        {"scopeWorkspaceId": null}}]})")},
    {"/api/v1/roles/add-assignments", "{}"},
    {"/api/v1/config-policies/global/EXPERIMENT", R"({"configPolicies": {}})"},
    {"/api/v1/config-policies/global/NTSC", R"({"configPolicies": {"constraints": {"priority_limit": 5}}})"},
    {"/api/v1/config-policies/workspaces/2/EXPERIMENT", R"({"configPolicies": {}})"},
    {"/api/v1/config-policies/workspaces/2/NTSC",
     R"({"configPolicies": {"constraints": {"priority_limit": 7}}})"},
    {"/api/v1/webhooks", under("webhooks", "[" + std::string(webhook_text) + "]")},
    {"/api/v1/webhooks/9", "{}"},
    {"/api/v1/experiments/7", under("experiment", experiment_text)},
    {"/api/v1/experiments/7/archive", "{}"},
    {"/api/v1/experiments/8/archive", "{}"},
    {"/troupe/v1/experiments/7/resources", "{}"},
    {"/ui/", "{}"},
    {"/troupe/v1/session/codes", R"({"code": "c0de"})"},
  };
  for (const auto& one : known)
    if (path == one.path)
      return to.answer(200, one.answer);
  for (const char* end : {"/archive", "/unarchive", "/pin", "/unpin", "/move"})
    if (path.ends_with(end) && !path.starts_with("/api/v1/experiments"))
      return to.answer(200, "{}");
  to.answer(404, to_json({{"error", {{"code", 5}, {"reason", "NotFound"}, {"error", "it is not found"}}},
                          {"message", "it is not found"}}));
}

cli::outcome_of_call call(const fake_server& fake, cli::words given, const std::string& in = "") {
  return cli::call(given, {}, {{"TROUPE_MASTER", fake.url()}, {"TROUPE_TOKEN", "T"}}, in);
}

/// Returns each order as "METHOD PATH BODY", without the reads.
std::vector<std::string> orders(fake_server& fake) {
  std::vector<std::string> out;
  for (const auto& one : fake.requests())
    if (one.method != "GET" && one.target.find("/search") == std::string::npos)
      out.push_back(one.method + " " + one.target.substr(one.target.find("/v1/") + 4) +
                    (one.body.empty() ? "" : " " + to_json(value::parse(one.body))));
  return out;
}

} // namespace

TEST(House, WhoseTokenIsRefusedIsNotLoggedInByName) {
  fake_server fake([](const fake_server::received&, fake_server::connection& to) {
    to.answer(401, R"({"message": "who are you?"})");
  });
  const auto said = call(fake, {"workspace", "list"});
  EXPECT_EQ(said.code, 4);
  EXPECT_THAT(said.err, testing::HasSubstr("the token in TROUPE_TOKEN is not valid"));
  for (const auto& one : fake.requests())
    EXPECT_EQ(one.method, "GET") << one.target;
}

TEST(House, OrdersAreSentAsTheRoutesTakeThem) {
  const auto secret =
    (std::filesystem::temp_directory_path() / ("troupe-secret-" + std::to_string(::getpid()))).string();
  std::ofstream(secret) << "Secret-12\nnot this\n";
  struct {
    cli::words given;
    std::vector<std::string> sent;
    std::string out;
    std::string in = "";
  } const cases[] = {
    {{"workspace", "create", "vision", "--default-pool", "gpu"},
     {R"(POST workspaces {"defaultComputePool":"gpu","name":"vision"})"},
     "workspace 2\n"},
    {{"workspace", "set", "vision", "--name", "sight", "--aux-pool", "none", "--unarchive", "--pin"},
     {"POST workspaces/2/unarchive", R"(PATCH workspaces/2 {"defaultAuxPool":"","name":"sight"})",
      "POST workspaces/2/pin"},
     "changed workspace 2\n"},
    {{"workspace", "set", "2", "--checkpoint-storage", "-", "--account", "7:8:ann:users"},
     {R"(PATCH workspaces/2 {"agentUserGroup":{"agentGid":8,"agentGroup":"users","agentUid":7,"agentUser":"ann"},)"
      R"("checkpointStorageConfig":{"host_path":"/x","type":"shared_fs"}})"},
     "changed workspace 2\n",
     "checkpoint_storage:\n  type: shared_fs\n  host_path: /x\n"},
    {{"workspace", "set", "2", "--checkpoint-storage", "none"},
     {R"(PATCH workspaces/2 {"checkpointStorageConfig":{}})"},
     "changed workspace 2\n"},
    {{"workspace", "delete", "vision", "--yes"}, {"DELETE workspaces/2"}, "deleted workspace 2\n"},
    {{"project", "create", "vision", "cats", "--key", "CAT"},
     {R"(POST workspaces/2/projects {"description":"","key":"CAT","name":"cats"})"},
     "project 5\n"},
    {{"project", "set", "vision/cats", "--description", "", "--clear-notes", "--note", "plan=a=b",
      "--workspace", "vision", "--archive"},
     {R"(PATCH projects/5 {"description":""})", R"(PUT projects/5/notes {"notes":[]})",
      R"(POST projects/5/notes {"contents":"a=b","name":"plan"})",
      R"(POST projects/5/move {"destinationWorkspaceId":2})", "POST projects/5/archive"},
     "changed project 5\n"},
    {{"template", "create", "small", "-", "--workspace", "vision"},
     {R"(POST templates/small {"config":{"resources":{"slots":1}},"name":"small","workspaceId":2})"},
     "template small\n",
     "resources: {slots: 1}\n"},
    {{"template", "set", "small", "--config-file", "-", "--name", "tiny"},
     {R"(PATCH templates/small {"max_restarts":1})",
      R"(PATCH template/rename {"newName":"tiny","oldName":"small"})"},
     "changed template tiny\n",
     R"({"max_restarts": 1})"},
    {{"template", "set", "small", "--workspace", "vision"},
     {R"(PUT templates/small {"config":{"resources":{"slots":1}},"workspaceId":2})"},
     "changed template small\n"},
    {{"template", "delete", "small"}, {"DELETE templates/small"}, "deleted template small\n"},
    {{"model", "create", "digits", "--label", "a", "--metadata", "lr=0.5", "--metadata", "who=eve",
      "--metadata", "why="},
     {R"(POST models {"labels":["a"],"metadata":{"lr":0.5,"who":"eve","why":""},"name":"digits"})"},
     "model 4\n"},
    {{"model", "set", "digits", "--add-label", "a", "--remove-label", "old", "--metadata", "lr=[1, 2]",
      "--remove-metadata", "n", "--archive"},
     {R"(PATCH models/4 {"labels":["b","a"],"metadata":{"lr":[1,2]}})", "POST models/4/archive"},
     "changed model 4\n"},
    {{"model", "delete", "digits", "--yes"}, {"DELETE models/4"}, "deleted model 4\n"},
    {{"model", "register", "digits", "c1", "--comment", "good"},
     {R"(POST models/4/versions {"checkpointUuid":"c1","comment":"good"})"},
     "version 1\n"},
    {{"model", "set-version", "digits", "1", "--add-label", "live"},
     {R"(PATCH models/4/versions/1 {"labels":["live"]})"},
     "changed version 1\n"},
    {{"model", "unregister", "digits", "1"}, {"DELETE models/4/versions/1"}, "unregistered version 1\n"},
    {{"user", "create", "eve", "--password-file", secret, "--admin"},
     {R"(POST users {"password":"Secret-12","user":{"active":true,"admin":true,"displayName":"","username":"eve"}})"},
     "user 3\n"},
    {{"user", "set", "eve", "--admin", "off", "--deactivate", "--display-name", "Eve", "--password-file",
      secret},
     {R"(PATCH users/3 {"active":false,"admin":false,"displayName":"Eve","password":"Secret-12"})"},
     "changed user 3\n"},
    {{"token", "create", "--expires", "2d", "--description", "nightly"},
     {R"(POST tokens {"description":"nightly","lifespan":"48h"})"},
     "p1.x\n"},
    {{"token", "set", "6", "--description", "weekly"},
     {R"(PATCH tokens/6 {"description":"weekly"})"},
     "changed token 6\n"},
    {{"token", "revoke", "6"}, {R"(PATCH tokens/6 {"setRevoked":true})"}, "revoked token 6\n"},
    {{"group", "set", "team", "--add", "eve", "--name", "band"},
     {R"(PUT groups/8 {"addUsers":[3],"name":"band","removeUsers":[]})"},
     "changed group 8\n"},
    {{"group", "delete", "8"}, {"DELETE groups/8"}, "deleted group 8\n"},
    {{"role", "give", "Viewer", "--user", "eve", "--workspace", "vision"},
     {R"(POST roles/add-assignments {"userRoleAssignments":[{"roleAssignment":{"role":{"roleId":4},)"
      R"("scopeWorkspaceId":2},"userId":3}]})"},
     "given\n"},
    {{"policy", "set", "-", "--kind", "NTSC", "--workspace", "vision"},
     {R"(PUT config-policies/workspaces/2/NTSC {"configPolicies":"{\"constraints\":{\"priority_limit\":7}}"})"},
     "set\n",
     "constraints: {priority_limit: 7}\n"},
    {{"policy", "delete"}, {"DELETE config-policies/global/EXPERIMENT"}, "deleted\n"},
    {{"webhook", "set", "chat", "--url", "http://chat/y"},
     {R"(PATCH webhooks/9 {"url":"http://chat/y"})"},
     "changed webhook 9\n"},
    {{"experiment", "set", "7", "--priority", "3", "--name", "new", "--save-trial-best", "2"},
     {R"(POST experiments/7/resources {"priority":3})",
      R"(PATCH experiments/7 {"checkpointStorage":{"saveTrialBest":2},"name":"new"})"},
     "changed experiment 7\n"},
    {{"experiment", "label", "7", "--add", "good"},
     {R"(PATCH experiments/7 {"labels":["old","good"]})"},
     "old\n"},
    {{"experiment", "archive", "7", "8"},
     {"POST experiments/7/archive", "POST experiments/8/archive"},
     "archived experiment 7\narchived experiment 8\n"},
  };
  for (const auto& c : cases) {
    fake_server fake(house);
    const auto got = call(fake, c.given, c.in);
    std::string line;
    for (const auto& word : c.given)
      line += word + " ";
    EXPECT_EQ(got.code, 0) << line << got.err;
    EXPECT_EQ(got.out, c.out) << line;
    EXPECT_EQ(orders(fake), c.sent) << line;
  }
  std::filesystem::remove(secret);
}

TEST(House, ALinkLeadsToThePageThatIsNamed) {
  const struct {
    std::string path, next;
  } cases[] = {
    {"", ""},
    {"/ui/experiments/7", "experiments/7"},
    {"experiments?q=a%20b&sort=-best", "experiments?q=a%2520b%26sort=-best"},
    {"experiments/19/trials?q=lr<0.1 opt='adam'",
     "experiments/19/trials?q=lr%253C0.1%2520opt=%2527adam%2527"},
    {R"(experiments/7/trials?cols=id,hp.a\,b)", "experiments/7/trials?cols=id,hp.a%255C,b"},
    {"http://127.0.0.1:21717/ui/experiments/19/trials?sort=-best", "experiments/19/trials?sort=-best"},
    {"https://head/ui", ""},
    {"https://head", ""},
  };
  fake_server fake(house);
  for (const auto& c : cases) {
    const auto got = call(fake, {"web", c.path});
    EXPECT_EQ(got.out, fake.url() + "/ui/login?next=/ui/" + c.next + "#code=c0de\n") << got.err;
  }
  EXPECT_EQ(call(fake, {"web", "experiments#x"}).code, 2);
}

TEST(House, AThingIsShownAsTheServerAnswersIt) {
  fake_server fake(house);
  const auto json = [&](cli::words given) {
    given.insert(given.end(), {"-o", "json"});
    const auto got = call(fake, given);
    EXPECT_EQ(got.code, 0) << got.err;
    return value::parse(got.out, nullptr, false);
  };
  EXPECT_EQ(json({"workspace", "create", "vision"}), value::parse(workspace_text));
  EXPECT_EQ(json({"workspace", "set", "vision", "--pin"}), value::parse(workspace_text));
  EXPECT_EQ(json({"project", "describe", "vision/cats"}), value::parse(project_text));
  EXPECT_EQ(json({"user", "set", "eve", "--activate"}), value::parse(user_text));
  EXPECT_EQ(json({"group", "describe", "team"}), value::parse(group_text));
  EXPECT_EQ(json({"webhook", "describe", "9"}), value::parse(webhook_text));
  auto token = value::parse(token_text);
  token["username"] = "eve"; // the server tells the number of the user
  EXPECT_EQ(json({"token", "describe", "6"}), token);
  EXPECT_EQ(json({"token", "create"}), value::parse(R"({"token": "p1.x", "tokenId": 6})"));
  EXPECT_EQ(json({"experiment", "archive", "7"}), value::array({value::parse(experiment_text)}));
  EXPECT_EQ(json({"experiment", "label", "7"}), value::parse(experiment_text));
  EXPECT_EQ(json({"model", "describe", "digits"})["modelVersions"][0]["checkpoint"]["uuid"], "c1");
  EXPECT_EQ(json({"role", "describe", "Viewer"})["userRoleAssignments"][0]["userId"], 3);
  EXPECT_EQ(json({"policy", "list"}).size(), 2);
  EXPECT_EQ(json({"policy", "list"})[1]["workspaceName"], "vision");
  EXPECT_EQ(call(fake, {"workspace", "create", "vision", "-q"}).out, "2\n");
  EXPECT_EQ(call(fake, {"workspace", "create", "vision", "-o", "csv", "--columns", "id,name"}).out,
            "id,name\n2,vision\n");
  EXPECT_THAT(call(fake, {"user", "set", "eve", "--activate", "-o", "yaml"}).out,
              HasSubstr("username: eve\n"));
}

TEST(House, ACardHasItsTablesBelow) {
  fake_server fake(house);
  const auto shown = [&](cli::words given) {
    const auto got = call(fake, given);
    EXPECT_EQ(got.code, 0) << got.err;
    return got.out;
  };
  EXPECT_THAT(shown({"workspace", "describe", "vision"}), HasSubstr("\nPROJECTS\n"));
  EXPECT_THAT(shown({"project", "describe", "vision/cats"}), HasSubstr("\nNOTES\n"));
  EXPECT_THAT(shown({"project", "describe", "5"}), HasSubstr("more layers"));
  EXPECT_THAT(shown({"model", "describe", "digits"}), HasSubstr("\nVERSIONS\n"));
  EXPECT_THAT(shown({"template", "describe", "small"}), HasSubstr("\nresources:\n  slots: 1\n"));
  EXPECT_THAT(shown({"group", "describe", "team"}), HasSubstr("\nUSERS\n"));
  const auto role = shown({"role", "describe", "4"});
  EXPECT_THAT(role, HasSubstr("user   eve   vision\n"));
  EXPECT_THAT(role, HasSubstr("group  team  everywhere\n"));
  EXPECT_THAT(role, HasSubstr("\nPERMISSIONS\n"));
  EXPECT_THAT(shown({"webhook", "describe", "chat"}), HasSubstr("regex=error"));
  EXPECT_EQ(shown({"policy", "describe", "--kind", "NTSC"}), "constraints:\n  priority_limit: 5\n");
}

TEST(House, WhatIsNotThereOrWrongIsSaidWithItsMend) {
  fake_server fake(house);
  struct {
    cli::words given;
    int code;
    std::string err;
    std::string in = "";
  } const cases[] = {
    {{"workspace", "describe", "sound"},
     5,
     "error: workspace 'sound' not found\nhint: troupe workspace list\n"},
    {{"project", "describe", "cats"},
     5,
     "error: project 'cats' not found\nhint: its number, or WORKSPACE/NAME; troupe project list\n"},
    {{"project", "set", "vision/dogs", "--archive"},
     5,
     "error: project 'dogs' not found\nhint: troupe project list\n"},
    {{"user", "set", "bob", "--activate"}, 5, "error: user 'bob' not found\nhint: troupe user list\n"},
    {{"token", "describe", "7"},
     5,
     "error: token '7' not found\nhint: its number; troupe token list --all\n"},
    {{"group", "set", "band", "--name", "x"}, 5, "error: group 'band' not found\nhint: troupe group list\n"},
    {{"role", "describe", "King"}, 5, "error: role 'King' not found\nhint: troupe role list\n"},
    {{"model", "set-version", "digits", "2", "--name", "x"},
     5,
     "error: it is not found\nhint: troupe model versions MODEL\n"},
    {{"model", "set", "digits", "--metadata", "lr"},
     2,
     "error: --metadata takes KEY=VALUE, not 'lr'\nhint: --metadata accuracy=0.93\n"},
    {{"template", "set", "masked", "--workspace", "vision"},
     2,
     "error: template 'masked' holds secrets, which move only with its text\nhint: give --config-file FILE "
     "as "
     "well\n"},
    {{"policy", "set", "-"},
     2,
     "error: <stdin>: has to be a map, and is a list\nhint: lines of the form KEY: VALUE, or a JSON object\n",
     "[1]"},
  };
  for (const auto& c : cases) {
    const auto got = call(fake, c.given, c.in);
    EXPECT_EQ(got.code, c.code) << got.err;
    EXPECT_EQ(got.err, c.err);
  }
  const auto broken = call(fake, {"template", "create", "small", "-"}, "a: [1\n");
  EXPECT_EQ(broken.code, 2);
  EXPECT_THAT(broken.err, HasSubstr("<stdin>:")) << "with its place";
  EXPECT_THAT(orders(fake), ElementsAre()) << "nothing was changed";
}

namespace {

void journal(const fake_server::received& r, fake_server::connection& to) {
  const auto has = [&](const char* text) { return r.target.find(text) != std::string::npos; };
  if (has("/api/v1/me"))
    return to.answer(200, R"({"user": {"id": 1}})", "Troupe-Sequence: 12\r\n");
  if (has("/troupe/v1/events?"))
    return to.answer(
      200,
      "id: 3\nevent: group_changed\ndata: {\"sequence\": 3, \"entity\": \"cluster\", \"number\": 1, "
      "\"type\": \"group_changed\", \"at\": \"2026-11-25T08:00:00.000000Z\", \"by\": \"ann\", \"id\": 8}\n\n"
      "id: 9\nevent: group_changed\ndata: {\"sequence\": 9, \"entity\": \"cluster\", \"number\": 2, "
      "\"type\": \"group_changed\", \"at\": \"2026-11-25T09:00:00.000000Z\", \"by\": \"bob\", \"id\": "
      "8}\n\n");
  if (has("/troupe/v1/shell/events?"))
    return to.answer(200, R"({"rows": [{"at": "2026-11-25T08:00:00.000000Z", "kind": "audit", "user": "ada",
      "actor": "trial/7", "what": "kill trial/7"}], "missing": [{"node": "gpu01", "why": "away"}]})");
  to.answer(404, "{}");
}

} // namespace

TEST(House, EventsSayWhoDidWhat) {
  fake_server fake(journal);
  const auto all = call(fake, {"events", "--kind", "audit", "--since", "2h", "-o", "json"});
  EXPECT_EQ(all.code, 0) << all.err;
  const auto rows = value::parse(all.out, nullptr, false);
  ASSERT_EQ(rows.size(), 2) << all.out;
  EXPECT_EQ(rows[0]["fields"]["by"], "ann");
  EXPECT_EQ(rows[1]["sequence"], 9);
  const auto asked = fake.requests().back().target;
  EXPECT_THAT(asked, HasSubstr("after=0"));
  EXPECT_THAT(asked, HasSubstr("until=12"));
  EXPECT_THAT(asked, HasSubstr("kind=audit"));
  EXPECT_THAT(asked, HasSubstr("since=2023-11-14T20%3A13%3A20.000000Z")) << "2 h before the test's clock";
  EXPECT_EQ(call(fake, {"events", "--limit", "1", "-o", "csv", "--columns", "number,by"}).out,
            "sequence,fields.by\n9,bob\n");
  EXPECT_EQ(call(fake, {"events", "--limit", "0", "-q"}).out, "");
  const auto desk = call(fake, {"events", "--kind", "shell", "-o", "json"});
  EXPECT_EQ(value::parse(desk.out, nullptr, false)[0]["user"], "ada");
  EXPECT_EQ(desk.err, "node gpu01 did not answer: away\n");
  const auto wrong = call(fake, {"events", "--kind", "node", "--follow"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_EQ(
    wrong.err,
    "error: --follow is for facts, not for --kind node\nhint: troupe shell -e 'events -f kind=node'\n");
}
