#include "host.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <mutex>

using namespace host;

namespace {

TEST(EmbeddedNode, GoesUpAndDownTwentyTimesAndLeavesNothing) {
  folder at;
  auto once = [&] {
    auto node = troupe::node::open(options(at));
    ASSERT_OK(node);
    ASSERT_OK(node->ready(60s));
    ASSERT_OK(node->stop());
    ASSERT_OK(node->stop()); // a repeat
  };
  const auto threads_at_start = threads(); // one, but for a sanitizer's own
  once();                                  // what libraries set up once and keep
  const auto threads_before = threads(), files_before = descriptors();
  [[maybe_unused]] double mb = 0;
  for (int i = 1; i < 20; ++i) {
    once();
    ASSERT_TRUE(come_back_to(threads, threads_before)) << "round " << i << ": " << names_of_threads();
    ASSERT_TRUE(come_back_to(descriptors, files_before)) << "round " << i;
    if (i == 4)
      mb = resident_mb();
  }
  EXPECT_EQ(threads(), threads_at_start) << names_of_threads();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(resident_mb() - mb, 8) << "fifteen rounds grew the process from " << mb << " MB";
#endif
}

TEST(EmbeddedNode, TrainsTellsItsMetricsAndKnowsTheBest) {
  folder at;
  auto node = troupe::node::open(options(at));
  ASSERT_OK(node);
  ASSERT_OK(node->ready(60s));
  auto run =
    node->client().submit({.entrypoint = "python3 train.py", .context = job(at), .hparams = {{"x", 3.0}}});
  ASSERT_OK(run);
  std::mutex mutex;
  std::vector<troupe::metric> live, replayed;
  run->on_metric([&](const troupe::metric& m) {
    std::lock_guard lock(mutex);
    live.push_back(m);
  });
  EXPECT_EQ(run->wait(), troupe::outcome::completed) << run->why();
  ASSERT_EQ(live.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(live[i].step, i + 1);
    EXPECT_EQ(live[i].name, "loss");
    EXPECT_DOUBLE_EQ(live[i].value, 3.0 / (i + 1));
    EXPECT_TRUE(live[i].validation);
  }
  run->on_metric([&](const troupe::metric& m) {
    std::lock_guard lock(mutex);
    replayed.push_back(m);
  });
  EXPECT_EQ(run->wait(), troupe::outcome::completed);
  EXPECT_EQ(replayed.size(), 3u) << "who comes late hears it all";
  auto best = run->best();
  ASSERT_OK(best);
  EXPECT_DOUBLE_EQ(best->metric, 1.0);
  EXPECT_EQ(best->hparams, R"({"x":3.0})");
  std::string weights;
  std::ifstream(fs::path(best->checkpoint) / "weights") >> weights;
  EXPECT_EQ(weights, "3.0");
  // The next life of the node knows it still.
  const auto id = run->id();
  ASSERT_OK(node->stop());
  auto again = troupe::node::open(options(at));
  ASSERT_OK(again);
  auto found = again->client().find(id);
  ASSERT_OK(found);
  EXPECT_EQ(found->wait(), troupe::outcome::completed);
  EXPECT_EQ(run->cancel().error().code, troupe::errc::unreachable);
}

TEST(EmbeddedNode, ARunCanBeCanceledAndCanFail) {
  folder at;
  auto node = troupe::node::open(options(at));
  ASSERT_OK(node);
  auto endless = node->client().submit({.entrypoint = "sleep 1000"});
  auto broken = node->client().submit({.entrypoint = "exit 3", .max_restarts = 0});
  ASSERT_OK(endless);
  ASSERT_OK(broken);
  EXPECT_EQ(broken->wait(), troupe::outcome::failed);
  EXPECT_NE(broken->why(), "");
  EXPECT_FALSE(endless->wait(10ms)) << "it is not over";
  ASSERT_OK(endless->cancel());
  ASSERT_EQ(endless->wait(60s), troupe::outcome::canceled);
  ASSERT_OK(endless->cancel()); // a repeat
}

// 5 is the default of the configuration: once, it was taken for "not given".
TEST(EmbeddedNode, WhatIsGivenGoesBeforeTheConfigurationWhateverItsDefaultIs) {
  folder at;
  auto node = troupe::node::open(options(at));
  ASSERT_OK(node);
  const auto mark = at / "mark";
  const auto second_time = "test -e " + mark + " || { touch " + mark + "; exit 1; }";
  auto kept = node->client().submit({.entrypoint = "exit 3", .config = "max_restarts: 0\n"});
  auto again =
    node->client().submit({.entrypoint = second_time, .max_restarts = 5, .config = "max_restarts: 0\n"});
  ASSERT_OK(kept);
  ASSERT_OK(again);
  EXPECT_EQ(kept->wait(), troupe::outcome::failed);
  EXPECT_EQ(again->wait(), troupe::outcome::completed);
}

TEST(EmbeddedNode, ACancelThatMeetsTheEndIsNoError) {
  folder at;
  auto node = troupe::node::open(options(at));
  ASSERT_OK(node);
  for (int n = 0; n < 10; ++n) {
    auto endless = node->client().submit({.entrypoint = "sleep 1000"});
    ASSERT_OK(endless);
    std::atomic<bool> over{false};
    std::vector<std::thread> others;
    for (int i = 0; i < 3; ++i)
      others.emplace_back([&] {
        while (!over) {
          auto canceled = endless->cancel();
          EXPECT_TRUE(canceled) << text(canceled.error());
        }
      });
    EXPECT_EQ(endless->wait(60s), troupe::outcome::canceled);
    over = true;
    for (auto& one : others)
      one.join();
  }
}

TEST(EmbeddedNode, TwoLiveInOneProcess) {
  folder at;
  auto a = troupe::node::open(options(at, "a")), b = troupe::node::open(options(at, "b"));
  ASSERT_OK(a);
  ASSERT_OK(b);
  auto taken = troupe::node::open(options(at, "a"));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, troupe::errc::conflict);
  EXPECT_NE(taken.error().message.find("is in use"), std::string::npos) << text(taken.error());
  EXPECT_NE(taken.error().hint, "");
  auto in_a = a->client().submit({.entrypoint = "true"});
  ASSERT_OK(in_a);
  EXPECT_EQ(in_a->wait(), troupe::outcome::completed);
  EXPECT_FALSE(b->client().find(in_a->id()));
  ASSERT_OK(a->stop());
  auto in_b = b->client().submit({.entrypoint = "true"});
  ASSERT_OK(in_b);
  EXPECT_EQ(in_b->wait(), troupe::outcome::completed) << "the end of one leaves the other alone";
}

