#include "fakes.hpp"

#include <thread>

namespace troupe::api {
namespace {

TEST(Server, AnswersHealthAndInfoWithoutAToken) {
  live x;
  raw_client c{x.http->port()};
  auto health = c.ask("GET", "/health");
  EXPECT_EQ(health.status, 200);
  EXPECT_EQ(health.json()["status"], "up");
  auto info = c.ask("GET", "/info"); // the second request uses the same connection
  EXPECT_EQ(info.json()["version"], "0.38.1");
  EXPECT_FALSE(info.json().contains("sso_providers"));
}

TEST(Server, AnswersAClientThatSendsNoMoreAfterItsRequest) {
  live x;
  for (const std::string request : {"GET /api/v1/master HTTP/1.1\r\nHost: localhost\r\n\r\n",
                                    "GET /api/v1/master HTTP/1.0\r\nHost: localhost\r\n\r\n",
                                    "POST /api/v1/auth/login HTTP/1.1\r\nContent-Length: "
                                    "40\r\n\r\n{\"username\":\"determined\",\"password\":\"\"} "}) {
    raw_client c{x.http->port()};
    c.send(request);
    c.end_writing();
    EXPECT_EQ(c.answer().status, 200) << request;
  }
}

TEST(Server, LogsInAndReadsAnExperiment) {
  live x;
  raw_client c{x.http->port()};
  auto in =
    c.ask("POST", "/api/v1/auth/login", "", R"({"username":"determined","password":"","isHashed":true})");
  ASSERT_EQ(in.status, 200) << in.body;
  auto got = c.ask("GET", "/api/v1/experiments/7", in.json()["token"]);
  EXPECT_EQ(got.status, 200) << got.body;
  EXPECT_EQ(got.json()["experiment"]["bestTrialId"], 12);
  EXPECT_EQ(got.json()["experiment"]["state"], "STATE_ACTIVE");
  EXPECT_NE(got.head.find("Troupe-Sequence: 2"), std::string::npos) << got.head;
}

TEST(Server, RefusesATakenOrMalformedAddressAtOnce) {
  live x;
  fake_gate g;
  server_options again;
  again.port = x.http->port();
  auto second = server::start(again, g, x.reader, x.users);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, errc::conflict);
  again.host = "no.such.host.invalid";
  EXPECT_EQ(server::start(again, g, x.reader, x.users).error().code, errc::invalid);
  struct {
    const char* text;
    bool fine;
  } cases[] = {{"127.0.0.1:8080", true},  {"[::1]:0", true},    {":80", true},
               {"localhost:65535", true}, {"localhost", false}, {"localhost:", false},
               {"1.2.3.4:65536", false},  {"::1:80", false},    {"a b:80", false},
               {"host:80x", false}};
  for (const auto& one : cases)
    EXPECT_EQ(static_cast<bool>(parse_listen(one.text)), one.fine) << one.text;
  EXPECT_EQ(to_string({"", 80}), "0.0.0.0:80");
  EXPECT_EQ(to_string({"::1", 8080}), "[::1]:8080");
  EXPECT_EQ(to_string({"head.lab", 0}), "head.lab:0");
  EXPECT_TRUE(is_loopback("localhost"));
  EXPECT_TRUE(is_loopback("::1"));
  EXPECT_FALSE(is_loopback("0.0.0.0"));
  EXPECT_FALSE(is_loopback(""));
}

TEST(Server, APortOfPagesShowsNothingOfTheCluster) {
  live finder; // takes a port that is free, and releases it
  const auto pages = finder.http->port();
  finder.http.reset();
  server_options how;
  how.pages = listen_address{"127.0.0.1", pages};
  live x(how);
  const auto login = "Authorization: Bearer " + x.token() + "\r\n";
  for (const char* target :
       {"/health", "/api/v1/me", "/ui/", "/det/interactive/1.0/", "/troupe/v1/connections/1"}) {
    raw_client there(pages);
    there.send("GET " + std::string(target) + " HTTP/1.1\r\nHost: head:1\r\n" + login + "\r\n");
    const auto answer = there.answer();
    EXPECT_EQ(answer.status, 403) << target;
    EXPECT_NE(answer.body.find("pages of tasks"), std::string::npos) << answer.body;
  }
  raw_client there(pages);
  there.send("GET /proxy/no-such-task/ HTTP/1.1\r\nHost: head:1\r\n" + login + "\r\n");
  EXPECT_EQ(there.answer().status, 404);
  server_options same = how;
  same.pages->port = x.http->port();
  fake_gate g;
  EXPECT_EQ(server::start(same, g, x.reader, x.users).error().code, errc::conflict);
}

TEST(Server, RefusesWhatIsNotARequest) {
  live x;
  const std::string t = x.token();
  const auto authorized = "Authorization: Bearer " + t + "\r\n";
  struct {
    const char* what;
    std::string bytes;
    int status; // 0: the connection is closed without an answer
  } cases[] = {
    {"garbage", "\x16\x03\x01\x02\x00 hello\r\n\r\n", 400},
    {"no version", "GET /health\r\n\r\n", 400},
    {"a bad header", "GET /health HTTP/1.1\r\nno colon\r\n\r\n", 400},
    {"a header bomb", "GET /health HTTP/1.1\r\nX: " + std::string(40000, 'x') + "\r\n\r\n", 400},
    {"a broken escape", "GET /api/v1/experiments/%zz HTTP/1.1\r\n\r\n", 400},
    {"a zero byte", "GET /api/v1/experiments/%00 HTTP/1.1\r\n\r\n", 400},
    {"both lengths",
     "POST /api/v1/auth/login HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 400},
    {"two lengths", "POST /api/v1/auth/login HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
     400},
    {"a negative length", "POST /api/v1/auth/login HTTP/1.1\r\nContent-Length: -2\r\n\r\n", 400},
    {"a malformed chunk",
     "POST /api/v1/auth/login HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", 400},
    {"a chunk of 2^64",
     "POST /api/v1/auth/login HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400},
    {"a body over the bound", "POST /api/v1/auth/login HTTP/1.1\r\nContent-Length: 1048577\r\n\r\n", 413},
    {"a chunked body over the bound",
     "POST /api/v1/auth/login HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n" +
       std::string(0x200000, ' ') + "\r\n0\r\n\r\n",
     413},
    {"a context over the bound",
     "POST /api/v1/experiments HTTP/1.1\r\n" + authorized + "Content-Length: 135266305\r\n\r\n", 400},
    {"a WebSocket to a path that speaks HTTP only",
     "GET /api/v1/agents HTTP/1.1\r\n" + authorized +
       "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
     400},
    {"a body that is not an object", "POST /api/v1/auth/login HTTP/1.1\r\nContent-Length: 2\r\n\r\n[]", 400},
    {"a body nested too deep",
     "POST /api/v1/auth/login HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + std::string(100000, '['), 400},
    {"an unknown path", "GET /api/v2/x HTTP/1.1\r\n\r\n", 404},
    {"a wrong method", "DELETE /health HTTP/1.1\r\n\r\n", 405},
  };
  for (const auto& one : cases) {
    raw_client c{x.http->port()};
    c.send(one.bytes);
    auto got = c.answer();
    EXPECT_EQ(got.status, one.status) << one.what << ": " << got.body;
    auto error = got.json().value("error", value::object());
    EXPECT_TRUE(error.contains("code") && error.contains("reason") && error.contains("error"))
      << one.what << ": " << got.body;
  }
  EXPECT_TRUE(x.cluster.all().empty());
}

TEST(Server, DropsASlowClientAndServesOthersMeanwhile) {
  server_options how;
  how.head_time = how.idle_time = how.body_time = std::chrono::milliseconds{200};
  live x{how};
  raw_client slow{x.http->port()}, body{x.http->port()}, silent{x.http->port()};
  slow.send("GET /hea");
  body.send("POST /api/v1/auth/login HTTP/1.1\r\nContent-Length: 100\r\n\r\n{");
  EXPECT_EQ(raw_client{x.http->port()}.ask("GET", "/health").status, 200);
  for (auto* one : {&slow, &body, &silent}) {
    bool closed = false;
    one->read_until([](const std::string&) { return false; }, &closed);
    EXPECT_TRUE(closed);
  }
}

TEST(Server, ServesFiftyClientsAtOnce) {
  live x;
  const auto t = x.token();
  std::atomic<int> fine = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 50; ++i)
    clients.emplace_back([&] {
      raw_client c{x.http->port()};
      for (int k = 0; k < 20; ++k)
        fine += c.ask("GET", "/api/v1/experiments/7", t).status == 200;
    });
  for (auto& one : clients)
    one.join();
  EXPECT_EQ(fine, 50 * 20);
}

TEST(Server, StreamsFactsFromExactlyAfterTheGivenOne) {
  live x;
  raw_client c{x.http->port()};
  c.send("GET /troupe/v1/events?after=1&experiment=7 HTTP/1.1\r\nAuthorization: Bearer " + x.token() +
         "\r\n\r\n");
  auto seen = c.read_until([](const std::string& s) { return s.find("\"type\":\"run_started\"") != s.npos; });
  EXPECT_EQ(seen.find("id: 1\n"), std::string::npos) << seen;
  EXPECT_NE(seen.find("text/event-stream"), std::string::npos);
  EXPECT_NE(seen.find("\"fromSteps\":100"), std::string::npos) << seen;
  x.reader->add("trial/13", trial_paused{t0}); // the fact belongs to another experiment
  x.reader->add("trial/12", trial_ended{t0, trial_state::completed, "done"});
  x.http->committed({});
  seen = c.read_until([](const std::string& s) { return s.find("event: trial_ended\n") != s.npos; });
  EXPECT_EQ(seen.find("trial_paused"), std::string::npos) << seen;
  EXPECT_NE(seen.find("id: 4\n"), std::string::npos);
}

TEST(Server, StreamsFactsThatSayWhoDidItAndEndsWhereItIsAsked) {
  live x;
  group_changed made;
  made.at = t0;
  made.by = "ann";
  made.id = {4};
  made.name = "vision";
  auto later = made;
  later.at = t0 + 100s;
  later.by = "bob";
  x.reader->add("cluster", made);
  x.reader->add("trial/12", trial_paused{t0});
  x.reader->add("cluster", later);
  const auto newest = x.reader->sequence();
  const auto ask = [&](const std::string& query) {
    return raw_client{x.http->port()}.ask("GET", "/troupe/v1/events?after=0" + query, x.token("admin"));
  };
  const auto bound = "&until=" + std::to_string(newest);
  auto all = ask(bound);
  EXPECT_NE(all.body.find("event: run_started\n"), std::string::npos) << all.body;
  EXPECT_NE(all.body.find("\"by\":\"bob\""), std::string::npos) << all.body;
  auto audit = ask("&kind=audit" + bound);
  EXPECT_EQ(audit.body.find("run_started"), std::string::npos) << audit.body;
  EXPECT_EQ(audit.body.find("trial_paused"), std::string::npos) << audit.body;
  EXPECT_NE(audit.body.find("\"by\":\"ann\""), std::string::npos) << audit.body;
  EXPECT_NE(audit.body.find("\"by\":\"bob\""), std::string::npos) << audit.body;
  EXPECT_EQ(ask("&kind=audit&until=" + std::to_string(newest - 1)).body.find("bob"), std::string::npos);
  EXPECT_EQ(ask("&kind=audit&since=" + to_rfc3339(t0 + 50s) + bound).body.find("ann"), std::string::npos);
  EXPECT_EQ(ask("&kind=other").status, 400);
  EXPECT_EQ(ask("&since=yesterday").status, 400);
  EXPECT_EQ(ask("&until=-1").status, 400);
}

TEST(Server, FollowsALogToTheTrialsEnd) {
  live x;
  raw_client c{x.http->port()};
  c.send("GET /api/v1/trials/12/logs?follow=true HTTP/1.1\r\nAuthorization: Bearer " + x.token() +
         "\r\n\r\n");
  c.read_until([](const std::string& s) { return s.find("line 3") != s.npos; });
  {
    std::lock_guard lock{x.reader->mutex};
    x.reader->log_lines.push_back({4, t0, {{12}, {2}}, "a1", 0, "stdout", "", "line 4"});
  }
  x.http->committed({});
  c.read_until([](const std::string& s) { return s.find("line 4") != s.npos; });
  {
    std::lock_guard lock{x.reader->mutex};
    x.reader->trial_rows[12].state = trial_state::completed;
    x.reader->trial_rows[12].ended = t0 + 50s;
  }
  x.http->committed({});
  auto got = c.answer();
  EXPECT_EQ(got.status, 200);
  EXPECT_NE(got.head.find("Transfer-Encoding: chunked"), std::string::npos);
  EXPECT_EQ(std::count(got.body.begin(), got.body.end(), '\n'), 4);
}

TEST(Server, TellsOfPeopleOnlyWhatTheOperationsShow) {
  live x;
  const user_id admin{1}, determined{2};
  const auto say = [&](auto fact, const char* by) {
    fact.at = t0;
    fact.by = by;
    x.reader->add("cluster", fact);
  };
  const auto group = [](std::vector<user_id> members) {
    group_changed g;
    g.members = std::move(members);
    return g;
  };
  const auto token = [](user_id of) {
    token_changed t;
    t.user = of;
    return t;
  };
  const auto setting = [](user_id of) {
    user_setting_changed s;
    s.user = of;
    return s;
  };
  const auto hook = [](std::uint64_t workspace) {
    webhook_changed w;
    w.workspace = {workspace};
    return w;
  };
  cluster_message_changed now, later;
  now.begins = t0;
  later.begins = t0 + 10s;
  workspace_changed own;
  own.id = {2};
  own.owner = "determined";
  workspace_changed other;
  other.id = {3};
  other.owner = "ada";
  x.reader->more_workspaces = {own, other};
  say(own, "a");
  say(other, "b");
  say(group({admin}), "c");
  say(group({admin, determined}), "d");
  say(token(admin), "e");
  say(token(determined), "f");
  say(setting(admin), "g");
  say(setting(determined), "h");
  say(hook(0), "i");
  say(hook(2), "j");
  say(hook(3), "k");
  say(now, "l");
  say(later, "m");
  const auto told = [&](const char* to) {
    const auto until = "&until=" + std::to_string(x.reader->sequence());
    const auto got =
      raw_client{x.http->port()}.ask("GET", "/troupe/v1/events?after=0&kind=audit" + until, x.token(to));
    std::string by;
    for (auto at = got.body.find("\"by\":\""); at != std::string::npos;
         at = got.body.find("\"by\":\"", at + 1))
      by += got.body[at + 6];
    return by;
  };
  EXPECT_EQ(told("admin"), "abcdefgijklm");
  EXPECT_EQ(told("determined"), "abdfhijl");
}

TEST(Server, EndsAStreamWithTheLoginThatItWasAskedBy) {
  server_options how;
  how.rights_time = std::chrono::milliseconds{20};
  live x{how};
  const auto follow = [&](raw_client& by, const std::string& token) {
    by.send("GET /troupe/v1/events HTTP/1.1\r\nAuthorization: Bearer " + token + "\r\n\r\n");
    by.read_until([](const std::string& s) { return s.find(": troupe") != s.npos; });
  };
  const auto ends = [](raw_client& by) {
    bool closed = false;
    const auto got = by.read_until([](const std::string&) { return false; }, &closed);
    EXPECT_TRUE(closed);
    EXPECT_FALSE(got.ends_with("0\r\n\r\n")) << "it must not look whole";
  };
  const auto kept = x.token("admin"), left = x.token(), over = x.token();
  raw_client admin{x.http->port()}, logged_out{x.http->port()}, deactivated{x.http->port()};
  follow(admin, kept), follow(logged_out, left), follow(deactivated, over);
  const auto session = x.users->session_of(left, x.now);
  token_changed revoked;
  revoked.at = t0;
  revoked.id = session->id;
  revoked.until = session->until;
  revoked.revoked = true;
  x.users->take(revoked);
  ends(logged_out);
  user_changed gone;
  gone.at = t0;
  gone.id = {session->user_id};
  gone.name = "determined";
  gone.active = false;
  x.users->take(gone);
  ends(deactivated);
  x.reader->add("trial/12", trial_paused{t0});
  x.http->committed({});
  admin.read_until([](const std::string& s) { return s.find("trial_paused") != s.npos; });
}

TEST(Server, HoldsALongPollUntilTheClusterAnswers) {
  live x;
  x.cluster.hold = {"allocation.preemption"};
  raw_client c{x.http->port()};
  c.send("GET /api/v1/allocations/12.2/signals/preemption?timeout_seconds=60 "
         "HTTP/1.1\r\nGrpc-Metadata-x-allocation-token: Bearer " +
         x.users->allocation_token({{12}, {2}}) + "\r\n\r\n");
  for (;;) {
    std::lock_guard lock{x.cluster.mutex};
    if (!x.cluster.held.empty())
      break;
  }
  EXPECT_EQ(raw_client{x.http->port()}.ask("GET", "/health").status, 200);
  x.cluster.held.front()(value{{"preempt", true}});
  auto got = c.answer();
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(got.json(), (value{{"preempt", true}}));
  EXPECT_EQ(x.cluster.all().front().fields,
            (value{{"allocation", "12.2"}, {"experiment", 7}, {"timeout_ms", 60000}}));
}

TEST(Server, AnswersWhenTheClusterDropsARequest) {
  live x;
  x.cluster.hold = {"experiment.pause"};
  raw_client c{x.http->port()};
  c.send("POST /api/v1/experiments/7/pause HTTP/1.1\r\nContent-Length: 0\r\nAuthorization: Bearer " +
         x.token() + "\r\n\r\n");
  for (;;) {
    std::lock_guard lock{x.cluster.mutex};
    if (!x.cluster.held.empty())
      break;
  }
  x.cluster.held.clear();
  EXPECT_EQ(c.answer().status, 500);
}

TEST(Server, DropsAReaderThatTakesNothing) {
  server_options how;
  how.write_time = std::chrono::milliseconds{300};
  live x{how};
  {
    std::lock_guard lock{x.reader->mutex};
    x.reader->blobs["blob1"] = std::string(6 << 20, 'b');
  }
  raw_client c{x.http->port()};
  c.send("GET /api/v1/experiments/7/model_def HTTP/1.1\r\nAuthorization: Bearer " + x.token() + "\r\n\r\n");
  c.read_until([](const std::string& s) { return !s.empty(); }); // the answer has begun
  x.http->stop(std::chrono::hours{1}); // the server waits until it gives the connection up
  bool closed = false;
  const auto got = c.read_until([](const std::string&) { return false; }, &closed);
  EXPECT_TRUE(closed);
  EXPECT_LT(got.size(), std::size_t(6 << 20));
}

TEST(Server, AnswersAfterItHasGoneHarmNobody) {
  answer late;
  std::optional<raw_client> c;
  {
    live x;
    x.cluster.hold = {"experiment.pause"};
    c.emplace(x.http->port());
    c->send("POST /api/v1/experiments/7/pause HTTP/1.1\r\nContent-Length: 0\r\nAuthorization: Bearer " +
            x.token() + "\r\n\r\n");
    while (!late) {
      std::lock_guard lock{x.cluster.mutex};
      if (!x.cluster.held.empty())
        late = std::move(x.cluster.held.front());
    }
    x.http->stop(std::chrono::milliseconds{10});
  }
  late(value::object());
  bool closed = false;
  EXPECT_EQ(c->read_until([](const std::string&) { return false; }, &closed), "");
  EXPECT_TRUE(closed);
}

TEST(Server, StopsWithStreamsOpen) {
  live x;
  raw_client events{x.http->port()}, idle{x.http->port()};
  events.send("GET /troupe/v1/events HTTP/1.1\r\nAuthorization: Bearer " + x.token() + "\r\n\r\n");
  events.read_until([](const std::string& s) { return s.find(": troupe") != s.npos; });
  EXPECT_EQ(idle.ask("GET", "/health").status, 200);
  // The server waits for open requests, and a stream does not count as one.
  x.http->stop(std::chrono::hours{1});
  bool closed = false;
  events.read_until([](const std::string&) { return false; }, &closed);
  EXPECT_TRUE(closed);
}

} // namespace
} // namespace troupe::api
