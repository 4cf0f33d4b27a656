// Output as it was written: long lines, any bytes, floods and full disks.

#include "stage.hpp"

#include <poll.h>

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class TaskOutput : public EitherIsolation {};
INSTANTIATE_TEST_SUITE_P(Each, TaskOutput, both_isolations, isolation_name);

TEST_P(TaskOutput, SplitsALineOfAMegabyteAndLosesNoByte) {
  auto id = s.run("head -c 1048576 /dev/zero | tr '\\0' x; echo; echo next");
  s.await<task_exited>(id);
  auto lines = s.log(id);
  ASSERT_GT(lines.size(), 2u);
  for (std::size_t n = 0; n + 2 < lines.size(); ++n) {
    EXPECT_TRUE(lines[n].continues);
    EXPECT_EQ(lines[n].text.size(), 16u << 10);
  }
  EXPECT_EQ(s.text(id), std::string(1 << 20, 'x') + "\nnext\n");
}

TEST_P(TaskOutput, KeepsBytesThatAreNoText) {
  auto id = s.run("printf 'a\\377\\000\\200b\\r\\n\\nend'");
  s.await<task_exited>(id);
  auto lines = s.log(id);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].text, std::string("a\377\0\200b", 5));
  EXPECT_EQ(lines[1].text, "");
  EXPECT_EQ(lines[2].text, "end");
  EXPECT_TRUE(lines[2].unended);
  EXPECT_FALSE(lines[0].unended);
}

TEST_P(TaskOutput, OfAProgressBarTheLastStateIsALine) {
  auto id = s.run("echo before; for i in $(seq 100); do printf '\\r%3d %%' $i; done; echo; printf '\\rleft'");
  s.await<task_exited>(id);
  EXPECT_EQ(s.text(id), "before\n100 %\nleft");
}

TEST_P(TaskOutput, OfAProgressBarThatGoesOnAStateIsGivenEveryTenSeconds) {
  const auto begin = std::chrono::steady_clock::now();
  auto id = s.run("for i in $(seq 25); do printf '\\r%d' $i; sleep 0.5; done; printf '\\r26\\n'");
  s.await<task_exited>(id);
  const auto took = std::chrono::steady_clock::now() - begin;
  const auto lines = s.log(id);
  ASSERT_GE(lines.size(), 2u);
  EXPECT_LE(lines.size(), static_cast<std::size_t>(took / 10s) + 1);
  for (std::size_t n = 0; n + 1 < lines.size(); ++n)
    EXPECT_EQ(lines[n].text.find('\r'), lines[n].text.size() - 1) << lines[n].text;
  EXPECT_EQ(lines.back().text, "26");
}

TEST_P(TaskOutput, OfAProgressBarThatStandsStillTheLastStateIsGivenOnce) {
  auto id = s.run("printf '\\r1'; printf '\\r2'; sleep 1000");
  s.await<task_started>(id);
  ASSERT_TRUE(eventually([&] { return s.text(id) == "2\r\n"; }));
  ASSERT_TRUE(s.runtime->kill(id));
  s.await<task_exited>(id);
  EXPECT_EQ(s.text(id), "2\r\n2");
}

TEST_P(TaskOutput, SpoolsWhatWasWrittenBeforeAKill) {
  auto id = s.run("echo first; printf partial; kill -9 $$");
  EXPECT_EQ(s.await<task_exited>(id).ranks.at(0).value, SIGKILL);
  EXPECT_EQ(s.text(id), "first\npartial");
}