TEST(EmbeddedNode, LeavesTheProcessAsItIs) {
  struct sigaction before[NSIG] = {}, after{};
  for (int i = 1; i < NSIG; ++i)
    ::sigaction(i, nullptr, &before[i]);
  sigset_t mask_before, mask_after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask_before);
  testing::internal::CaptureStdout();
  {
    folder at;
    auto o = options(at);
    std::atomic<int> lines{0};
    o.log = [&](troupe::log_level, std::string_view) { ++lines; };
    auto node = troupe::node::open(o);
    ASSERT_OK(node);
    ASSERT_OK(node->ready(60s));
    auto run = node->client().submit({.entrypoint = "echo from the task"});
    ASSERT_OK(run);
    EXPECT_EQ(run->wait(), troupe::outcome::completed);
    EXPECT_EQ(node->url(), "");
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  for (int i = 1; i < NSIG; ++i) {
    ::sigaction(i, nullptr, &after);
    EXPECT_EQ(before[i].sa_handler, after.sa_handler) << "signal " << i;
  }
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask_after);
  for (int i = 1; i < NSIG; ++i)
    EXPECT_EQ(sigismember(&mask_before, i), sigismember(&mask_after, i)) << "signal " << i;
}

TEST(EmbeddedNode, HostsClockLogAndMetricsAreUsedAndMayThrow) {
  folder at;
  auto o = options(at);
  std::atomic<int> asked{0}, measured{0}, complaints{0};
  o.store = troupe::store_kind::memory;
  o.clock = [&] {
    ++asked;
    return std::chrono::system_clock::time_point(std::chrono::sys_days(std::chrono::year(2031) / 2 / 3));
  };
  o.metrics_period = 20ms;
  o.metrics = [&](const std::vector<troupe::measure>& all) {
    for (const auto& one : all)
      measured += one.name == "actors" && one.value >= 5;
    throw std::runtime_error("a host's fault");
  };
  o.log = [&](troupe::log_level, std::string_view line) {
    complaints += line.find("a host's fault") != line.npos;
    throw 7;
  };
  auto node = troupe::node::open(o);
  ASSERT_OK(node);
  auto run = node->client().submit({.entrypoint = "true"});
  ASSERT_OK(run);
  run->on_metric([](const troupe::metric&) { throw std::runtime_error("another"); });
  EXPECT_EQ(run->wait(), troupe::outcome::completed);
  const auto shown = node->call({.target = "/api/v1/experiments/" + std::to_string(run->id())});
  EXPECT_EQ(shown.status, 200u) << shown.body;
  EXPECT_NE(shown.body.find("2031-02-03T"), std::string::npos) << shown.body.substr(0, 2000);
  EXPECT_GT(asked, 0);
  for (int i = 0; i < 500 && measured == 0; ++i)
    std::this_thread::sleep_for(10ms);
  EXPECT_GT(measured, 0);
  EXPECT_GT(complaints, 0);
  EXPECT_FALSE(fs::exists(at.path / "data" / "master" / "db")) << "a journal in memory";
}

