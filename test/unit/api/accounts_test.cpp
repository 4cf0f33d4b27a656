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
  EXPECT_EQ(client_hash("determined").size(), 128u); // hex(sha512("GubPEmmotfiK9TMD6Zdw" + password))
  EXPECT_EQ(client_hash("password").substr(0, 16), "112ded61f5688796");
}

TEST(Accounts, SessionsOutliveARestartExpireAndAreRevoked) {
  folder f;
  accounts::options how;
  how.file = f.path / "accounts.json";
  std::string kept, ended, task, experiment;
  {
    auto a = *accounts::open(how, t0);
    kept = a->log_in("determined", "", true, t0)->token;
    ended = a->log_in("determined", "", true, t0)->token;
    EXPECT_NE(kept, ended);
    EXPECT_TRUE(a->log_out(ended, t0));
    EXPECT_TRUE(a->log_out(ended, t0)); // again
    task = a->allocation_token({{12}, {3}});
    experiment = a->experiment_token({7}, 2);
  }
  struct stat about {};
  ASSERT_EQ(::stat(how.file.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  auto a = *accounts::open(how, t0);
  EXPECT_EQ(a->holder(kept, t0)->user_id, 2u);
  EXPECT_EQ(a->holder(ended, t0).error().code, errc::unauthorized);
  EXPECT_EQ(a->holder(kept, t0 + std::chrono::hours{24 * 7}).error().code, errc::unauthorized);
  EXPECT_EQ(a->holder(task, t0)->allocation, (allocation_id{{12}, {3}}));
  EXPECT_EQ(a->holder(experiment, t0)->experiment, experiment_id{7});
  EXPECT_EQ(a->allocation_token({{12}, {3}}), task);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    auto forged = kept;
    forged[i] = forged[i] == '1' ? '2' : '1';
    EXPECT_FALSE(a->holder(forged, t0)) << i;
  }
  EXPECT_FALSE((*accounts::open({}, t0))->holder(kept, t0)) << "another cluster's secret";
}

TEST(Accounts, ANewPasswordOrDeactivationEndsOldSessions) {
  auto a = *accounts::open({}, t0);
  auto u = a->create({.name = "ada"}, "secret", false, t0);
  ASSERT_TRUE(u);
  EXPECT_NE(u->hash.find("argon2id"), std::string::npos);
  EXPECT_EQ(a->create({.name = "ada"}, "", false, t0).error().what, "user already exists");
  EXPECT_EQ(a->create({.name = "a/b"}, "", false, t0).error().code, errc::invalid);
  auto token = a->log_in("ada", client_hash("secret"), true, t0)->token;
  user_change x;
  x.password = "new";
  EXPECT_TRUE(a->change(u->id, x, t0));
  EXPECT_FALSE(a->holder(token, t0));
  EXPECT_FALSE(a->log_in("ada", "secret", false, t0));
  token = a->log_in("ada", "new", false, t0)->token;
  user_change off;
  off.active = false;
  EXPECT_TRUE(a->change(u->id, off, t0));
  EXPECT_FALSE(a->holder(token, t0));
  EXPECT_EQ(a->log_in("ada", "new", false, t0).error().code, errc::denied);
}

TEST(Accounts, ADamagedFileIsRefusedAndKept) {
  folder f;
  accounts::options how;
  how.file = f.path / "accounts.json";
  for (const char* text : {"", "{", "[]", "{\"secret\": \"\", \"users\": [], \"revoked\": {}}"}) {
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
