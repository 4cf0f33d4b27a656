// Tests which zygotes the keeper holds, for how long, and what it tells them. The zygotes are Python
// processes whose hook answers and notes what it receives.

#include "workers/zygote_keeper.hpp"

#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <memory>
#include <poll.h>
#include <set>
#include <sstream>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr char hook[] = R"(
import os, signal, socket, sys, time
control = socket.socket(fileno=int(os.environ["TROUPE_ZYGOTE_CONTROL"]))
note = os.environ["NOTES"] + "/" + os.environ["NAME"]
control.send(b"hello")
with open(note + ".variables", "w") as file:
    file.write("".join(f"{name}={value}\n" for name, value in os.environ.items()))
with open(note + ".pids", "a") as file:
    file.write(str(os.getpid()) + "\n")
while True:
    data, fds, _, _ = socket.recv_fds(control, 8192, 2)
    for fd in fds:
        os.close(fd)
    if not data:
        os._exit(0)
    if data == b"ping":
        if os.environ["NAME"] == "hangs":
            control.send(b"warming") # which may take long
            while not os.path.exists(note + ".go"):
                time.sleep(0.01)
            control.send(b"ready")
        control.send(b"pong")
        if os.environ["NAME"] == "hangs":
            os.kill(os.getpid(), signal.SIGSTOP)
        continue
    with open(note + ".heard", "ab") as file:
        file.write(data.replace(b"\0", b"|") + b"\n")
    if os.environ["NAME"] == "fails":
        while not os.path.exists(note + ".go"):
            time.sleep(0.01)
        control.send(b"failed importing it: no")
        os._exit(1)
    if b"poison" in data:
        control.recv(1, socket.MSG_PEEK) # the ping, which it leaves unread: what it says now is behind a reset
        control.send(b"warming")
        control.send(b"failed learned poison: it starts threads")
        control.close()
        os._exit(1)
)";

class ZygoteKeeper : public testing::Test {
protected:
  void SetUp() override {
    fs::create_directories(folder_);
    std::ofstream(folder_ / "sitecustomize.py") << hook;
    options_.library = folder_ / "sitecustomize.py"; // the keeper only checks that this file exists
    options_.hook = folder_;
  }
  void TearDown() override {
    keeper_.reset();
    fs::remove_all(folder_);
  }
  void start() {
    const auto before = threads();
    auto keeper = zygote_keeper::start(options_);
    ASSERT_TRUE(keeper) << keeper.error().what;
    keeper_ = std::move(*keeper);
    for (int one : threads())
      if (!before.contains(one))
        thread_ = one;
  }
  zygote_order order(const std::string& name) {
    return {"/usr/bin/python3",
            "python3",
            {"NAME=" + name, "NOTES=" + folder_.string(), "RANK=3", "PATH=/usr/bin:/bin"},
            "context",
            "train.py",
            owned_fd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC))};
  }
  void ask(const std::string& name) {
    auto connection = keeper_->attach(order(name));
    ASSERT_TRUE(connection);
    connections_.push_back(std::move(*connection));
  }
  std::vector<std::string> lines(const std::string& file) {
    std::ifstream in(folder_ / file);
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);)
      all.push_back(line);
    return all;
  }
  // Counts the zygotes of this name that run. The keeper reaps those that it ends.
  int alive(const std::string& name) {
    int n = 0;
    for (const auto& pid : lines(name + ".pids"))
      n += ::kill(std::stoi(pid), 0) == 0;
    return n;
  }
  // Returns the state of the last zygote of this name: 'Z' has ended and is not reaped, 'T' is stopped.
  char state(const std::string& name) {
    std::ifstream in("/proc/" + lines(name + ".pids").back() + "/stat");
    std::string text{std::istreambuf_iterator<char>(in), {}};
    return text.substr(text.rfind(')') + 2)[0];
  }
  /// Stops the thread of the keeper, as a busy host may, until the returned object is destroyed.
  std::shared_ptr<int> held() {
    static int release[2];
    static std::atomic<bool> is_held;
    is_held = false;
    EXPECT_EQ(::pipe(release), 0);
    ::signal(SIGUSR1, [](int) {
      char byte;
      is_held = true;
      (void)!::read(release[0], &byte, 1);
    });
    ::syscall(SYS_tgkill, ::getpid(), thread_, SIGUSR1);
    EXPECT_TRUE(soon([] { return is_held.load(); }));
    return {release, [](int* ends) { ::close(ends[1]), ::close(ends[0]); }};
  }
  static std::set<int> threads() {
    std::set<int> all;
    for (const auto& one : fs::directory_iterator("/proc/self/task"))
      all.insert(std::stoi(one.path().filename()));
    return all;
  }
  static std::string said_to(const owned_fd& connection) {
    char text[1000];
    pollfd one{connection.get(), POLLIN, 0};
    const auto n = ::poll(&one, 1, 30'000) == 1 ? ::recv(connection.get(), text, sizeof text, 0) : -1;
    return n < 0 ? "nothing" : std::string(text, static_cast<std::size_t>(n));
  }
  static bool soon(const std::function<bool()>& is) {
    for (const auto until = clock::now() + 30s; clock::now() < until; std::this_thread::sleep_for(10ms))
      if (is())
        return true;
    return false;
  }

  fs::path folder_ = fs::temp_directory_path() / ("zygotes-" + std::to_string(getpid()));
  zygote_options options_;
  std::unique_ptr<zygote_keeper> keeper_;
  std::vector<owned_fd> connections_;
  int thread_ = 0; ///< the id of the keeper's thread
};