TEST(EmbeddedNode, AnswersHttpForTheHost) {
  folder at;
  auto o = options(at);
  o.http = troupe::http_on("127.0.0.1:0");
  auto node = troupe::node::open(o);
  ASSERT_OK(node);
  EXPECT_TRUE(node->url().starts_with("http://127.0.0.1:")) << node->url();
  auto run = node->client().submit({.entrypoint = "true"});
  ASSERT_OK(run);
  EXPECT_EQ(run->wait(), troupe::outcome::completed);
  const std::string experiment = "/api/v1/experiments/" + std::to_string(run->id());
  EXPECT_EQ(node->http({.target = experiment}).status, 401u) << "from outside a token says who asks";
  EXPECT_EQ(node->http({.target = "/api/v1/nothing"}).status, 404u);
  EXPECT_EQ(node->call({.target = "no path"}).status, 400u);
  EXPECT_EQ(node->call({.target = experiment}).status, 200u);
  auto events = node->call({.target = "/troupe/v1/events?after=0"});
  EXPECT_NE(events.body.find("experiment_created"), std::string::npos) << events.body.substr(0, 500);
  auto login = node->http({.method = "POST",
                           .target = "/api/v1/auth/login",
                           .body = R"({"username": "determined", "password": ""})"});
  ASSERT_EQ(login.status, 200u) << login.body;
  const auto begin = login.body.find("\"token\":\"") + 9;
  const auto token = login.body.substr(begin, login.body.find('"', begin) - begin);
  const troupe::http_request follow{.target = "/troupe/v1/events?after=0",
                                    .headers = {{"Authorization", "Bearer " + token}}};
  std::string heard;
  const auto streamed = node->http(follow, [&](std::string_view piece) {
    heard += piece;
    return heard.find("\"COMPLETED\"") == std::string::npos;
  });
  EXPECT_EQ(streamed.status, 200u) << streamed.body;
  EXPECT_NE(heard.find("experiment_changed"), std::string::npos);
}

