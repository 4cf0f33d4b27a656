// Tests which operations all ranks can do in memory that they have in common.

#include "workers/collectives/common_memory.hpp"

#include <gtest/gtest.h>
#include <set>
#include <unistd.h>

namespace troupe {
namespace {

operation reduction_of(std::vector<operation_buffer> buffers) {
  operation x{.what = operation_kind::all_reduce};
  x.first = buffers.front();
  x.more.assign(buffers.begin() + 1, buffers.end());
  return x;
}

TEST(CommonMemory, OnlyAReductionInPlaceOfNothingElseHasASpotAndEachItsOwn) {
  common_memory of(1, 3);
  std::vector<std::byte> one(4096), other(4096), elsewhere(4096);
  auto owner = std::shared_ptr<std::byte>(one.data(), [](std::byte*) {});
  const auto kept = std::shared_ptr<std::byte>(other.data(), [](std::byte*) {});
  const auto at = [](std::vector<std::byte>& x, std::size_t from, std::size_t count) {
    return operation_buffer{x.data() + from, x.data() + from, count};
  };
  EXPECT_EQ(of.spot_of(reduction_of({at(one, 0, 10)})), 0u) << "not known yet";
  of.add(owner, one.size());
  of.add(kept, other.size());

  std::set<std::uint32_t> spots;
  for (const auto& x :
       {reduction_of({at(one, 0, 10)}), reduction_of({at(one, 4, 10)}), reduction_of({at(one, 0, 11)}),
        reduction_of({at(other, 0, 10)}), reduction_of({at(one, 0, 10), at(other, 0, 10)}),
        reduction_of({at(other, 0, 10), at(one, 0, 10)}), reduction_of({at(one, 0, 1024)})})
    EXPECT_TRUE(spots.insert(of.spot_of(x)).second && of.spot_of(x) != 0) << "of " << x.first.count;
  EXPECT_EQ(of.spot_of(reduction_of({at(elsewhere, 7, 0), at(one, 0, 10)})),
            of.spot_of(reduction_of({at(one, 0, 10)})))
    << "no element, no place";

  auto moved = at(one, 0, 10);
  moved.out += 64;
  auto gathering = reduction_of({at(one, 0, 10)});
  gathering.what = operation_kind::all_gather;
  for (const auto& x :
       {reduction_of({at(elsewhere, 0, 10)}), reduction_of({at(one, 0, 10), at(elsewhere, 0, 10)}),
        reduction_of({at(one, 0, 1025)}), reduction_of({moved}), reduction_of({at(one, 0, 0)}), gathering})
    EXPECT_EQ(of.spot_of(x), 0u);
  owner.reset();
  EXPECT_EQ(of.spot_of(reduction_of({at(one, 0, 10)})), 0u) << "its owners are gone";
}

TEST(CommonMemory, EachRankReachesThePartsOfAll) {
  const std::string path = "/dev/shm/troupe-test-common-" + std::to_string(getpid());
  common_memory ranks[] = {{0, 3}, {1, 3}, {2, 3}};
  std::vector<std::shared_ptr<std::byte>> mine;
  EXPECT_EQ(ranks[1].map(path, 5000, false).error().code, errc::io) << "nobody has made it";
  for (int r = 0; r < 3; ++r) {
    auto mapped = ranks[r].map(path, 5000, r == 0);
    ASSERT_TRUE(mapped) << mapped.error().what;
    ranks[r].add(*mapped, 5000);
    mine.push_back(*mapped);
    mine.back().get()[4999] = std::byte(r + 1);
  }
  unlink(path.c_str());
  for (int r = 0; r < 3; ++r) {
    const auto parts = ranks[r].parts_of(mine[std::size_t(r)].get() + 4999);
    for (int other = 0; other < 3; ++other)
      EXPECT_EQ(parts.first[std::size_t(other) * parts.stride], std::byte(other + 1))
        << "rank " << r << " of rank " << other;
  }
}

} // namespace
} // namespace troupe