TEST_F(ZygoteKeeper, OneThatIsIdleIsDroppedAndTheNextTrialGetsANewOne) {
  options_.idle = 1500ms;
  start();
  ask("a");
  ASSERT_TRUE(soon([&] { return alive("a") == 1; }));
  ASSERT_TRUE(soon([&] { return lines("a.heard").size() == 1; }));
  ASSERT_TRUE(soon([&] { return alive("a") == 0; })) << "nobody has asked it for long";
  ask("a");
  ASSERT_TRUE(soon([&] { return lines("a.pids").size() == 2; }));
  ASSERT_TRUE(soon([&] { return lines("a.heard").size() == 2; }));
}

TEST_F(ZygoteKeeper, ThreadsOfOpenBlasDoNotSpinForATenthOfASecondUnlessTheTrialSaysSo) {
  using testing::Contains;
  start();
  ask("a");
  ASSERT_TRUE(soon([&] { return alive("a") == 1; }));
  EXPECT_THAT(lines("a.variables"), Contains("OPENBLAS_THREAD_TIMEOUT=20"));
  EXPECT_THAT(lines("a.variables"), Contains("JE_ARROW_MALLOC_CONF=background_thread:false"));
  EXPECT_THAT(lines("a.variables"), Contains("OPENBLAS_NUM_THREADS=1")) << "a fork would keep one of them";
  auto own = order("b");
  own.env.push_back("OPENBLAS_THREAD_TIMEOUT=24");
  auto connection = keeper_->attach(std::move(own));
  ASSERT_TRUE(soon([&] { return alive("b") == 1; }));
  EXPECT_THAT(lines("b.variables"), Contains("OPENBLAS_THREAD_TIMEOUT=24"));
}

TEST_F(ZygoteKeeper, WhileItIsUsedItStays) {
  options_.idle = 3000ms;
  start();
  ask("b");
  ASSERT_TRUE(soon([&] { return lines("b.heard").size() == 1; }));
  std::size_t asked = 0;
  // Nobody asks for zygote b after this. When it has gone, the time of every idle zygote is over.
  do {
    ask("a");
    ++asked;
    ASSERT_TRUE(soon([&] { return lines("a.heard").size() == asked; }));
    connections_.clear();
  } while (alive("b") == 1);
  EXPECT_EQ(lines("a.pids").size(), 1u);
}