TEST_P(TaskOutput, BoundsTheSpoolOfAFloodAndStillStops) {
  s.options.sandbox.spool_file_bytes = 256 << 10;
  s.options.sandbox.spool_files = 3;
  s.open();
  auto id = s.run("yes 'the same line again and again' ");
  s.await<task_started>(id);
  auto file_number = [&] {
    std::uint64_t last = 0;
    for (const auto& entry : std::filesystem::directory_iterator(s.runtime->spool(id)))
      last = std::max<std::uint64_t>(last, std::strtoull(entry.path().filename().c_str(), nullptr, 10));
    return last;
  };
  log_position from;
  auto first = read_log(s.runtime->spool(id), from, 10, 1 << 20);
  ASSERT_TRUE(first);
  ASSERT_TRUE(eventually([&] { return file_number() > first->next.file + 5; }));
  ASSERT_TRUE(s.runtime->kill(id));
  EXPECT_EQ(s.await<task_exited>(id).why, end_reason::killed);
  std::uintmax_t bytes = 0, files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(s.runtime->spool(id))) {
    bytes += entry.file_size();
    ++files;
  }
  EXPECT_LE(files, 3u);
  EXPECT_LE(bytes, 3u * (384 << 10));
  // A reader that was overtaken goes on at the oldest line and hears how many it missed.
  auto next = read_log(s.runtime->spool(id), first->next, 5, 1 << 20);
  ASSERT_TRUE(next);
  ASSERT_EQ(next->lines.size(), 5u);
  EXPECT_EQ(next->lost, next->lines[0].number - first->next.line - 1);
  EXPECT_GT(next->lost, 0u);
  EXPECT_EQ(next->lines[4].number, next->lines[0].number + 4);
}

TEST_P(TaskOutput, CanBeFollowedWhileItGrowsAndRotates) {
  s.options.sandbox.spool_file_bytes = 64 << 10;
  s.options.sandbox.spool_files = 100;
  s.open();
  auto id =
    s.run("i=0; while [ $i -lt 20000 ]; do echo line $i of the log that is followed; i=$((i+1)); done");
  s.await<task_started>(id);
  auto watch = log_watch::open();
  ASSERT_TRUE(watch);
  ASSERT_TRUE(watch->add(s.runtime->spool(id)));
  log_position at;
  std::uint64_t expected = 0;
  auto deadline = std::chrono::steady_clock::now() + patience;
  while (expected < 20000 && std::chrono::steady_clock::now() < deadline) {
    auto batch = read_log(s.runtime->spool(id), at, 777, 20'000);
    ASSERT_TRUE(batch) << batch.error().what;
    ASSERT_EQ(batch->lost, 0u);
    for (const auto& line : batch->lines)
      ASSERT_EQ(line.text, "line " + std::to_string(expected++) + " of the log that is followed");
    at = batch->next;
    if (!batch->at_end)
      continue;
    pollfd p{watch->descriptor(), POLLIN, 0};
    ::poll(&p, 1, 100);
    (void)watch->changed();
  }
  EXPECT_EQ(expected, 20000u);
}

TEST_P(TaskOutput, GoesOnWhereTheDiskOfItsSpoolIsFull) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root can mount a small file system";
  auto small = s.folder() / "small";
  std::filesystem::create_directories(small);
  ASSERT_EQ(std::system(("mount -t tmpfs -o size=1m tmpfs " + small.string()).c_str()), 0);
  s.options.root = small / "tasks";
  s.open();
  auto id = s.run("head -c 3000000 /dev/zero | tr '\\0' y | fold -w 100; sleep 1000");
  s.await<task_started>(id);
  EXPECT_TRUE(eventually([&] { return std::filesystem::space(small).available < (256 << 10); }));
  // With nothing free the task still ends, and its end is still recorded.
  ASSERT_TRUE(s.runtime->kill(id));
  EXPECT_EQ(s.await<task_exited>(id).why, end_reason::killed);
  auto lines = s.log(id);
  EXPECT_GT(lines.size(), 100u);
  ASSERT_TRUE(s.runtime->forget(id));
  ASSERT_TRUE(eventually([&] { return s.runtime->list().empty(); }));
  s.runtime.reset();
  EXPECT_TRUE(
    eventually([&] { return std::system(("umount " + small.string() + " 2>/dev/null").c_str()) == 0; }));
}

} // namespace
} // namespace troupe::test
