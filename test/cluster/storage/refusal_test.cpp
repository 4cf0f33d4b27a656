// Directories that cannot be used, and writes that fail: each has one clear error.

#include "child.hpp"
#include "workload.hpp"

#include <gmock/gmock.h>

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace troupe::storage {
namespace {

using testing::HasSubstr;

TEST(Owner, DISABLED_HoldsTheDirectory) {
  const char* directory = std::getenv("TROUPE_TEST_DIRECTORY");
  if (!directory)
    GTEST_SKIP() << "only as the child of another test";
  auto j = open_journal({.directory = directory});
  ASSERT_TRUE(j) << j.error().what;
  ASSERT_GT(::write(1, "held\n", 5), 0);
  ::pause();
}

TEST(OpenJournal, NamesTheProcessThatHoldsTheDirectoryAndOpensWhenItIsDead) {
  scratch at;
  ::setenv("TROUPE_TEST_DIRECTORY", at.path().c_str(), 1);
  child owner(child::of_test("Owner.DISABLED_HoldsTheDirectory"));
  ASSERT_TRUE(owner.started());
  auto deadline = steady_clock::now() + std::chrono::seconds(30);
  for (auto line = owner.line(deadline); line != "held"; line = owner.line(deadline))
    ASSERT_TRUE(line) << "the owner does not start";
  auto second = open_journal({.directory = at.path()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, errc::conflict);
  EXPECT_THAT(second.error().what, HasSubstr("in use by process " + std::to_string(owner.pid())));
  EXPECT_THAT(second.error().what, HasSubstr(at.path().string()));
  owner.end(SIGKILL);
  auto third = open_journal({.directory = at.path()});
  ASSERT_TRUE(third) << third.error().what;
  EXPECT_EQ(open_journal({.directory = at.path()}).error().code, errc::conflict) << "the same process twice";
}

TEST(OpenJournal, RefusesAFileAsItsDirectory) {
  scratch at;
  auto name = at.path() / "file";
  ASSERT_EQ(::close(::creat(name.c_str(), 0644)), 0);
  auto j = open_journal({.directory = name});
  ASSERT_FALSE(j);
  EXPECT_EQ(j.error().code, errc::io);
  EXPECT_THAT(j.error().what, HasSubstr(name.string()));
}

TEST(ReadOnly, DISABLED_IsRefused) {
  const char* directory = std::getenv("TROUPE_TEST_DIRECTORY");
  if (!directory)
    GTEST_SKIP() << "only as the child of another test";
  if (::getuid() == 0) { // root writes anywhere but on a read-only mount
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount(directory, directory, nullptr, MS_BIND, nullptr) != 0 ||
        ::mount(nullptr, directory, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0) {
      std::printf("skip\n");
      return;
    }
  } else {
    ::chmod(directory, 0555);
    ::chmod((std::string(directory) + "/journal.lock").c_str(), 0444);
  }
  auto j = open_journal({.directory = directory});
  ASSERT_FALSE(j);
  EXPECT_EQ(j.error().code, errc::io);
  EXPECT_THAT(j.error().what, HasSubstr("cannot be written"));
  EXPECT_THAT(j.error().what, HasSubstr("choose another data directory"));
  std::printf("refused\n");
  ::chmod(directory, 0755);
  ::chmod((std::string(directory) + "/journal.lock").c_str(), 0644);
}

TEST(OpenJournal, RefusesAReadOnlyDirectoryAndOpensItOnceItCanBeWritten) {
  scratch at;
  {
    auto j = open_journal({.directory = at.path()});
    ASSERT_TRUE(j && begin_story(**j));
  }
  ::setenv("TROUPE_TEST_DIRECTORY", at.path().c_str(), 1);
  child process(child::of_test("ReadOnly.DISABLED_IsRefused"));
  std::string output;
  while (auto line = process.line(steady_clock::now() + std::chrono::seconds(30)))
    output += *line + "\n";
  EXPECT_EQ(process.end(), 0) << output;
  if (output.find("skip\n") != std::string::npos)
    GTEST_SKIP() << "a read-only mount is refused here";
  EXPECT_THAT(output, HasSubstr("refused\n"));
  auto j = open_journal({.directory = at.path()});
  ASSERT_TRUE(j) << j.error().what;
  EXPECT_EQ((*j)->reads()->sequence(), 3u);
}

TEST(FailingWrites, DISABLED_CloseTheJournal) {
  const char* directory = std::getenv("TROUPE_TEST_DIRECTORY");
  if (!directory)
    GTEST_SKIP() << "only as the child of another test";
  auto j = open_journal({.directory = directory});
  ASSERT_TRUE(j && begin_story(**j));
  // The operating system refuses what lies beyond this limit; a lone disk fault cannot be made without
  // devices.
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{300 * 1024, 300 * 1024};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  progress next;
  result<void> done;
  for (int i = 0; i < 100 && done; ++i)
    done = write_group(**j, next, 10, 10, 1000);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, errc::io) << done.error().what;
  EXPECT_THAT(done.error().what, HasSubstr(directory));
  EXPECT_EQ(write_group(**j, next, 1, 1, 10).error().code, errc::io) << "closed for writing";
  EXPECT_EQ((*j)->commit().error().code, errc::io);
  check_story(*(*j)->reads(), next);
  std::printf("acknowledged %lu %lu %lu\n", next.facts, next.reports, next.lines);
}

TEST(Journal, ClosesForWritingWhenTheSystemRefusesAWrite) {
  scratch at;
  ::setenv("TROUPE_TEST_DIRECTORY", at.path().c_str(), 1);
  child process(child::of_test("FailingWrites.DISABLED_CloseTheJournal"));
  std::string output;
  progress acknowledged;
  while (auto line = process.line(steady_clock::now() + std::chrono::seconds(30))) {
    output += *line + "\n";
    std::sscanf(line->c_str(), "acknowledged %lu %lu %lu", &acknowledged.facts, &acknowledged.reports,
                &acknowledged.lines);
  }
  EXPECT_EQ(process.end(), 0) << output;
  EXPECT_GT(acknowledged.facts, 0u) << output;
  auto j = open_journal({.directory = at.path()});
  ASSERT_TRUE(j) << j.error().what;
  check_story(*(*j)->reads(), acknowledged);
}

} // namespace
} // namespace troupe::storage
