#include "console_for_test.hpp"
#include "fake_server.hpp"
#include "runtime/cli/follow.hpp"
#include "runtime/client/event_stream.hpp"
#include "workers/context_files.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::client;
using testing::HasSubstr;

namespace {

server_address at(const fake_server& s) { return {s.url(), "a test", {}, 0}; }

std::string fault_body(int code, const char* reason, const char* text) {
  return to_json({{"error", {{"code", code}, {"reason", reason}, {"error", text}}}, {"message", text}});
}

using received = fake_server::received;
using connection = fake_server::connection;

bool is_login(const received& r) { return r.target == "/api/v1/auth/login"; }

} // namespace

TEST(Client, TurnsAnswersIntoCodesWithTheServersText) {
  struct {
    int status;
    std::string body;
    errc code;
    const char* what;
  } cases[] = {
    {400, fault_body(3, "InvalidArgument", "bad"), errc::invalid, "bad"},
    {400, fault_body(9, "FailedPrecondition", "in state COMPLETED"), errc::conflict, "in state COMPLETED"},
    {403, fault_body(7, "PermissionDenied", "not yours"), errc::denied, "not yours"},
    {404, fault_body(5, "NotFound", "experiment '7' not found"), errc::not_found, "experiment '7' not found"},
    {404, R"({"message": "api not found"})", errc::not_found, "api not found"},
    {409, fault_body(10, "Aborted", "changed"), errc::conflict, "changed"},
    {413, fault_body(8, "ResourceExhausted", "too large"), errc::invalid, "too large"},
    {429, fault_body(8, "ResourceExhausted", "later"), errc::busy, "later"},
    {500, fault_body(13, "Internal", "oops"), errc::internal, "oops"},
    {501, fault_body(12, "Unimplemented", "not built"), errc::unsupported, "not built"},
    {503, fault_body(14, "Unavailable", "disk full"), errc::busy, "disk full"},
    {504, fault_body(4, "DeadlineExceeded", "slow"), errc::timeout, "slow"},
    {502, "<html>Bad gateway</html>", errc::unreachable,
     "does not answer like a Troupe server (HTTP 502, '<html>Bad"},
    {400, "[]", errc::unreachable, "does not answer like a Troupe server"},
    {200, "hello", errc::unreachable, "does not answer like a Troupe server"},
  };
  for (const auto& c : cases) {
    fake_server fake([&](const received&, connection& to) { to.answer(c.status, c.body); });
    auto got = server(at(fake)).get("/x");
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, c.code) << c.status << c.body;
    EXPECT_THAT(got.error().what, HasSubstr(c.what));
  }
}

TEST(Client, LogsInOnceWhenAskedAndGivesUpWhenRefused) {
  fake_server fake([](const received& r, connection& to) {
    if (is_login(r))
      return to.answer(200, R"({"token": "T1", "user": {}})");
    bool known = r.head.find("Authorization: Bearer T1") != std::string::npos;
    known ? to.answer(200, "{}", "Troupe-Sequence: 42\r\n")
          : to.answer(401, fault_body(16, "Unauthenticated", "no token"));
  });
  server one(at(fake));
  auto got = one.get("/a", {{"q", "x y&z"}});
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->sequence, 42);
  EXPECT_TRUE(one.post("/b"));
  std::vector<std::string> targets;
  for (const auto& r : fake.requests())
    targets.push_back(r.method + " " + r.target);
  EXPECT_EQ(targets, (std::vector<std::string>{"GET /a?q=x%20y%26z", "POST /api/v1/auth/login",
                                               "GET /a?q=x%20y%26z", "POST /b"}));
  EXPECT_EQ(value::parse(fake.requests()[1].body), value({{"username", "determined"}, {"password", ""}}));

  fake_server strict([](const received&, connection& to) {
    to.answer(401, fault_body(16, "Unauthenticated", "invalid credentials"));
  });
  auto refused = server(at(strict)).get("/a");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::unauthorized);
  EXPECT_THAT(refused.error().what, HasSubstr("not logged in as 'determined': invalid credentials"));
}

