#include "actors/host/disk_watch.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(DiskWatch, RemembersAFullDiskForAWhile) {
  const time_point t0{1000s};
  struct {
    std::uint64_t free_bytes;
    duration at;
    bool full;
  } seen[] = {
    {1u << 30, 0s, false}, {4u << 20, 1s, false}, {(4u << 20) - 1, 2s, true},
    {1u << 30, 6s, true},  {1u << 30, 7s, false}, {0, 8s, true},
    {0, 12s, true},        {1u << 30, 16s, true}, {1u << 30, 17s, false},
  };
  disk_watch watch;
  EXPECT_FALSE(watch.full_lately(t0));
  for (const auto& s : seen) {
    watch.saw(s.free_bytes, t0 + s.at);
    EXPECT_EQ(watch.full_lately(t0 + s.at), s.full) << s.at.count();
  }
}

} // namespace
} // namespace troupe
