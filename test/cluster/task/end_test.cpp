// How tasks end: by themselves, by order, by violence. Afterwards none of their processes exists.

#include "stage.hpp"

namespace troupe::test {
namespace {

class TaskEnd : public EitherIsolation {};
INSTANTIATE_TEST_SUITE_P(Each, TaskEnd, both_isolations, isolation_name);

TEST_P(TaskEnd, ReportsStartAndEnd) {
  auto id = s.run("echo to out; echo to err >&2; exit 3");
  auto started = s.await<task_started>(id);
  EXPECT_GT(started.pid, 0);
  EXPECT_EQ(started.how, GetParam()) << started.remark;
  EXPECT_FALSE(started.adopted);
  auto exited = s.await<task_exited>(id);
  EXPECT_EQ(exited.why, end_reason::exited);
  ASSERT_EQ(exited.ranks.size(), 1u);
  EXPECT_FALSE(exited.ranks[0].signalled);
  EXPECT_EQ(exited.ranks[0].value, 3);
  EXPECT_EQ(s.text(id), "to out\n");
  EXPECT_EQ(s.text(id, log_stream::err), "to err\n");
}

TEST_P(TaskEnd, ReportsEachRankOfAGang) {
  auto id = s.run("echo rank 0", [](task_spec& spec) {
    for (int n = 1; n < 4; ++n)
      spec.ranks.push_back(
        {{"sh", "-c", "echo rank " + std::to_string(n) + "; exit " + std::to_string(n)}, {}, "/"});
  });
  auto exited = s.await<task_exited>(id);
  ASSERT_EQ(exited.ranks.size(), 4u);
  for (int n = 0; n < 4; ++n)
    EXPECT_EQ(exited.ranks[static_cast<std::size_t>(n)].value, n);
  for (const auto& line : s.log(id))
    EXPECT_EQ(line.text, "rank " + std::to_string(line.rank));
}

TEST_P(TaskEnd, SaysWhichCommandCouldNotBeRun) {
  struct {
    std::vector<std::string> argv;
    std::string cwd;
    int code;
    std::string names;
  } cases[] = {{{"no-such-command"}, "/", 127, "no-such-command"},
               {{"/etc/passwd"}, "/", 126, "/etc/passwd"},
               {{"true"}, "/no/such/folder", 127, "/no/such/folder"}};
  for (const auto& c : cases) {
    auto id = s.run("", [&](task_spec& spec) { spec.ranks[0] = {c.argv, {"PATH=/bin:/usr/bin"}, c.cwd}; });
    auto exited = s.await<task_exited>(id);
    ASSERT_EQ(exited.ranks.size(), 1u);
    EXPECT_EQ(exited.ranks[0].value, c.code);
    EXPECT_NE(exited.detail.find(c.names), std::string::npos) << exited.detail;
    EXPECT_NE(s.text(id, log_stream::notice).find(c.names), std::string::npos);
  }
}

TEST_P(TaskEnd, EndsDaemonsThatForkedTwice) {
  auto id = s.run("(setsid sh -c 'sleep 1000 & : >$TROUPE_RUN_DIR/up; sleep 1000' & ); until [ -e "
                  "$TROUPE_RUN_DIR/up ]; do :; done");
  auto exited = s.await<task_exited>(id);
  EXPECT_EQ(exited.why, end_reason::exited);
  EXPECT_EQ(processes_of(id), std::vector<int>{});
}

TEST_P(TaskEnd, KillIsCertainForASmallForkBomb) {
  auto id = s.run(
    "i=0; while [ $i -lt 150 ]; do setsid sh -c 'while :; do sleep 0.01; done' & i=$((i+1)); done; wait");
  s.await<task_started>(id);
  ASSERT_TRUE(eventually([&] { return processes_of(id).size() > 50; }));
  ASSERT_TRUE(s.runtime->kill(id));
  auto exited = s.await<task_exited>(id);
  EXPECT_EQ(processes_of(id), std::vector<int>{});
  EXPECT_EQ(exited.why, end_reason::killed);
  ASSERT_EQ(exited.ranks.size(), 1u);
  EXPECT_TRUE(exited.ranks[0].killed);
}

TEST_P(TaskEnd, KillsEvenWhereItsHelperIsStopped) {
  s.options.kill_patience = std::chrono::milliseconds(200);
  s.open();
  auto id = s.run("setsid sleep 1000 & sleep 1000");
  s.await<task_started>(id);
  ASSERT_TRUE(eventually([&] { return processes_of(id).size() >= 2; }));
  ASSERT_EQ(::kill(s.helper_pid(id), SIGSTOP), 0);
  ASSERT_TRUE(s.runtime->kill(id));
  auto exited = s.await<task_exited>(id);
  EXPECT_EQ(exited.why, end_reason::killed);
  EXPECT_EQ(processes_of(id), std::vector<int>{});
}

TEST_P(TaskEnd, LosesATaskWhoseHelperWasKilledAndLeavesNoProcess) {
  auto id = s.run("setsid sh -c 'sleep 1000 & sleep 1000' & sleep 1000");
  s.await<task_started>(id);
  ASSERT_TRUE(eventually([&] { return processes_of(id).size() >= 4; }));
  ASSERT_EQ(::kill(s.helper_pid(id), SIGKILL), 0);
  s.await<task_lost>(id);
  EXPECT_EQ(processes_of(id), std::vector<int>{});
}

TEST_P(TaskEnd, TellsAKilledRankFromAnOrderedKill) {
  auto id = s.run("exec sleep 1000");
  auto started = s.await<task_started>(id);
  ASSERT_EQ(::kill(started.pid, SIGKILL), 0);
  EXPECT_EQ(s.await<rank_ended>(id).end.value, SIGKILL);
  auto exited = s.await<task_exited>(id);
  EXPECT_EQ(exited.why, end_reason::exited);
  ASSERT_EQ(exited.ranks.size(), 1u);
  EXPECT_TRUE(exited.ranks[0].signalled);
  EXPECT_FALSE(exited.ranks[0].killed);
}

TEST_P(TaskEnd, TerminateLetsAScriptEndItself) {
  auto id = s.run("trap 'echo goodbye; exit 7' TERM; echo ready; while :; do sleep 0.01; done");
  s.await<task_started>(id);
  ASSERT_TRUE(eventually([&] { return s.text(id) == "ready\n"; }));
  ASSERT_TRUE(s.runtime->terminate(id));
  EXPECT_EQ(s.await<task_exited>(id).ranks.at(0).value, 7);
  EXPECT_EQ(s.text(id), "ready\ngoodbye\n");
}

TEST_P(TaskEnd, StartsNothingTwice) {
  auto id = s.run("sleep 1000");
  task_spec again{.id = id, .ranks = {{{"true"}, {}, "/"}}, .limits = {}, .keep = {}};
  EXPECT_EQ(s.runtime->launch(again).error().code, errc::conflict);
  s.await<task_started>(id);
  EXPECT_EQ(s.runtime->launch(again).error().code, errc::conflict);
  EXPECT_EQ(s.runtime->forget(id).error().code, errc::conflict);
  ASSERT_TRUE(s.runtime->kill(id));
  s.await<task_exited>(id);
  EXPECT_EQ(s.runtime->launch(again).error().code, errc::conflict);
}

TEST_P(TaskEnd, ForgetsAllButTheSpool) {
  auto id = s.run(
    "mkdir -p $TROUPE_RUN_DIR/a/b && touch $TROUPE_RUN_DIR/a/b/c && chmod 0 $TROUPE_RUN_DIR/a; echo kept");
  s.await<task_exited>(id);
  ASSERT_TRUE(s.runtime->forget(id));
  ASSERT_TRUE(eventually([&] { return s.runtime->list().empty(); }));
  EXPECT_FALSE(std::filesystem::exists(s.options.root / id / "run"));
  EXPECT_FALSE(std::filesystem::exists(s.options.root / id / "exit"));
  EXPECT_EQ(s.text(id), "kept\n");
  ASSERT_TRUE(s.runtime->drop_spool(id));
  EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(s.options.root / id); }));
}

TEST_P(TaskEnd, LimitsItsProcesses) {
  auto id = s.run("ulimit -Sd; ulimit -Sn; ulimit -St", [](task_spec& spec) {
    spec.limits = {.memory_bytes = 512u << 20, .open_files = 100, .cpu_seconds = 77};
  });
  s.await<task_exited>(id);
  EXPECT_EQ(s.text(id), "524288\n100\n77\n");
}

} // namespace
} // namespace troupe::test
