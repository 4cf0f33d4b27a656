#include "runtime/shell/api.hpp"
#include "runtime/shell/session.hpp"
#include "test/unit/cli/console_for_test.hpp"
#include "test/unit/cli/fake_server.hpp"

#include <gmock/gmock.h>

namespace troupe::shell {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

client::server_address at(const fake_server& s) { return {s.url(), "", {}, 0}; }

bool logs_in(const fake_server::received& r, fake_server::connection& c, const char* token = "t") {
  if (r.target != "/api/v1/auth/login")
    return false;
  c.answer(200, std::string("{\"token\":\"") + token + "\"}");
  return true;
}

/// Returns everything that a stream gives until its end. The last row is the text of the fault if there is
/// one.
std::vector<std::string> all_of(row_stream& rows) {
  std::vector<std::string> out;
  for (auto until = std::chrono::steady_clock::now() + 20s;
       !rows.ended() && std::chrono::steady_clock::now() < until;) {
    auto got = rows.read(50ms);
    if (!got) {
      out.push_back(got.error().what);
      return out;
    }
    const char* names[] = {"row ", "lost ", "end "};
    for (const auto& e : *got)
      out.push_back(names[static_cast<int>(e.what)] + to_json(e.data));
  }
  return out;
}

TEST(Api, ReadsRowsLossesAndTheEndInPartsOfAnySize) {
  fake_server server([](const fake_server::received& r, fake_server::connection& c) {
    if (logs_in(r, c))
      return;
    c.begin_stream("text/event-stream");
    for (char byte : std::string(": alive\n\ndata: {\"a\":1}\n\nevent: lost\ndata: {\"count\":7}\n\ndata: no "
                                 "json\n\ndata: 5\n\nevent: end\ndata: "
                                 "{\"why\":\"max\"}\n\ndata: {\"late\":1}\n\n"))
      c.send(std::string(1, byte));
  });
  api to(at(server), {});
  auto rows = to.stream(route("trace"), {{"actor", "trial/7"}});
  auto got = all_of(rows);
  ASSERT_GE(got.size(), 3u);
  EXPECT_EQ(got[0], "row {\"a\":1}");
  EXPECT_EQ(got[1], "lost {\"count\":7}");
  EXPECT_EQ(got[2], "end {\"why\":\"max\"}");
  EXPECT_EQ(server.requests().back().target, "/troupe/v1/shell/trace?actor=trial%2F7");
}

TEST(Api, SaysThatANodeWentAwayAfterWhatItGave) {
  fake_server server([](const fake_server::received& r, fake_server::connection& c) {
    if (logs_in(r, c))
      return;
    c.begin_stream("text/event-stream");
    c.send("data: {\"a\":1}\n\ndata: {\"half");
  });
  api to(at(server), {});
  auto rows = to.stream(route("events"), {});
  auto got = all_of(rows);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0], "row {\"a\":1}");
  EXPECT_THAT(got[1], HasSubstr("went away in the middle of the stream"));
}

TEST(Api, LogsInAgainOnceAndTellsARefusal) {
  std::atomic<int> logins{0};
  fake_server server([&](const fake_server::received& r, fake_server::connection& c) {
    if (r.target == "/api/v1/auth/login")
      return c.answer(200, "{\"token\":\"t" + std::to_string(++logins) + "\"}");
    if (r.head.find("Bearer t2") == std::string::npos)
      return c.answer(401, R"({"error":{"code":401,"reason":"Unauthenticated","error":"an old token"}})");
    c.answer(404, R"({"error":{"code":404,"reason":"NotFound","error":"there is no actor 'x'"}})");
  });
  api to(at(server), {});
  auto got = to.get(route("info"), {{"actor", "x"}});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::not_found);
  EXPECT_EQ(got.error().what, "there is no actor 'x'");
  EXPECT_EQ(logins, 2);
  auto rows = to.stream(route("trace"), {{"actor", "x"}});
  auto all = all_of(rows);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0], "there is no actor 'x'");
}

TEST(Api, GivesUpWhenInterrupted) {
  fake_server server([](const fake_server::received& r, fake_server::connection& c) {
    if (!logs_in(r, c))
      c.wait_for_end();
  });
  std::atomic<bool> interrupted{false};
  api to(at(server), {}, &interrupted);
  std::thread later([&] { interrupted = true; });
  auto got = to.get(route("nodes"));
  later.join();
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().what, "interrupted");
}

TEST(Session, MayChangeForFifteenMinutesAndNotAfterMovingOn) {
  fake_server server([](const fake_server::received& r, fake_server::connection& c) {
    if (logs_in(r, c))
      return;
    c.answer(200, r.target == "/api/v1/me" ? R"({"user":{"username":"ada","admin":true}})"
                                           : R"({"rows":[],"done":"ok"})");
  });
  std::istringstream in;
  std::ostringstream out, err;
  cli::terminal screen;
  cli::console io{in,
                  out,
                  err,
                  screen,
                  screen,
                  -1,
                  [] { return time_point{std::chrono::seconds(1'700'000'000)}; },
                  [](const char*) { return std::string(); }};
  cli::hooks node;
  std::atomic<bool> interrupted{false};
  session s(node, io, interrupted);
  ASSERT_TRUE(s.attach(server.url()));
  EXPECT_EQ(s.prompt(), "troupe> ");
  EXPECT_EQ(s.run("kill trial/7"), cli::exit_denied);
  EXPECT_EQ(s.run(":rw"), cli::exit_done);
  EXPECT_EQ(s.prompt(), "troupe# ");
  EXPECT_THAT(err.str(), HasSubstr("writing allowed until 22:28 UTC as ada")); // 22:13 plus 15 minutes
  EXPECT_EQ(s.run("kill trial/7"), cli::exit_done);
  // after :attach the permission has to be asked for again
  EXPECT_EQ(s.run(":attach " + server.url()), cli::exit_done);
  EXPECT_EQ(s.prompt(), "troupe> ");
  EXPECT_EQ(s.run("kill trial/7"), cli::exit_denied);
}

} // namespace
} // namespace troupe::shell