TEST(EmbeddedNode, LeavesTheWebPageOut) {
  folder at;
  auto o = options(at);
  o.http = troupe::http_on("127.0.0.1:0");
  {
    auto node = troupe::node::open(o);
    ASSERT_OK(node);
    const auto has = [](const troupe::http_response& x, std::string_view name) {
      return std::count_if(x.headers.begin(), x.headers.end(),
                           [&](const auto& one) { return one.first == name; });
    };
    for (const char* method : {"GET", "POST"}) {
      const auto page = node->http({.method = method, .target = "/ui/experiments"});
      EXPECT_EQ(page.status, method == std::string_view("GET") ? 200u : 405u);
      for (const char* name : {"X-Content-Type-Options", "Content-Security-Policy", "Referrer-Policy",
                               "Cross-Origin-Opener-Policy"})
        EXPECT_EQ(has(page, name), 1) << method << " " << name;
    }
    EXPECT_EQ(has(node->http({.target = "/api/v1/nothing"}), "X-Content-Type-Options"), 1);
  }
  o.web = false;
  auto node = troupe::node::open(o);
  ASSERT_OK(node);
  EXPECT_EQ(node->http({.target = "/ui/experiments"}).status, 404u);
  EXPECT_EQ(node->http({.target = "/"}).status, 404u);
  EXPECT_EQ(node->call({.target = "/troupe/v1/status"}).status, 200u);
}

TEST(EmbeddedNode, BadInputSaysWhatIsWrong) {
  folder at;
  EXPECT_EQ(troupe::node::open({}).error().code, troupe::errc::invalid);
  EXPECT_FALSE(troupe::node::open({.data_dir = at / "x", .cpu_slots = -1}));
  std::ofstream(at / "file") << "x";
  auto no_folder = troupe::node::open({.data_dir = at / "file"});
  ASSERT_FALSE(no_folder);
  EXPECT_EQ(no_folder.error().code, troupe::errc::io) << text(no_folder.error());
  auto elsewhere = troupe::node::open({.data_dir = at / "y", .http = troupe::http_on("0.0.0.0:0")});
  ASSERT_FALSE(elsewhere) << "a plain port on every address";
  EXPECT_NE(elsewhere.error().hint, "");
  auto node = troupe::node::open(options(at));
  ASSERT_OK(node);
  EXPECT_EQ(node->client().submit({}).error().code, troupe::errc::invalid);
  auto nowhere = node->client().submit({.entrypoint = "true", .context = at / "missing"});
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().message.find("missing"), std::string::npos) << text(nowhere.error());
  auto bad = node->client().submit(
    {.entrypoint = "true", .config = "searcher: {name: nonsense}\nmax_restarts: many\n"});
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("max_restarts"), std::string::npos) << text(bad.error());
  EXPECT_NE(bad.error().message.find("nonsense"), std::string::npos)
    << "all faults at once: " << text(bad.error());
  auto unreadable = node->client().submit({.entrypoint = "true", .config = "a: [1\n"});
  EXPECT_FALSE(unreadable);
  auto range =
    node->client().submit({.entrypoint = "true", .hparams = {{"x", troupe::parameter::json{"{broken"}}}});
  EXPECT_FALSE(range);
  EXPECT_EQ(node->client().find(999).error().code, troupe::errc::not_found);
}

TEST(EmbeddedNode, DrainWaitsAndSaysWhatItLeft) {
  folder at;
  auto node = troupe::node::open(options(at));
  ASSERT_OK(node);
  auto quick = node->client().submit({.entrypoint = "true"});
  ASSERT_OK(quick);
  ASSERT_OK(node->stop(troupe::stop_mode::drain, 60s));
  auto again = troupe::node::open(options(at));
  ASSERT_OK(again);
  auto found = again->client().find(quick->id());
  ASSERT_OK(found);
  EXPECT_EQ(found->wait(1ms), troupe::outcome::completed) << "it was waited for";
  auto endless = again->client().submit({.entrypoint = "sleep 1000"});
  ASSERT_OK(endless);
  auto late = again->stop(troupe::stop_mode::drain, 300ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, troupe::errc::timeout);
  EXPECT_EQ(endless->wait(), troupe::outcome::failed) << "waiting on a node that has stopped ends";
}

} // namespace
