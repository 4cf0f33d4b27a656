#include "test/unit/api/fakes.hpp"

namespace troupe::api {
namespace {

const std::string at = "/troupe/v1/shell/";

TEST(ShellRoutes, AQueryBecomesFieldsOfTheirTypes) {
  live x;
  struct {
    const char* path;
    const char* command;
    value fields;
  } const cases[] = {
    {"ps?kind=trial&top=3&window=0.5&sort=backlog&filter=a",
     "shell.ps",
     {{"kind", "trial"}, {"top", 3.0}, {"window", 0.5}, {"sort", "backlog"}, {"filter", "a"}}},
    {"info?actor=trial%2F7", "shell.info", {{"actor", "trial/7"}}},
    {"state?actor=trial/7&path=queue[0]&diff=2",
     "shell.state",
     {{"actor", "trial/7"}, {"path", "queue[0]"}, {"diff", 2.0}}},
    {"nodes", "shell.nodes", value::object()},
    {"waits", "shell.waits", value::object()},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(raw_client{x.http->port()}.ask("GET", at + c.path, x.token()).status, 200) << c.path;
    const auto heard = x.cluster.all().back();
    EXPECT_EQ(heard.command, c.command);
    for (const auto& [key, x] : c.fields.items()) // the other fields have their defaults
      EXPECT_EQ(heard.fields.value(key, value()), x) << c.path;
    EXPECT_EQ(heard.who.user, "determined");
  }
}

TEST(ShellRoutes, AWrongNumberNamesItsField) {
  live x;
  for (const char* path :
       {"ps?window=soon", "ps?top=-1", "msgs?actor=a&max=1e99", "events?max=x", "trace?actor=a&rate=nan"}) {
    const auto got = raw_client{x.http->port()}.ask("GET", at + path, x.token());
    EXPECT_EQ(got.status, 400) << path;
    EXPECT_NE(got.body.find("the field '"), std::string::npos) << got.body;
  }
  EXPECT_TRUE(x.cluster.all().empty());
}

TEST(ShellRoutes, ActingIsForAdminsAndNamesWhatIsMissing) {
  live x;
  const std::string user = x.token(), admin = x.token("admin");
  for (const char* path : {"kill", "restart", "send", "config", "drain", "fault", "log"}) {
    EXPECT_EQ(raw_client{x.http->port()}.ask("POST", at + path, user, "{}").status, 403) << path;
    EXPECT_EQ(raw_client{x.http->port()}.ask("POST", at + path, "", "{}").status, 401) << path;
    const auto got = raw_client{x.http->port()}.ask("POST", at + path, admin, "{}");
    EXPECT_EQ(got.status, 400) << path;
    EXPECT_NE(got.body.find("the field '"), std::string::npos) << got.body;
  }
  EXPECT_EQ(raw_client{x.http->port()}.ask("POST", at + "drain", admin, R"({"node": "a1", "on": 1})").status,
            400);
  EXPECT_TRUE(x.cluster.all().empty());
  EXPECT_EQ(raw_client{x.http->port()}.ask("POST", at + "kill", admin, R"({"actor": "trial/7"})").status,
            200);
  const auto heard = x.cluster.all().at(0);
  EXPECT_EQ(heard.command, "shell.kill");
  EXPECT_EQ(heard.fields, value({{"actor", "trial/7"}}));
  EXPECT_TRUE(heard.who.admin);
}

TEST(ShellRoutes, PastEventsAreFactsAndTheDesksInOrderOfTime) {
  live x;
  x.cluster.answers["shell.events"] = [](const auto&) {
    return value{
      {"rows",
       {{{"at", "1999"}, {"kind", "audit"}, {"actor", "trial/7"}, {"what", "kill"}, {"user", "ada"}}}},
      {"missing", value::array()}};
  };
  auto got = raw_client{x.http->port()}.ask("GET", at + "events", x.token()).json()["rows"];
  ASSERT_EQ(got.size(), 3u) << got;
  EXPECT_EQ(got[0]["user"], "ada");
  EXPECT_EQ(got[2]["kind"], "state");
  EXPECT_EQ(got[2]["actor"], "trial/12");
  EXPECT_TRUE(got[2]["what"].get<std::string>().starts_with("run_started {")) << got[2];
  EXPECT_EQ(raw_client{x.http->port()}.ask("GET", at + "events?max=1", x.token()).json()["rows"].size(), 1u);
  EXPECT_EQ(raw_client{x.http->port()}.ask("GET", at + "events?kind=audit", x.token()).json()["rows"].size(),
            1u);
}

TEST(ShellRoutes, WhatIsNotKnownCannotBeFollowed) {
  live x;
  for (const char* wanted : {"trial/999", "trial/x", "experiment/999", "allocation/999.1"})
    EXPECT_EQ(raw_client{x.http->port()}.ask("GET", at + "follow?correlation=" + wanted, x.token()).status,
              404)
      << wanted;
}

} // namespace
} // namespace troupe::api
