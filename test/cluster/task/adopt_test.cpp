// The next agent finds every task of the last one, whatever became of it meanwhile.

#include "stage.hpp"

#include <atomic>
#include <fstream>
#include <map>
#include <set>
#include <sys/wait.h>
#include <thread>

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class TaskAdoption : public EitherIsolation {};
INSTANTIATE_TEST_SUITE_P(Each, TaskAdoption, both_isolations, isolation_name);

TEST_P(TaskAdoption, AdoptsWhatRunsAndWhatEndedMeanwhile) {
  auto gate = s.folder() / "gate";
  std::filesystem::create_directories(gate);
  auto in_gate = [&](task_spec& spec) { spec.ranks[0].cwd = gate; };
  auto running = s.run("echo before; until [ -e go ]; do sleep 0.01; done; echo after; exit 5", in_gate);
  auto ended = s.run("until [ -e end ]; do sleep 0.01; done; echo last words; exit 6", in_gate);
  auto killed = s.run("sleep 1000");
  for (const auto& id : {running, ended, killed})
    s.await<task_started>(id);
  auto helper = s.helper_pid(killed);
  s.runtime.reset();

  std::ofstream(gate / "end") << "";
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(s.options.root / ended / "exit"); }));
  ASSERT_EQ(::kill(helper, SIGKILL), 0);

  s.open();
  ASSERT_TRUE(s.runtime->adopt_all());
  EXPECT_EQ(s.await_inventory(), 3u);
  EXPECT_TRUE(s.await<task_started>(running).adopted);
  auto exited = s.await<task_exited>(ended);
  EXPECT_EQ(exited.ranks.at(0).value, 6);
  EXPECT_EQ(s.text(ended), "last words\n");
  s.await<task_lost>(killed);
  EXPECT_EQ(processes_of(killed), std::vector<int>{});

  std::ofstream(gate / "go") << "";
  EXPECT_EQ(s.await<task_exited>(running).ranks.at(0).value, 5);
  EXPECT_EQ(s.text(running), "before\nafter\n");
}

TEST_P(TaskAdoption, ReportsAnEndToEveryAgentUntilItIsForgotten) {
  auto id = s.run("exit 4");
  s.await<task_exited>(id);
  for (int round = 0; round < 2; ++round) {
    s.open();
    ASSERT_TRUE(s.runtime->adopt_all());
    s.await_inventory();
    EXPECT_EQ(s.await<task_exited>(id).ranks.at(0).value, 4);
  }
  ASSERT_TRUE(s.runtime->forget(id));
  ASSERT_TRUE(eventually([&] { return s.runtime->list().empty(); }));
  s.open();
  ASSERT_TRUE(s.runtime->adopt_all());
  EXPECT_EQ(s.await_inventory(), 0u);
}

TEST_P(TaskAdoption, KeepsTheRecordWhenItsHelperHasGoneToo) {
  s.options.sandbox.linger = 0ms;
  s.open();
  auto id = s.run("exit 9");
  s.await<task_exited>(id);
  auto helper = s.helper_pid(id);
  ASSERT_TRUE(eventually([&] { return process_state(helper) == 0; }));
  s.open();
  ASSERT_TRUE(s.runtime->adopt_all());
  EXPECT_EQ(s.await_inventory(), 1u);
  EXPECT_EQ(s.await<task_exited>(id).ranks.at(0).value, 9);
}

TEST_P(TaskAdoption, GivesUpAFolderWhoseTaskWasNeverStartedForGood) {
  auto folder = s.options.root / "ghost.1";
  std::filesystem::create_directories(folder);
  task_spec spec{
    .id = "ghost.1", .ranks = {{{"sleep", "1000"}, {"PATH=/bin:/usr/bin"}, "/"}}, .limits = {}, .keep = {}};
  std::ofstream(folder / "spec", std::ios::binary) << encode(spec, s.options.sandbox);
  ASSERT_TRUE(s.runtime->adopt_all());
  EXPECT_EQ(s.await_inventory(), 1u);
  s.await<task_lost>("ghost.1");
  // The dead agent's start comes late: it must not bring the task back.
  auto command = task_program() + " " + (folder / "spec").string() + " 2>/dev/null";
  EXPECT_NE(std::system(command.c_str()), 0);
  EXPECT_EQ(processes_of("ghost.1"), std::vector<int>{});
}

TEST_P(TaskAdoption, KeepsSparesReadyAndRunsTasksInThem) {
  if (!namespaces())
    GTEST_SKIP() << "a process group has nothing to prepare";
  s.options.spares = 2;
  s.open();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(eventually([&] { return s.runtime->spares_ready() == 2; }));
    auto id =
      s.run("cat /proc/self/stat >/dev/null && echo $TROUPE_TASK_ID; touch $TROUPE_RUN_DIR/x; exit 2");
    EXPECT_GT(s.await<task_started>(id).pid, 0);
    EXPECT_EQ(s.await<task_exited>(id).ranks.at(0).value, 2);
    EXPECT_EQ(s.text(id), id + "\n");
    EXPECT_TRUE(std::filesystem::exists(s.options.root / id / "run" / "x"));
  }
}

