#include "runtime/api/accounts.hpp"
#include "system/whole_file.hpp"

#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace troupe::api {
namespace {

const time_point t0{std::chrono::seconds{1'700'000'000}};

struct folder {
  folder() { path = ::mkdtemp(name); }
  ~folder() { std::filesystem::remove_all(path); }
  char name[32] = "/tmp/troupe_accounts_XXXXXX";
  std::filesystem::path path;
};

std::vector<user_changed> users_in(const std::vector<catalogue_fact>& facts) {
  std::vector<user_changed> all;
  for (const auto& fact : facts)
    if (const auto* user = std::get_if<user_changed>(&fact))
      all.push_back(*user);
  return all;
}

token_changed revoked(const session_claim& session) {
  return {t0, "ada", {session.user_id}, session.id, "", session.until, true};
}

TEST(Accounts, StartBlankOnLoopbackAndWithGeneratedPasswordsElsewhere) {
  auto blank = *accounts::open({}, t0);
  EXPECT_TRUE(blank->log_in("determined", "", true, t0));
  EXPECT_TRUE(blank->log_in("admin", "", false, t0)->who.admin);
  EXPECT_EQ(blank->log_in("determined", "x", true, t0).error().code, errc::unauthorized);
  EXPECT_EQ(blank->log_in("nobody", "", true, t0).error().code, errc::unauthorized);
  EXPECT_TRUE(blank->take_generated().empty());

  accounts::options open_to_all;
  open_to_all.loopback = false;
  auto closed = *accounts::open(open_to_all, t0);
  auto shown = closed->take_generated();
  ASSERT_EQ(shown.size(), 2u);
  EXPECT_TRUE(closed->take_generated().empty());
  EXPECT_FALSE(closed->log_in("determined", "", true, t0));
  EXPECT_TRUE(closed->log_in(shown[1].first, shown[1].second, false, t0));
  EXPECT_TRUE(closed->log_in(shown[1].first, client_hash(shown[1].second), true, t0));

  open_to_all.initial_password = "given";
  auto given = *accounts::open(open_to_all, t0);
  EXPECT_TRUE(given->take_generated().empty());
  EXPECT_TRUE(given->log_in("admin", client_hash("given"), true, t0));
}

TEST(Accounts, TheClientsHashIsTheDocumentedOne) {
  EXPECT_EQ(client_hash(""), "");
  // The client sends hex(sha512("GubPEmmotfiK9TMD6Zdw" + password)).
  EXPECT_EQ(client_hash("determined").size(), 128u);
  EXPECT_EQ(client_hash("password").substr(0, 16), "112ded61f5688796");
}

TEST(Accounts, SessionsOutliveARestartExpireAndAreRevoked) {
  folder f;
  accounts::options how;
  how.file = f.path / "accounts.json";
  std::string kept, ended, task, experiment;
  std::vector<catalogue_fact> journal;
  token_changed end;
  {
    auto a = *accounts::open(how, t0);
    kept = a->log_in("determined", "", true, t0)->token;
    ended = a->log_in("determined", "", true, t0)->token;
    EXPECT_NE(kept, ended);
    end = revoked(*a->session_of(ended, t0));
    a->take(end);
    EXPECT_FALSE(a->session_of(ended, t0));
    journal = a->take_first_facts();
    ASSERT_EQ(journal.size(), 2u) << "admin and determined";
    task = a->allocation_token({{12}, {3}});
    experiment = a->experiment_token({7}, 2);
  }
  struct stat about {};
  ASSERT_EQ(::stat(how.file.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  auto a = *accounts::open(how, t0, {users_in(journal), {end}});
  EXPECT_TRUE(a->take_first_facts().empty());
  EXPECT_EQ(a->holder(kept, t0)->user_id, 2u);
  EXPECT_EQ(a->holder(ended, t0).error().code, errc::unauthorized);
  EXPECT_EQ(a->holder(kept, t0 + std::chrono::hours{24 * 7}).error().code, errc::unauthorized);
  EXPECT_EQ(a->holder(task, t0)->allocation, (allocation_id{{12}, {3}}));
  EXPECT_EQ(a->holder(experiment, t0)->experiment, experiment_id{7});
  EXPECT_EQ(a->allocation_token({{12}, {3}}), task);
  const allocation_id notebook{task_id::of(task_kind::notebook, 1, 2), {1}};
  EXPECT_EQ(a->holder(a->allocation_token(notebook), t0)->allocation, notebook);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    auto forged = kept;
    forged[i] = forged[i] == '1' ? '2' : '1';
    EXPECT_FALSE(a->holder(forged, t0)) << i;
  }
  EXPECT_FALSE((*accounts::open({}, t0))->holder(kept, t0)) << "another cluster's secret";
}

TEST(Accounts, ANewPasswordOrDeactivationEndsOldSessions) {
  auto a = *accounts::open({}, t0);
  user_changed ada{t0, "admin", {3}, "ada"};
  ada.password = *a->keep_password("secret", false);
  a->take(ada);
  EXPECT_FALSE(a->log_in("ada", "", false, t0));
  auto token = a->log_in("ada", client_hash("secret"), true, t0)->token;
  const auto before = a->version();
  ada.password = *a->keep_password(client_hash("new"), true);
  ada.generation = 2;
  a->take(ada);
  EXPECT_NE(a->version(), before);
  EXPECT_FALSE(a->holder(token, t0));
  EXPECT_FALSE(a->log_in("ada", "secret", false, t0));
  token = a->log_in("ada", "new", false, t0)->token;
  ada.active = false;
  a->take(ada);
  EXPECT_FALSE(a->holder(token, t0));
  EXPECT_EQ(a->log_in("ada", "new", false, t0).error().code, errc::denied);
  EXPECT_EQ(*a->keep_password("", false), "");
  accounts::options open_to_all;
  open_to_all.loopback = false;
  EXPECT_EQ((*accounts::open(open_to_all, t0))->keep_password("", false).error().code, errc::invalid);
}

TEST(Accounts, OwnersAreKnownByFormerNamesAndLogInByTheirOwn) {
  auto a = *accounts::open({}, t0);
  user_changed ada{t0, "admin", {3}, "Ada"};
  a->take(ada);
  EXPECT_EQ(a->now_named("Ada"), "Ada");
  ada.name = "Countess";
  ada.former = {"ada"};
  a->take(ada);
  EXPECT_EQ(a->owner("Ada")->id, 3u);
  EXPECT_EQ(a->owner("Countess")->id, 3u);
  EXPECT_EQ(a->now_named("Ada"), "Countess");
  EXPECT_EQ(a->now_named("nobody"), "nobody");
  EXPECT_EQ(a->find("Ada").error().code, errc::not_found);
  EXPECT_EQ(a->find("countess")->id, 3u);
  EXPECT_EQ(a->log_in("Ada", "", false, t0).error().code, errc::unauthorized);
  EXPECT_TRUE(a->log_in("Countess", "", false, t0));
  ada.name = "Ada"; // the user takes the first name again
  ada.former = {"countess"};
  a->take(ada);
  EXPECT_EQ(a->now_named("Countess"), "Ada");
  EXPECT_EQ(a->find("Countess").error().code, errc::not_found);
}

TEST(Accounts, ATokenLivesAsLongAsItIsAskedFor) {
  auto a = *accounts::open({}, t0);
  auto token = a->log_in("admin", "", false, t0, std::chrono::hours{24 * 90})->token;
  EXPECT_EQ(a->session_of(token, t0)->until, t0 + std::chrono::hours{24 * 90});
  EXPECT_TRUE(a->holder(token, t0 + std::chrono::hours{24 * 89}));
}

TEST(Accounts, TheFileHoldsHashesThatTheUsersOfTheJournalName) {
  folder f;
  accounts::options how;
  how.file = f.path / "passwords";
  std::vector<user_changed> users;
  {
    auto a = *accounts::open(how, t0);
    users = users_in(a->take_first_facts());
    users[0].password = *a->keep_password("first", false);
    ASSERT_TRUE(a->keep_password("of a change that never became durable", false));
    EXPECT_TRUE(a->log_in("determined", "", false, t0 + std::chrono::seconds{5}));
    a->keep_last_logins();
  }
  const auto text = **read_whole(how.file);
  EXPECT_NE(text.find("argon2id"), text.npos);
  EXPECT_EQ(text.find("determined"), text.npos) << "users are not there";
  auto a = *accounts::open(how, t0, {users, {}});
  EXPECT_TRUE(a->log_in("admin", "first", false, t0));
  EXPECT_FALSE(a->log_in("admin", "", false, t0));
  EXPECT_EQ(a->find("determined")->last_login, t0 + std::chrono::seconds{5});
  // An operator removes the file when everybody has forgotten the password.
  std::filesystem::remove(how.file);
  auto cured = *accounts::open(how, t0, {users, {}});
  EXPECT_TRUE(cured->log_in("admin", "", false, t0));
  EXPECT_EQ(users_in(cured->take_first_facts()).size(), 2u);
}

TEST(Accounts, AnOlderFileGivesTheFirstFacts) {
  folder f;
  accounts::options how;
  how.file = f.path / "passwords";
  how.old_file = f.path / "users";
  // The file is as the build of November 2026 wrote it. The password of ada is "secret".
  std::ofstream(how.old_file)
    << R"({"secret": "000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f",
    "users": [{"id": 1, "name": "admin", "display_name": "", "admin": true, "active": true, "hash": "", "generation": 1,
               "modified": 1699999999000000, "last_login": 1699999999500000},
              {"id": 4, "name": "ada", "display_name": "Ada", "admin": false, "active": false, "generation": 3,
               "modified": 1699999999000000, "last_login": 0,
               "hash": "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$AAAA",
               "runs_as": {"uid": 7, "gid": 8, "user": "ada", "group": "lab"}}],
    "revoked": {"abc": 1700000100000000}})";
  auto a = *accounts::open(how, t0);
  auto facts = a->take_first_facts();
  ASSERT_EQ(facts.size(), 3u);
  const auto ada = std::get<user_changed>(facts[1]);
  EXPECT_EQ(ada.id, user_id{4});
  EXPECT_EQ(ada.by, "troupe");
  EXPECT_EQ(ada.generation, 3u);
  EXPECT_EQ(ada.runs_as.at(0).group, "lab");
  EXPECT_FALSE(ada.active);
  EXPECT_FALSE(ada.password.empty());
  EXPECT_EQ(ada.password.find("argon"), std::string::npos);
  EXPECT_EQ(std::get<token_changed>(facts[2]).id, "abc");
  EXPECT_EQ(a->find("admin")->last_login, t0 - std::chrono::milliseconds{500});
  EXPECT_NE((**read_whole(how.file)).find("$argon2id$"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(how.old_file)) << "until the facts are durable";
  // After a crash before the facts are durable, the same facts are made again, and no hash is lost.
  auto again = *accounts::open(how, t0);
  EXPECT_EQ(again->take_first_facts().size(), 3u);
  // Once the facts are durable, the older file is ignored.
  auto later = *accounts::open(how, t0, {users_in(facts), {}});
  EXPECT_TRUE(later->take_first_facts().empty());
  EXPECT_EQ(later->users().size(), 2u);
}

TEST(Accounts, ADamagedFileIsRefusedAndKept) {
  folder f;
  accounts::options how;
  how.file = f.path / "accounts.json";
  for (const char* text : {"", "{", "[]", "{\"secret\": \"\", \"hashes\": {}, \"last_logins\": {}}"}) {
    std::ofstream(how.file) << text;
    auto a = accounts::open(how, t0);
    ASSERT_FALSE(a) << text;
    EXPECT_EQ(a.error().code, errc::corrupt);
    EXPECT_EQ(**read_whole(how.file), text);
  }
  how.file = f.path / "missing" / "accounts.json";
  EXPECT_EQ(accounts::open(how, t0).error().code, errc::io);
}

} // namespace
} // namespace troupe::api