TEST(Client, SurvivesSilenceGarbageAndClosedDoors) {
  int port = 0;
  {
    fake_server gone([](const received&, connection&) {});
    port = gone.port();
  }
  auto none = server({"http://127.0.0.1:" + std::to_string(port), "", {}, 0}).get("/x");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, errc::unreachable);

  fake_server silent([](const received&, connection& to) { to.wait_for_end(); });
  server_options hasty;
  hasty.timeout = std::chrono::milliseconds(150);
  auto late = server(at(silent), hasty).get("/x");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, errc::timeout);

  for (const char* bytes : {"\x01\x02garbage\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
                            "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort"}) {
    fake_server noise([&](const received&, connection& to) { to.send(bytes); });
    auto got = server(at(noise)).get("/close");
    ASSERT_FALSE(got) << bytes;
    EXPECT_EQ(got.error().code, errc::unreachable) << got.error().what;
  }
}

TEST(Client, ReadsListsPageByPage) {
  fake_server fake([](const received& r, connection& to) {
    bool first = r.target.find("offset=0&") != std::string::npos;
    auto rows = value::array();
    for (int i = first ? 0 : 2; i < (first ? 2 : 3); ++i)
      rows.push_back({{"id", i}});
    to.answer(200, to_json({{"things", rows}, {"pagination", {{"total", 3}}}}));
  });
  auto got = server(at(fake)).list("/things", "things");
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->size(), 3);
}

TEST(Client, SendsAnExperimentAsOneLineAndTheTar) {
  fake_server fake([](const received&, connection& to) { to.answer(200, R"({"id": 9})"); });
  std::string tar(200'000, '\x01');
  auto id = server(at(fake)).create({"name: x", "x.yaml", tar, false, "k", ""});
  ASSERT_TRUE(id) << id.error().what;
  EXPECT_EQ(id->value, 9);
  auto r = fake.requests().at(0);
  EXPECT_THAT(r.head, HasSubstr("Content-Type: application/x-troupe-experiment"));
  auto newline = r.body.find('\n');
  auto head = value::parse(r.body.substr(0, newline));
  EXPECT_EQ(head["config"], "name: x");
  EXPECT_EQ(head["activate"], false);
  EXPECT_EQ(head["key"], "k");
  EXPECT_EQ(r.body.substr(newline + 1), tar);
}

TEST(Client, GoesOnWithEventsWhereTheStreamBroke) {
  std::atomic<int> connections{0};
  fake_server fake([&](const received& r, connection& to) {
    if (is_login(r))
      return to.answer(200, R"({"token": "T"})");
    switch (++connections) {
    case 1: // the server sends two facts and crashes
      to.begin_stream("text/event-stream");
      return to.send("id: 5\ndata: {\"n\": 5}\n\nid: 6\ndata: {\"n\": 6}\n\nid: 7\nda");
    case 2:
      return to.answer(503, fault_body(14, "Unavailable", "starting"));
    case 3:
      return to.send("garbage\n\n");
    default:
      to.begin_stream("text/event-stream");
      to.send(": alive\n\nid: 6\ndata: {\"n\": 6}\n\nid: 7\ndata: {\"n\": 7}\n\n");
      to.wait_for_end();
    }
  });
  server one(at(fake));
  event_stream events(one, experiment_id{3}, 4);
  std::vector<int> numbers;
  std::string links;
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (numbers.size() < 3 && std::chrono::steady_clock::now() < until) {
    auto step = events.poll(std::chrono::milliseconds(50));
    ASSERT_TRUE(step) << step.error().what;
    for (const auto& e : step->events)
      numbers.push_back(e["n"]);
    links += step->change == event_stream::step::link::lost   ? "lost "
             : step->change == event_stream::step::link::back ? "back "
                                                              : "";
  }
  EXPECT_EQ(numbers, (std::vector<int>{5, 6, 7})) << "each once, in order";
  EXPECT_EQ(links, "lost back ");
  std::vector<std::string> targets;
  for (const auto& r : fake.requests())
    if (!is_login(r))
      targets.push_back(r.target);
  EXPECT_EQ(targets.front(), "/troupe/v1/events?after=4&experiment=3");
  EXPECT_EQ(targets.back(), "/troupe/v1/events?after=6&experiment=3");
}

TEST(Client, StopsAskingForEventsThatItMayNotSee) {
  fake_server fake([&](const received& r, connection& to) {
    is_login(r) ? to.answer(200, R"({"token": "T"})")
                : to.answer(404, fault_body(5, "NotFound", "experiment '3' not found"));
  });
  server one(at(fake));
  event_stream events(one, experiment_id{3}, 0);
  result<event_stream::step> step = event_stream::step{};
  for (int i = 0; i < 100 && step; ++i)
    step = events.poll(std::chrono::milliseconds(50));
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().code, errc::not_found);
}