TEST_P(TaskAdoption, ASpareWaitsForAFolderThatIsBeingCleaned) {
  if (!namespaces())
    GTEST_SKIP() << "a process group has nothing to prepare";
  s.options.spares = 1;
  s.options.reuse = {"run/kept"};
  s.open();
  std::set<ino_t> folders;
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(eventually([&] { return s.runtime->spares_ready() == 1; }));
    const auto id = s.run("echo x > $TROUPE_RUN_DIR/kept");
    s.await<task_exited>(id);
    struct stat about {};
    ASSERT_EQ(::stat(s.runtime->folder(id).c_str(), &about), 0);
    folders.insert(about.st_ino);
    ASSERT_TRUE(s.runtime->drop(id));
  }
  EXPECT_LE(folders.size(), 2) << "one of a task and one of the spare";
}

TEST_P(TaskAdoption, LeavesNoWordOfATaskInItsFolderButWhatIsTheSameInAllTasks) {
  if (!namespaces())
    GTEST_SKIP() << "a process group has nothing to prepare";
  s.options.spares = 1;
  s.options.reuse = {"run/told", "run/same="};
  s.open();
  const auto id =
    s.run("cd $TROUPE_RUN_DIR && echo x > told && echo y > same && echo z > other && ln -s told same.link");
  s.await<task_exited>(id);
  ASSERT_TRUE(eventually([&] { return s.runtime->spares_ready() == 1; })) << "none that needs the folder";
  ASSERT_TRUE(s.runtime->drop(id));
  ASSERT_TRUE(eventually([&] { return s.runtime->list().empty(); }));
  std::map<std::string, std::string> left;
  for (const auto& folder : std::filesystem::directory_iterator(s.options.root))
    if (folder.path().filename().string().starts_with(".free-"))
      for (const auto& file : std::filesystem::directory_iterator(folder.path() / "run")) {
        std::ifstream in(file.path(), std::ios::binary);
        left[file.path().filename().string()] = {std::istreambuf_iterator<char>(in), {}};
      }
  const std::map<std::string, std::string> expected = {{"told", std::string(2, '\0')}, {"same", "y\n"}};
  EXPECT_EQ(left, expected);
}

/// A process that was forked elsewhere and not yet replaced holds every descriptor of this one, so that the
/// poll set goes on to tell of descriptors that were closed here.
TEST_P(TaskAdoption, UsesASpareOnceWhileOthersFork) {
  if (!namespaces())
    GTEST_SKIP() << "a process group has nothing to prepare";
  s.options.spares = 3;
  s.open();
  std::atomic<bool> over{false};
  std::thread others([&over] {
    while (!over) {
      const auto child = ::fork();
      if (child == 0) {
        const timespec rest{0, 20'000'000};
        ::nanosleep(&rest, nullptr);
        ::_exit(0);
      }
      ::waitpid(child, nullptr, 0);
    }
  });
  for (int round = 0; round < 12; ++round) {
    EXPECT_TRUE(eventually([&] { return s.runtime->spares_ready() == 3; }));
    std::vector<std::string> ids;
    for (int i = 0; i < 3; ++i)
      ids.push_back(s.run("echo $TROUPE_TASK_ID; exit 3"));
    for (const auto& id : ids) {
      EXPECT_EQ(s.await<task_exited>(id).ranks.at(0).value, 3) << "round " << round;
      EXPECT_EQ(s.text(id), id + "\n");
    }
    EXPECT_LE(s.runtime->spares_ready(), 3);
  }
  over = true;
  others.join();
}

TEST_P(TaskAdoption, LosesATaskWhoseSpareDiesWithTheOrder) {
  if (!namespaces())
    GTEST_SKIP() << "a process group has nothing to prepare";
  s.options.spares = 1;
  s.open();
  ASSERT_TRUE(eventually([&] { return s.runtime->spares_ready() == 1; }));
  int helper = 0;
  for (const auto& entry : std::filesystem::directory_iterator(s.options.root))
    std::ifstream(entry.path() / "helper") >> helper;
  ASSERT_GT(helper, 1);
  ASSERT_EQ(::kill(helper, SIGSTOP), 0); // so that the order lies unread when it dies
  auto id = s.run("exit 8");
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(s.options.root / id / "spec"); }));
  ASSERT_EQ(::kill(helper, SIGKILL), 0);
  EXPECT_NE(s.await<task_lost>(id).why.find("being started"), std::string::npos);
}

TEST_P(TaskAdoption, RemovesTheSparesOfADeadAgent) {
  if (!namespaces())
    GTEST_SKIP() << "a process group has nothing to prepare";
  s.options.spares = 2;
  s.open();
  ASSERT_TRUE(eventually([&] { return s.runtime->spares_ready() == 2; }));
  s.options.spares = 0;
  s.open();
  ASSERT_TRUE(s.runtime->adopt_all());
  EXPECT_EQ(s.await_inventory(), 0u);
  EXPECT_TRUE(eventually([&] { return std::filesystem::is_empty(s.options.root); }));
}

} // namespace
} // namespace troupe::test