TEST_F(ZygoteKeeper, BeyondTheLimitTheOneThatWasNotUsedForTheLongestTimeGoes) {
  options_.most = 2;
  start();
  for (const char* name : {"a", "b", "a"}) {
    const auto before = lines(std::string(name) + ".heard").size();
    ask(name);
    ASSERT_TRUE(soon([&] { return lines(std::string(name) + ".heard").size() == before + 1; })) << name;
  }
  ask("c");
  ASSERT_TRUE(soon([&] { return alive("b") == 0; }));
  ASSERT_TRUE(soon([&] { return alive("c") == 1; }));
  EXPECT_EQ(alive("a"), 1) << "used after b";
}

TEST_F(ZygoteKeeper, WhatATrialHadImportedIsToldToTheZygotesOfItsEnvironment) {
  start();
  keeper_->learn(zygote_key(order("a")), "numpy.random\nscipy\n1bad\n; rm\nnumpy.random\n\n");
  auto other_rank = order("a");
  other_rank.env[2] = "RANK=4";
  EXPECT_EQ(zygote_key(other_rank), zygote_key(order("a")));
  ask("a");
  ask("b");
  ASSERT_TRUE(soon([&] { return lines("a.heard").size() == 1 && lines("b.heard").size() == 1; }));
  EXPECT_EQ(lines("a.heard")[0], "serve|context|train.py|numpy.random scipy");
  EXPECT_EQ(lines("b.heard")[0], "serve|context|train.py|");
}

TEST_F(ZygoteKeeper, WhatOneTellsOfItsModulesIsBounded) {
  start();
  std::string many;
  for (int i = 0; i < 5000; ++i)
    many += "module_" + std::to_string(i) + "\n";
  keeper_->learn(zygote_key(order("a")), many);
  ask("a");
  ASSERT_TRUE(soon([&] { return lines("a.heard").size() == 1; }));
  EXPECT_LT(lines("a.heard")[0].size(), 7000u); // about 600 names
}

TEST_F(ZygoteKeeper, AModuleThatCannotBeWarmEndsTheLearningAndNotTheZygotes) {
  start();
  keeper_->learn(zygote_key(order("a")), "poison\n");
  ask("a");
  ASSERT_TRUE(soon([&] { return lines("a.heard").size() == 1 && alive("a") == 0; }));
  ask("a");
  ASSERT_TRUE(soon([&] { return lines("a.heard").size() == 2; })) << "it is not switched off";
  EXPECT_EQ(lines("a.heard")[1], "serve|context|train.py|");
  EXPECT_EQ(alive("a"), 1);
}

TEST_F(ZygoteKeeper, WhatItSaidWhenItFailedIsToldToOneThatAsksBeforeItWasHeard) {
  start();
  ask("fails");
  ASSERT_TRUE(soon([&] { return lines("fails.heard").size() == 1; }));
  {
    auto busy = held();
    std::ofstream(folder_ / "fails.go") << "go";
    ASSERT_TRUE(soon([&] { return state("fails") == 'Z'; }));
    ask("fails");
  }
  EXPECT_EQ(said_to(connections_.back()), "no importing it: no");
  EXPECT_EQ(lines("fails.pids").size(), 1u) << "switched off for a while";
}

TEST_F(ZygoteKeeper, AnAnswerOfBeforeIsNotOneToTheNextQuestion) {
  options_.answer = 500ms;
  start();
  ask("hangs");
  ask("hangs");
  ASSERT_TRUE(soon([&] { return lines("hangs.heard").size() == 1; }));
  std::ofstream(folder_ / "hangs.go") << "go"; // this zygote answers the first question and then stops
  EXPECT_TRUE(soon([&] { return alive("hangs") == 0; })) << "it has answered once and was asked twice";
}

} // namespace
} // namespace troupe::workers