namespace {

const char* good_config = "name: digits\n"
                          "entrypoint: python3 train.py\n"
                          "searcher: {name: single, metric: loss, max_length: {batches: 100}}\n";

/// Answers as a cluster with one experiment, which ends while it is followed.
void small_cluster(const received& r, connection& to) {
  auto is = [&](const char* path) { return r.target.substr(0, r.target.find('?')) == path; };
  if (is_login(r))
    return to.answer(200, R"({"token": "T"})");
  if (is("/api/v1/experiments/7"))
    return to.answer(
      200,
      R"({"experiment": {"id": 7, "name": "digits", "state": "STATE_ACTIVE", "numTrials": 1, "bestTrialId": 1,
      "config": {"searcher": {"name": "random", "metric": "accuracy", "smaller_is_better": false, "max_trials": 1}}}})",
      "Troupe-Sequence: 10\r\n");
  if (is("/troupe/v1/experiments/7/trials"))
    return to.answer(200, R"({"trials": [{"id": 1, "state": "STATE_RUNNING", "hparams": {}}]})",
                     "Troupe-Sequence: 10\r\n");
  if (is("/troupe/v1/experiments/7/outcome"))
    return to.answer(
      200,
      R"({"id": 7, "state": "STATE_ERROR", "why": "trial 1 failed", "numTrials": 1, "bestTrial": null})");
  if (is("/troupe/v1/experiments/7/explain"))
    return to.answer(200, R"({"experiment": 7, "pool": "default", "state": "ERROR", "waiting": [],
      "trials": {"running": 0, "waiting": 0, "paused": 0}, "reason": {"code": "ended", "text": "failed: every trial failed"}})");
  if (is("/troupe/v1/trials/1/explain"))
    return to.answer(200, R"({"trial": 1, "experiment": 7, "user": "ann", "state": "ENDED", "log": [1, 2],
      "reason": {"code": "ended", "text": "failed after 1 restart: exit code 1"}})");
  if (is("/troupe/v1/queue"))
    return to.answer(200, R"({"waiting": []})");
  if (is("/troupe/v1/events")) {
    to.begin_stream("text/event-stream");
    to.send("id: 11\ndata: {\"type\": \"trial_ended\", \"entity\": \"trial/1\", \"state\": \"ERROR\", "
            "\"why\": \"exit code 1\"}\n\n"
            "id: 12\ndata: {\"type\": \"experiment_changed\", \"entity\": \"experiment/7\", \"state\": "
            "\"ERROR\", \"why\": \"\"}\n\n");
    return to.wait_for_end();
  }
  if (is("/troupe/v1/experiments"))
    return to.answer(200, R"({"id": 7})");
  if (is("/api/v1/trials/1/logs"))
    return to.answer(
      200,
      "{\"result\": {\"id\": \"1\", \"trialId\": 1, \"log\": \"hello\", \"message\": \"[t] hello\\n\"}}\n"
      "{\"result\": {\"id\": \"2\", \"trialId\": 1, \"log\": \"world\\n\", \"message\": \"[t] "
      "world\\n\"}}\n");
  if (is("/api/v1/experiments/7/pause"))
    return to.answer(400, fault_body(9, "FailedPrecondition", "experiment in incompatible state COMPLETED"));
  if (is("/api/v1/experiments"))
    return to.answer(
      200,
      R"({"experiments": [{"id": 7, "name": "digits", "state": "STATE_ACTIVE"}], "pagination": {"total": 1}})");
  if (is("/troupe/v1/status"))
    return to.answer(
      200, R"({"slots": {"total": 4, "used": 2}, "agents": 1, "experimentsActive": 1, "version": "0.1.0"})");
  to.answer(404, fault_body(5, "NotFound", "no such path"));
}

