#include "actors/catalogue/catalogue_commands.hpp"

#include "model/commands/table.hpp"
#include "test/unit/actors/show.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{1'700'000'000s};
constexpr std::int64_t until = 1'700'000'900'000'000; // 900 s after t0, in microseconds

/// A catalogue that is given commands, and a twin that sees only the facts, as the journal holds them.
struct told {
  catalogue machine, twin;

  std::string say(const std::string& command, const value& fields, duration after = {}) {
    auto change = commands::dispatch<catalogue_change, commands::catalogue_commands>(
      command, fields, [&](const auto& x) { return troupe::change(machine, x, "ada", t0 + after); });
    if (!change)
      return "refused: " + change.error().what;
    for (const auto& fact : change->facts)
      twin.replay(*decode_as<catalogue_fact>(encode_as(fact)));
    EXPECT_EQ(twin.snapshot(), machine.snapshot()) << command << " " << to_json(fields);
    return show(change->facts) + (change->answer.empty() ? "" : " " + to_json(change->answer));
  }
};

TEST(Catalogue, GivesANameThatIsAlwaysTakenBackToWhoHadIt) {
  told t;
  user_changed first;
  first.at = t0;
  first.id = {1};
  first.name = "admin";
  t.machine.replay(catalogue_fact{first});
  t.twin.replay(catalogue_fact{first});
  EXPECT_TRUE(t.say("user.change", {{"id", 1}, {"name", "root2"}}).starts_with("user(1 root2 "));
  EXPECT_EQ(t.say("user.create", {{"name", "admin"}}),
            "refused: user already exists: user 1 had this name, and what that user made still bears it");
  EXPECT_EQ(t.say("user.create", {{"name", "determined"}}), "refused: user already exists");
  EXPECT_TRUE(t.say("user.change", {{"id", 1}, {"name", "admin"}}).starts_with("user(1 admin "));
}

TEST(Catalogue, DecidesOnUsers) {
  told t;
  const value as{{"uid", 7}, {"gid", 8}, {"user", "u"}, {"group", "g"}};
  const struct {
    const char* command;
    value fields;
    const char* step;
  } steps[] = {
    {"user.create", {{"name", "eve"}, {"password", "h1"}}, R"(user(1 eve h1/1 by ada) {"id":1})"},
    {"user.create", {{"name", "eve"}}, "refused: user already exists"},
    {"user.create", {{"name", "EVE"}}, "refused: user already exists"},
    {"user.create", {{"name", "admin"}}, "refused: user already exists"},
    {"user.create", {{"name", "Determined"}}, "refused: user already exists"},
    {"user.create",
     {{"name", "e"}},
     "refused: a user name has 2 to 64 letters of ASCII, digits, or one of ._-@+"},
    {"user.create",
     {{"name", "\u0435\u0432\u0430"}},
     "refused: a user name has 2 to 64 letters of ASCII, digits, or one of ._-@+"},
    {"user.create", {{"name", "bob"}, {"display_name", "Eve"}}, "refused: a user is named 'Eve' already"},
    {"user.create",
     {{"name", "bob"}, {"runs_as", {{"uid", -1}, {"gid", 8}, {"user", "u"}, {"group", "g"}}}},
     "refused: agentUserGroup: agentUid: -1 is the number of no account: 0 to 4294967293"},
    {"user.create",
     {{"name", "a/b"}},
     "refused: a user name has 2 to 64 letters of ASCII, digits, or one of ._-@+"},
    {"user.create",
     {{"name", ""}},
     "refused: a user name has 2 to 64 letters of ASCII, digits, or one of ._-@+"},
    {"user.create",
     {{"name", std::string(65, 'x')}},
     "refused: a user name has 2 to 64 letters of ASCII, digits, or one of ._-@+"},
    {"user.create",
     {{"name", "bob"}, {"admin", true}, {"active", false}},
     R"(user(2 bob admin inactive /1 by ada) {"id":2})"},
    {"user.create", {{"name", 3}}, nullptr},
    {"user.change", {{"id", 1}, {"display_name", "Eve"}}, "user(1 eve h1/1 by ada)"},
    {"user.change", {{"id", 1}, {"display_name", "Eve"}}, ""}, // the command changes nothing
    {"user.change", {{"id", 1}, {"password", "h2"}}, "user(1 eve h2/2 by ada)"},
    {"user.change", {{"id", 1}, {"active", false}}, "user(1 eve inactive h2/3 by ada)"},
    {"user.change", {{"id", 1}, {"active", true}}, "user(1 eve h2/3 by ada)"},
    {"user.change", {{"id", 1}, {"name", "bob"}}, "refused: user already exists"},
    {"user.change", {{"id", 1}, {"name", "eva"}}, "user(1 eva h2/3 by ada)"},
    {"user.change", {{"id", 1}, {"name", "ewa"}}, "user(1 ewa h2/3 by ada)"},
    {"user.create",
     {{"name", "EVA"}},
     "refused: user already exists: user 1 had this name, and what that user made still bears it"},
    {"user.change",
     {{"id", 2}, {"name", "Eva"}},
     "refused: user already exists: user 1 had this name, and what that user made still bears it"},
    // the user takes an earlier name again
    {"user.change", {{"id", 1}, {"name", "eva"}}, "user(1 eva h2/3 by ada)"},
    {"user.change", {{"id", 1}, {"runs_as", as}}, "user(1 eva h2/3 by ada)"},
    {"user.change", {{"id", 1}, {"runs_as", as}}, ""},
    {"user.change", {{"id", 2}, {"display_name", "EVE"}}, "refused: a user is named 'EVE' already"},
    {"user.change", {{"id", 2}, {"display_name", ""}}, ""},
    {"user.change", {{"id", 2}, {"remote", true}}, "user(2 bob admin inactive /2 by ada)"},
    {"user.change",
     {{"id", 2}, {"password", "h4"}},
     "refused: user 'bob' is remote: it has no password here"},
    {"user.change", {{"id", 9}, {"admin", true}}, "refused: user 9 not found"},
    {"user.delete", {{"id", 1}}, "refused: no command 'user.delete'"},
  };
  for (const auto& s : steps) {
    const auto got = t.say(s.command, s.fields);
    if (s.step)
      EXPECT_EQ(got, s.step) << to_json(s.fields);
    else
      EXPECT_TRUE(got.starts_with("refused: ") && got.find("name") != got.npos) << got;
  }
  EXPECT_EQ(t.machine.users().at({1}).display_name, "Eve");
  EXPECT_EQ(t.machine.users().at({1}).runs_as.at(0).uid, 7);
}

