// A real small file system, filled by another process at random moments. RocksDB must never meet the full
// disk.

#include "child.hpp"
#include "workload.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

namespace troupe::storage {
namespace {

constexpr int fillings = 20;
constexpr std::uint64_t own_bytes = 1'000'000; ///< of reports and facts in one round; all fit thrice, as a
                                               ///< compaction keeps what it reads beside what it writes

bool write_file(const char* name, const std::string& text) {
  int fd = ::open(name, O_WRONLY);
  bool done = fd >= 0 && ::write(fd, text.data(), text.size()) == ssize_t(text.size());
  ::close(fd);
  return done;
}

/// A mount namespace of this process's own with a file system of 96 MB at `at`; otherwise the reason.
std::string mount_small(const std::string& kind, const std::string& at) {
  const auto uid = ::getuid(), gid = ::getgid();
  if (::unshare(uid == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0)
    return std::string("no mount namespace: ") + std::strerror(errno);
  if (uid != 0 && (!write_file("/proc/self/setgroups", "deny") ||
                   !write_file("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1") ||
                   !write_file("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1")))
    return "no identity in the user namespace";
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return std::string("the namespace cannot be made private: ") + std::strerror(errno);
  auto disk = at + "/disk";
  ::mkdir(disk.c_str(), 0755);
  if (kind == "tmpfs")
    return ::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=96m") == 0
             ? ""
             : std::string("tmpfs: ") + std::strerror(errno);
  auto make = "truncate -s 96M " + at + "/image && mkfs.ext4 -q -m 0 " + at + "/image && mount -o loop " +
              at + "/image " + disk + " >" + at + "/why 2>&1";
  return std::system(make.c_str()) == 0 ? "" : "a loop mount is refused";
}

/// What lies on the disk, for the message of a failure.
std::string listing(const std::string& disk) {
  std::string all;
  std::error_code fault;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(disk, fault)) {
    struct stat of {};
    if (entry.is_regular_file(fault) && ::stat(entry.path().c_str(), &of) == 0)
      all += "\n  " + std::to_string(of.st_blocks / 2) + " KiB " + entry.path().string().substr(disk.size());
  }
  return all;
}

std::uint64_t free_bytes(const std::string& at) {
  struct statvfs now {};
  ::statvfs(at.c_str(), &now);
  return std::uint64_t{now.f_bavail} * now.f_frsize;
}

/// Frees the space when one commit does not answer for 5 s: it was caught while RocksDB began a new log, and
/// waits.
class watchdog {
public:
  explicit watchdog(std::string fill) : fill_(std::move(fill)), thread_([this] { watch(); }) {}
  ~watchdog() {
    {
      std::lock_guard lock(guard_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void alive() {
    std::lock_guard lock(guard_);
    ++beats_;
  }
  int bites() const { return bites_; }

private:
  void watch() {
    std::unique_lock lock(guard_);
    while (!over_) {
      auto seen = beats_;
      if (!changed_.wait_for(lock, std::chrono::seconds(5), [&] { return over_; }) && seen == beats_ &&
          ::truncate(fill_.c_str(), 0) == 0)
        ++bites_;
    }
  }
  std::string fill_;
  std::mutex guard_;
  std::condition_variable changed_;
  std::uint64_t beats_ = 0;
  bool over_ = false;
  std::atomic<int> bites_ = 0;
  std::thread thread_;
};

/// Another process takes all the space at once or in small steps.
std::vector<std::string> filler(const std::string& disk, bool at_once) {
  return {"dd",          "if=/dev/zero", "of=" + disk + "/fill", at_once ? "bs=4M" : "bs=16k",
          "status=none", "oflag=append", "conv=notrunc"};
}

TEST(SmallDisk, DISABLED_IsFilledTwentyTimes) {
  const char* kind = std::getenv("TROUPE_TEST_FILE_SYSTEM");
  const char* at = std::getenv("TROUPE_TEST_DIRECTORY");
  if (!kind || !at)
    GTEST_SKIP() << "only as the child of another test";
  if (auto why = mount_small(kind, at); !why.empty()) {
    std::printf("skip %s\n", why.c_str());
    return;
  }
  const std::string disk = std::string(at) + "/disk";
  journal_options options{.directory = disk + "/data"};
  auto open = [&] {
    auto j = open_journal(options);
    EXPECT_TRUE(j) << j.error().what << listing(disk);
    return j ? std::move(*j) : nullptr;
  };
  auto j = open();
  ASSERT_TRUE(j && begin_story(*j));

  std::random_device seed;
  const auto seeded = seed();
  SCOPED_TRACE("seed " + std::to_string(seeded));
  std::mt19937_64 random(seeded);
  progress next;
  int refused = 0, parked = 0;
  watchdog dog(disk + "/fill");
  for (int round = 0; round < fillings && !testing::Test::HasFailure(); ++round) {
    std::optional<child> fill;
    const int start = int(random() % 20);
    const bool at_once = random() % 2;
    int refused_now = 0;
    const auto before = next;
    const auto patience = steady_clock::now() + std::chrono::seconds(60);
    for (int tries = 0; refused_now < 20 && (tries <= start || steady_clock::now() < patience); ++tries) {
      // Again where it had ended and the journal's own files gave space back.
      if (tries == start || (tries > start && !refused_now && fill->ended()))
        fill.emplace(filler(disk, at_once));
      const auto waited = dog.bites();
      const bool little =
        (next.reports - before.reports) * 3000 + (next.facts - before.facts) * 300 > own_bytes;
      if (little) // the rest is the filler's
        ::poll(nullptr, 0, 1);
      auto done =
        write_group(*j, next, little ? 1 : int(random() % 20), little ? 0 : int(random() % 20), 3000);
      dog.alive();
      if (waited != dog.bites())
        break;
      if (done)
        continue;
      ASSERT_EQ(done.error().code, errc::no_space) << done.error().what;
      ASSERT_NE(done.error().what.find("free some space"), std::string::npos) << done.error().what;
      ++refused_now;
    }
    EXPECT_TRUE(refused_now == 20 || dog.bites())
      << "the disk was never full in round " << round << ": " << free_bytes(disk);
    refused += refused_now;
    ASSERT_TRUE(fill && fill->started());
    const bool reopen = round % 3 == 1;
    if (reopen) { // closes with whoever waits at the gate, and opens on a full disk
      fill->end();
      j.reset();
      auto again = open_journal(options);
      if (!again) {
        EXPECT_EQ(again.error().code, errc::no_space) << again.error().what;
        ++parked;
      } else {
        j = std::move(*again);
        check_story(*j->reads(), next);
        auto full = j->append({"experiment/2", next.facts, {numbered_fact(next.facts)}});
        EXPECT_TRUE(full || full.error().code == errc::no_space) << full.error().what;
      }
    } else {
      fill->end();
    }
    ASSERT_EQ(::unlink((disk + "/fill").c_str()), 0);
    if (!j)
      j = open();
    ASSERT_TRUE(j);
    auto deadline = steady_clock::now() + std::chrono::seconds(20);
    result<void> done;
    do { // the group that was refused goes again
      done = write_group(*j, next, 3, 3, 3000);
      dog.alive();
    } while (!done && steady_clock::now() < deadline);
    ASSERT_TRUE(done) << "does not go on after round " << round << ": " << done.error().what << listing(disk);
    next =
      check_story(*j->reads(), next); // also what was queued before a later call of its group was refused
  }
  j.reset();
  j = open();
  ASSERT_TRUE(j);
  check_story(*j->reads(), next);
  EXPECT_LE(dog.bites(), 2) << "commits wait for space instead of refusing";
  std::printf("done %d refused, %d refused to open, %d waited, %lu facts, %lu reports, %lu KiB free\n",
              refused, parked, dog.bites(), next.facts, next.reports, free_bytes(disk) / 1024);
}

class FullDisk : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(, FullDisk, testing::Values("tmpfs", "ext4"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(FullDisk, LosesNothingAndGoesOnWhenSpaceIsBack) {
  scratch at;
  ::setenv("TROUPE_TEST_DIRECTORY", at.path().c_str(), 1);
  ::setenv("TROUPE_TEST_FILE_SYSTEM", GetParam(), 1);
  child process(child::of_test("SmallDisk.DISABLED_IsFilledTwentyTimes"));
  ASSERT_TRUE(process.started());
  std::string output, skipped;
  bool done = false;
  while (auto line = process.line(steady_clock::now() + std::chrono::seconds(120))) {
    if (line->starts_with("skip "))
      skipped = line->substr(5);
    done = done || line->starts_with("done ");
    if (line->starts_with("done "))
      std::printf("%s\n", line->c_str());
    output += *line + "\n";
  }
  int status = process.end(done || !skipped.empty() ? 0 : SIGKILL);
  if (!skipped.empty())
    GTEST_SKIP() << "no small file system here: " << skipped;
  EXPECT_TRUE(done && WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status << "\n" << output;
}

} // namespace
} // namespace troupe::storage