cli::outcome_of_call call(const fake_server& fake, cli::words given) {
  return cli::call(given, {}, {{"TROUPE_MASTER", fake.url()}});
}

} // namespace

TEST(CommandLine, SpeaksToAClusterAndEndsWithItsOutcome) {
  fake_server fake(small_cluster);
  auto config =
    (std::filesystem::temp_directory_path() / ("troupe-cli-test-" + std::to_string(::getpid()) + ".yaml"))
      .string();
  std::ofstream(config) << good_config;
  auto created = call(fake, {"experiment", "create", config});
  EXPECT_EQ(created.out, "experiment 7\n") << created.err;
  EXPECT_EQ(created.code, 0);
  EXPECT_EQ(value::parse(call(fake, {"experiment", "create", config, "-o", "json"}).out), value({{"id", 7}}));
  auto followed = call(fake, {"experiment", "create", config, "--follow"});
  EXPECT_EQ(followed.code, 1) << followed.err;
  EXPECT_EQ(followed.out, "experiment 7\n"
                          "experiment 7  digits: random, 1 trial, maximizing accuracy\n"
                          "trial 1  ERROR: exit code 1   (troupe trial logs 1)\n"
                          "experiment 7 ERROR: 1 trial; trial 1 failed\n"
                          "no trial reported accuracy   (troupe experiment logs 7)\n");
  std::filesystem::remove(config);
  auto waited = call(fake, {"experiment", "wait", "7"});
  EXPECT_EQ(waited.code, 1);
  EXPECT_EQ(waited.out, "experiment 7 ERROR\n");
  auto described = call(fake, {"e", "des", "last", "-o", "json"});
  EXPECT_EQ(value::parse(described.out)["bestTrialId"], 1) << described.err;
  EXPECT_EQ(value::parse(described.out)["why"], "trial 1 failed");
  EXPECT_THAT(call(fake, {"e", "describe", "7"}).out, HasSubstr("trial 1 failed"));
  EXPECT_EQ(call(fake, {"explain", "experiment", "7"}).out,
            "experiment 7 is ERROR in pool default: failed: every trial failed\n");
  const auto explained = call(fake, {"explain", "trial", "1"});
  EXPECT_EQ(explained.out, "trial 1 of experiment 7 (ann) is ENDED: failed after 1 restart: exit code 1\n"
                           "  its last lines:\n    world\n    hello\n")
    << "the fake gives its lines in one order: " << explained.err;
  EXPECT_EQ(call(fake, {"e", "ls", "-q"}).out, "7\n");
  EXPECT_EQ(value::parse(call(fake, {"status", "-o", "json"}).out)["slots"]["total"], 4);
  EXPECT_EQ(call(fake, {"trial", "logs", "1"}).out, "hello\nworld\n");
  EXPECT_EQ(call(fake, {"trial", "logs", "1", "--timestamps"}).out, "[t] hello\n[t] world\n");
  EXPECT_EQ(value::parse(call(fake, {"trial", "logs", "1", "-o", "json"}).out).size(), 2);
  auto conflict = call(fake, {"experiment", "pause", "7"});
  EXPECT_EQ(conflict.code, 8);
  EXPECT_EQ(conflict.err, "error: experiment in incompatible state COMPLETED\n");
  auto missing = call(fake, {"trial", "describe", "99"});
  EXPECT_EQ(missing.code, 5);
  EXPECT_EQ(call(fake, {"trial", "describe", "x"}).code, 2);
}

/// Returns how many requests changed something. Before them the client reads the defaults of the cluster.
std::ptrdiff_t sent(fake_server& fake) {
  const auto all = fake.requests();
  return std::count_if(all.begin(), all.end(), [](const auto& x) { return x.method != "GET"; });
}