TEST(Catalogue, NamesAndRevokesTokens) {
  told t;
  t.say("user.create", {{"name", "eve"}});
  const struct {
    const char* command;
    value fields;
    duration after;
    const char* step;
  } steps[] = {
    {"token.revoke", {{"user", 1}, {"id", "a"}, {"until", until}}, 0s, "token(a of 1 '' revoked)"},
    {"token.revoke", {{"user", 1}, {"id", "a"}, {"until", until}}, 0s, ""},   // the token is revoked already
    {"token.revoke", {{"user", 1}, {"id", "b"}, {"until", until}}, 900s, ""}, // the token has expired anyway
    {"token.revoke", {{"user", 9}, {"id", "b"}, {"until", until}}, 0s, "refused: user 9 not found"},
    {"token.name",
     {{"user", 1}, {"id", "c"}, {"until", until}, {"name", "nightly"}},
     1s,
     "token(c of 1 'nightly')"},
    {"token.name",
     {{"user", 1}, {"id", "d"}, {"until", until}, {"name", "nightly"}},
     2s,
     "token(c of 1 'nightly' revoked) token(d of 1 'nightly')"},
    {"token.name",
     {{"user", 1}, {"id", "e"}, {"until", until}, {"name", ""}},
     2s,
     "refused: a token that is kept has an id and a name"},
    {"token.revoke", {{"user", 1}, {"id", "d"}, {"until", until}}, 3s, "token(d of 1 'nightly' revoked)"},
  };
  for (const auto& s : steps)
    EXPECT_EQ(t.say(s.command, s.fields, s.after), s.step) << to_json(s.fields);
  EXPECT_EQ(t.machine.tokens().size(), 3u);
  t.say("token.revoke", {{"user", 1}, {"id", "f"}, {"until", until + 5}}, 900s);
  EXPECT_EQ(t.machine.tokens().size(), 1u) << "what is void anyway need not be known";
}

TEST(Catalogue, PutsAConfigurationInForceOverTheOneThatWasLookedAt) {
  told t;
  const value one{{"pools", {{"a", value::object()}}}}, two{{"pools", {{"b", value::object()}}}};
  EXPECT_EQ(t.say("configuration.record", {{"configuration", one}, {"revision", 0}}),
            R"(configuration(1 by ada) {"revision":1})");
  EXPECT_EQ(t.say("configuration.record", {{"configuration", one}, {"revision", 1}}), R"( {"revision":1})");
  EXPECT_EQ(t.say("configuration.record", {{"configuration", two}, {"revision", 0}}),
            "refused: the configuration has changed meanwhile; look at the plan again");
  EXPECT_EQ(t.say("configuration.record", {{"configuration", two}, {"revision", 1}}),
            R"(configuration(2 by ada) {"revision":2})");
  EXPECT_EQ(t.machine.configuration().configuration, two);
}

TEST(Catalogue, KeepsSettings) {
  told t;
  EXPECT_EQ(t.say("setting.change", {{"key", "log.level"}, {"value", "debug"}}), R"(set(log.level "debug"))");
  EXPECT_EQ(t.say("setting.change", {{"key", "log.level"}, {"value", "debug"}}), "");
  EXPECT_EQ(t.say("setting.change", {{"key", "log.level"}, {"value", "info"}}), R"(set(log.level "info"))");
  EXPECT_EQ(t.machine.settings().at("log.level").to, "info");
}

TEST(Catalogue, TakesItsOwnFactsOfTheClustersStream) {
  catalogue live, after;
  commands::user_create eve;
  eve.name = "eve";
  auto made = change(live, eve, "ada", t0);
  ASSERT_TRUE(made);
  after.replay(cluster_fact{experiment_swept{t0, {7}}});
  EXPECT_EQ(after.snapshot(), catalogue().snapshot());
  for (const auto& fact : made->facts)
    after.replay(*decode_as<cluster_fact>(encode_as(fact)));
  EXPECT_EQ(after.snapshot(), live.snapshot());
}

} // namespace
} // namespace troupe
