// Tests the slots of a host: GPUs through a libnvidia-ml.so.1 that the tests build and that is loaded as the
// real one, or processors where there is none.

#include "workers/slot_watch.hpp"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <unistd.h>

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;

TEST(NvidiaDevices, AreTheSlotsOfAHostThatHasThem) {
  std::string why;
  auto found = find_nvidia_devices(std::nullopt, &why);
  ASSERT_TRUE(found) << why;
  const auto looks = found->look();
  ASSERT_EQ(looks.size(), 2u);
  EXPECT_EQ(found->count(), 2u);
  EXPECT_EQ(looks[1].kind, "cuda");
  EXPECT_EQ(looks[1].name, "Fake GPU B");
  EXPECT_EQ(looks[1].uuid, "GPU-1-fake");
  EXPECT_EQ(looks[1].memory_bytes, 16ull << 30);
  EXPECT_EQ(looks[1].memory_used_bytes, 2ull << 30);
  EXPECT_EQ(looks[1].utilization_percent, 50);
  EXPECT_EQ(looks[1].temperature_celsius, 61);
  EXPECT_EQ(looks[0].errors, 7u);
  EXPECT_FALSE(looks[1].errors) << "a device that does not count them";
  EXPECT_EQ(looks[1].fault, "");
}

TEST(NvidiaDevices, AreThoseThatCudaWouldSee) {
  struct {
    const char* visible;
    std::string uuids;
  } const cases[] = {
    {"1", "GPU-1-fake"},
    {"1,0", "GPU-1-fake GPU-0-fake"},
    {"GPU-1", "GPU-1-fake"},
    {"0,7,1", "GPU-0-fake"},
    {"", ""},
    {"-1", ""},
    {"9", ""},
  };
  for (const auto& x : cases) {
    std::string uuids;
    if (auto found = find_nvidia_devices(x.visible))
      for (const auto& one : found->look())
        uuids += (uuids.empty() ? "" : " ") + one.uuid;
    EXPECT_EQ(uuids, x.uuids) << x.visible;
  }
}

TEST(NvidiaDevices, OneThatIsLostSaysSoAndTheOthersGoOn) {
  auto found = find_nvidia_devices(std::nullopt);
  ASSERT_TRUE(found);
  setenv("FAKE_NVML_LOST", "1", 1);
  const auto looks = found->look();
  unsetenv("FAKE_NVML_LOST");
  ASSERT_EQ(looks.size(), 2u);
  EXPECT_EQ(looks[0].fault, "");
  EXPECT_EQ(looks[0].utilization_percent, 40);
  EXPECT_EQ(looks[1].fault, "GPU is lost");
  EXPECT_FALSE(looks[1].memory_bytes);
  EXPECT_FALSE(looks[1].utilization_percent);
}

TEST(NvidiaDevices, AreNoneWhereTheDriverDoesNotStart) {
  setenv("FAKE_NVML_NO_DRIVER", "1", 1);
  std::string why;
  EXPECT_FALSE(find_nvidia_devices(std::nullopt, &why));
  unsetenv("FAKE_NVML_NO_DRIVER");
  EXPECT_EQ(why, "NVML does not start: Driver Not Loaded");
}

class FakeProc : public testing::Test {
protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void process(int pid, int parent, int user, int system, int waited = 0) {
    std::filesystem::create_directories(folder_ / std::to_string(pid));
    std::ofstream(folder_ / std::to_string(pid) / "stat")
      << pid << " (a (b) c) S " << parent << " 1 1 0 -1 0 1 2 3 4 " << user << " " << system << " " << waited
      << " 0 20 0 1 0 77 5000 7\n";
  }
  std::filesystem::path folder_ =
    std::filesystem::temp_directory_path() / ("fake-proc-" + std::to_string(getpid()));
};

/// The kernel answers ESRCH where a process ends between the opening and the reading. The folders here answer
/// with EISDIR instead.
TEST_F(FakeProc, AProcessThatEndsWhileItIsLookedAtIsNone) {
  process(10, 1, 5, 6);
  std::filesystem::create_directories(folder_ / "10" / "io");
  std::filesystem::create_directories(folder_ / "11" / "stat");
  const auto sums = use_of_trees({10, 11}, folder_.string());
  ASSERT_EQ(sums.count(10), 1u);
  EXPECT_EQ(sums.at(10).ticks, 11u);
}

TEST_F(FakeProc, TheTimeOfATaskIsThatOfItsWholeTree) {
  process(1, 0, 1000, 1000);
  process(10, 1, 5, 6);
  process(11, 10, 100, 20, 7);
  process(12, 11, 1, 0);
  process(20, 1, 30, 0);
  std::filesystem::create_directories(folder_ / "self"); // not a number, so not a process
  std::ofstream(folder_ / "uptime") << "1 2";
  std::ofstream(folder_ / "10" / "io") << "rchar: 9\nread_bytes: 4096\nwrite_bytes: 10\n";
  std::ofstream(folder_ / "12" / "io") << "read_bytes: 1\nwrite_bytes: 20\n";
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const auto sums = use_of_trees({10, 20, 99}, folder_.string());
  EXPECT_EQ(sums, (std::map<std::int64_t, process_use>{
                    {10, {139, 3 * 7 * page, 4097, 30}}, {20, {30, 7 * page, 0, 0}}, {99, {}}}));
}

TEST(SlotWatch, ShowsHowBusyTheProcessesInASlotAre) {
  slot_watch watch(nullptr, 2, 100ms);
  watch.hold({{getpid(), {1}}});
  double most = 0;
  volatile double sink = 1;
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (most < 5 && std::chrono::steady_clock::now() < until) {
    for (int i = 0; i < 1'000'000; ++i)
      sink = sink * 1.0000001;
    const auto seen = watch.newest();
    if (seen.size() == 2 && seen[1].utilization_percent)
      most = std::max(most, *seen[1].utilization_percent);
    if (seen.size() == 2) {
      ASSERT_EQ(seen[0].utilization_percent, 0) << "a slot without a task";
      ASSERT_EQ(seen[0].kind, "cpu");
      ASSERT_NE(seen[0].name, "");
    }
  }
  EXPECT_GE(most, 5);
  const auto tasks = watch.newest_of_tasks();
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].pid, getpid());
  EXPECT_GT(tasks[0].memory_bytes.value_or(0), 1 << 20);
  EXPECT_TRUE(tasks[0].cpu_percent && tasks[0].write_bytes_per_s);
}

} // namespace
} // namespace troupe::workers