TEST(CommandLine, ChecksTheContextBeforeAnythingIsSent) {
  fake_server fake(small_cluster);
  auto pattern = (std::filesystem::temp_directory_path() / "troupe-cli-XXXXXX").string();
  std::filesystem::path dir = ::mkdtemp(pattern.data());
  std::ofstream(dir / "c.yaml") << good_config;
  std::filesystem::create_symlink("/etc", dir / "out");
  auto got = call(fake, {"experiment", "create", (dir / "c.yaml").string(), dir.string()});
  EXPECT_EQ(got.code, 2);
  EXPECT_EQ(
    got.err,
    "error: " + (dir / "out").string() +
      ": a link that leaves the context (-> /etc)\nhint: leave files out by naming them in .detignore\n");
  EXPECT_EQ(sent(fake), 0);
  std::filesystem::remove_all(dir);
}

TEST(CommandLine, LaysOverridesOverTheConfiguration) {
  fake_server fake(small_cluster);
  auto send = [&](cli::words more) {
    cli::words given{"experiment", "create", "-"};
    given.insert(given.end(), more.begin(), more.end());
    return cli::call(given, {}, {{"TROUPE_MASTER", fake.url()}}, good_config);
  };
  EXPECT_EQ(send({}).code, 0);
  EXPECT_EQ(value::parse(fake.requests().back().body)["config"], good_config) << "as it was written";
  auto got = send({"--config", "searcher.metric=accuracy", "--config", "hyperparameters.lr=0.5", "--config",
                   "labels=[a, b]"});
  EXPECT_EQ(got.code, 0) << got.err;
  auto config = value::parse(value::parse(fake.requests().back().body)["config"].get<std::string>());
  EXPECT_EQ(config["searcher"]["metric"], "accuracy");
  EXPECT_EQ(config["searcher"]["name"], "single");
  EXPECT_EQ(config["hyperparameters"]["lr"], 0.5);
  EXPECT_EQ(config["labels"], value({"a", "b"}));
  const auto before = sent(fake);
  EXPECT_EQ(send({"--config", "nonsense"}).code, 2);
  EXPECT_EQ(send({"--config", "searcher.metrik=x"}).code, 2);
  EXPECT_EQ(sent(fake), before) << "nothing was sent";
}

TEST(CommandLine, ShowsEveryFaultOfAConfigurationWithItsPlace) {
  fake_server fake(small_cluster);
  auto got =
    cli::call({"experiment", "create", "-"}, {}, {{"TROUPE_MASTER", fake.url()}},
              "name: digits\nentrypont: x\nsearcher: {name: single, metric: loss, max_length: -1}\n");
  EXPECT_EQ(got.code, 2);
  EXPECT_THAT(got.err, HasSubstr("error: <stdin>:2:1: "));
  EXPECT_THAT(got.err, HasSubstr("<stdin>:3:"));
  EXPECT_THAT(got.err, HasSubstr("^"));
  EXPECT_EQ(sent(fake), 0);
}

TEST(CommandLine, DownloadsACheckpoint) {
  auto pattern = (std::filesystem::temp_directory_path() / "troupe-cli-XXXXXX").string();
  std::filesystem::path dir = ::mkdtemp(pattern.data());
  std::filesystem::create_directories(dir / "src/sub");
  std::ofstream(dir / "src/sub/model.pt") << std::string(300'000, 'm');
  auto tar = workers::pack_context(dir / "src")->tar;
  fake_server fake([&](const received& r, connection& to) {
    r.target == "/troupe/v1/checkpoints/ab-12/files" ? to.answer(200, tar)
                                                     : to.answer(404, fault_body(5, "NotFound", "gone"));
  });
  auto got = call(fake, {"checkpoint", "download", "ab-12", "--output-dir", (dir / "out").string()});
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(got.out, (dir / "out").string() + "\n");
  EXPECT_EQ(std::filesystem::file_size(dir / "out/sub/model.pt"), 300'000);
  EXPECT_EQ(call(fake, {"checkpoint", "download", "cd", "--output-dir", (dir / "other").string()}).code, 5);
  EXPECT_EQ(call(fake, {"checkpoint", "download", "../x"}).code, 2);
  std::filesystem::remove_all(dir);
}
