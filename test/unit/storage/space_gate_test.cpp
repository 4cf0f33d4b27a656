#include "storage/disk/space_gate.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace troupe::storage {
namespace {

constexpr std::uint64_t kib = 1024, mib = 1024 * kib, gib = 1024 * mib;

TEST(SpaceLimits, ScaleWithTheFileSystem) {
  struct {
    const char* why;
    std::uint64_t total, wanted, reserve, ballast;
  } cases[] = {
    {"a large disk keeps what was asked for", 100 * gib, 64 * mib, 64 * mib, 16 * mib},
    {"a small one keeps 5 %", 40 * mib, 64 * mib, 2 * mib, 2 * mib},
    {"a setting can make the reserve smaller", 100 * gib, 8 * mib, 8 * mib, 16 * mib},
    {"a file system that cannot be asked keeps nothing", 0, 64 * mib, 0, 0},
  };
  for (const auto& c : cases) {
    auto limits = limits_for(c.total, c.wanted);
    EXPECT_EQ(limits.reserve, c.reserve) << c.why;
    EXPECT_EQ(limits.ballast, c.ballast) << c.why;
    EXPECT_LE(limits.floor, limits.background) << c.why;
    EXPECT_LE(limits.background, limits.reserve) << c.why;
    EXPECT_GE(limits.chunk, 64 * kib) << c.why;
    EXPECT_GE(limits.write_buffer, 512 * kib) << c.why;
  }
}

TEST(SpaceLimits, RefuseTheJournalFirstThenTablesThenTheLog) {
  const auto limits = limits_for(100 * gib, 64 * mib); // the limits are 64, 32 and 8 MiB
  struct {
    std::uint64_t free, bytes;
    bool journal, tables, log;
  } cases[] = {
    {65 * mib, 1 * mib, true, true, true},
    {65 * mib, 2 * mib, false, true, true},
    {33 * mib, 1 * mib, false, true, true},
    {33 * mib, 2 * mib, false, false, true},
    {9 * mib, 1 * mib, false, false, true},
    {9 * mib, 2 * mib, false, false, false},
    {0, 0, false, false, false},
    {64 * mib, 0, true, true, true},
    {~0ull, ~0ull, false, false, false},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(may_write(limits, writer::journal, c.free, c.bytes), c.journal) << c.free << " " << c.bytes;
    EXPECT_EQ(may_write(limits, writer::tables, c.free, c.bytes), c.tables) << c.free << " " << c.bytes;
    EXPECT_EQ(may_write(limits, writer::log, c.free, c.bytes), c.log) << c.free << " " << c.bytes;
  }
}

struct fake_disk {
  std::atomic<std::uint64_t> free{100 * mib};
  std::atomic<bool> claims{true};
  std::vector<std::string> told;
  std::mutex guard;
  space_gate gate{limits_for(10 * gib, 64 * mib),
                  [this] {
                    return free_space{free, 10 * gib};
                  },
                  [this](std::string_view text) {
                    std::lock_guard lock(guard);
                    told.emplace_back(text);
                  }};
  bool pass() {
    return gate.pass(writer::tables, mib, [this] { return claims.load(); });
  }
  /// Calls `pass` in another thread, and `then` once that thread waits at the gate. Returns what `pass`
  /// returned.
  template <class Then>
  bool parked_then(Then then) {
    bool passed = false;
    std::thread waiting([&] { passed = pass(); });
    while (!gate.parked())
      std::this_thread::yield();
    then();
    waiting.join();
    return passed;
  }
};

TEST(SpaceGate, LetsThroughWhileThereIsRoom) {
  fake_disk disk;
  EXPECT_TRUE(disk.pass());
  EXPECT_FALSE(disk.gate.parked());
  EXPECT_TRUE(disk.told.empty());
}

TEST(SpaceGate, HoldsAWriterUntilSpaceIsBackAndSaysSoOnce) {
  fake_disk disk;
  disk.free = mib;
  EXPECT_TRUE(disk.parked_then([&] { disk.free = 100 * mib; }));
  EXPECT_FALSE(disk.gate.parked());
  EXPECT_EQ(disk.told.size(), 2u);
}

TEST(SpaceGate, HoldsAWriterWhoseBlocksCannotBeClaimedHoweverMuchIsFree) {
  fake_disk disk;
  disk.claims = false;
  EXPECT_TRUE(disk.parked_then([&] { disk.claims = true; }));
}

TEST(SpaceGate, SendsEveryoneAwayWhenItCloses) {
  fake_disk disk;
  disk.free = 0;
  EXPECT_FALSE(disk.parked_then([&] { disk.gate.close(); }));
  EXPECT_FALSE(disk.pass());
}

TEST(SpaceGate, LetsOnlyTheClaimDecideWhileItIsRelaxed) {
  fake_disk disk;
  disk.free = 0;
  disk.gate.relax(true);
  EXPECT_TRUE(disk.pass());
  disk.gate.relax(false);
  EXPECT_FALSE(disk.gate.room_for(writer::log, 1));
}

} // namespace
} // namespace troupe::storage
