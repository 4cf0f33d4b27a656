// A process that appends is killed at random moments; what it acknowledged is there.

#include "child.hpp"
#include "workload.hpp"

#include <random>

namespace troupe::storage {
namespace {

TEST(AppendingProcess, DISABLED_AppendsUntilItIsKilled) {
  const char* directory = std::getenv("TROUPE_TEST_DIRECTORY");
  if (!directory)
    GTEST_SKIP() << "only as the child of another test";
  auto j = open_journal({.directory = directory});
  ASSERT_TRUE(j) << j.error().what;
  ASSERT_TRUE(begin_story(**j));
  auto next = check_story(*(*j)->reads(), {});
  std::mt19937_64 random(next.facts);
  for (;;) {
    auto done = write_group(**j, next, int(random() % 40), int(random() % 40), 100 + random() % 2000);
    ASSERT_TRUE(done) << done.error().what;
    auto text = "ack " + std::to_string(next.facts) + " " + std::to_string(next.reports) + " " +
                std::to_string(next.lines) + "\n";
    ASSERT_GT(::write(1, text.data(), text.size()), 0);
  }
}

TEST(Journal, KeepsAllThatWasAcknowledgedBeforeTwentyKills) {
  scratch at;
  ::setenv("TROUPE_TEST_DIRECTORY", at.path().c_str(), 1);
  std::random_device seed;
  const auto seeded = seed();
  SCOPED_TRACE("seed " + std::to_string(seeded));
  std::mt19937_64 random(seeded);
  progress acknowledged;
  for (int round = 0; round < 20 && !testing::Test::HasFailure(); ++round) {
    child process(child::of_test("AppendingProcess.DISABLED_AppendsUntilItIsKilled"));
    ASSERT_TRUE(process.started());
    auto take = [&](const std::string& line) {
      progress p;
      if (std::sscanf(line.c_str(), "ack %lu %lu %lu", &p.facts, &p.reports, &p.lines) == 3)
        return acknowledged = p, true;
      return false;
    };
    const bool early = round % 5 == 4; // while it opens and recovers
    auto deadline = steady_clock::now() + std::chrono::seconds(60);
    if (!early)
      for (auto line = process.line(deadline); line && !take(*line);)
        line = process.line(deadline);
    deadline = steady_clock::now() + std::chrono::microseconds(random() % (early ? 20'000 : 300'000));
    while (auto line = process.line(deadline))
      take(*line);
    int status = process.end(SIGKILL);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself in round " << round;
    while (auto line = process.line(steady_clock::now() + std::chrono::seconds(5)))
      take(*line);

    auto j = open_journal({.directory = at.path(), .rebuild_projections = round % 4 == 3});
    ASSERT_TRUE(j) << j.error().what;
    check_story(*(*j)->reads(), acknowledged);
  }
  EXPECT_GT(acknowledged.facts, 1000u);
}

TEST(Journal, GoesOnBehindATornTailAndKeepsWhatCameAfterIt) {
  scratch at;
  progress next;
  {
    auto j = open_journal({.directory = at.path()});
    ASSERT_TRUE(j) << j.error().what;
    ASSERT_TRUE(begin_story(**j));
    for (int i = 0; i < 5; ++i)
      ASSERT_TRUE(write_group(**j, next, 10, 10, 300));
  }
  for (int round = 0; round < 5; ++round) {
    std::filesystem::path newest;
    for (const auto& entry : std::filesystem::directory_iterator(at.path() / "db"))
      if (entry.path().extension() == ".log" && entry.path() > newest)
        newest = entry.path();
    int fd = ::open(newest.c_str(), O_WRONLY | O_APPEND);
    auto garbage = noise(std::uint64_t(round), 1 + std::size_t(round) * 5000);
    ASSERT_GT(::write(fd, garbage.data(), garbage.size()), 0);
    ::close(fd);
    auto j = open_journal({.directory = at.path()});
    ASSERT_TRUE(j) << j.error().what;
    auto stored = check_story(*(*j)->reads(), next);
    EXPECT_EQ(stored.facts, next.facts);
    ASSERT_TRUE(write_group(**j, next, 10, 10, 300));
  }
}

} // namespace
} // namespace troupe::storage
