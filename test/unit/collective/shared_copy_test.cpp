// Tests copies for other processors: every address and length, and how the way of a copy is chosen.

#include "workers/collectives/shared_copy.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace troupe {
namespace {

TEST(SharedCopy, CopiesEveryLengthBetweenAllAddressesAndNothingElse) {
  for (const auto copy : {copy_past_caches, copy_evenly})
    for (const std::size_t bytes : {0, 1, 15, 63, 64, 65, 200, 2111, 4096})
      for (const std::size_t to : {0, 1, 16, 63})
        for (const std::size_t from : {0, 3, 32}) {
          std::vector<std::byte> source(bytes + 64), target(bytes + 192);
          for (std::size_t i = 0; i < source.size(); ++i)
            source[i] = std::byte(i * 7 + 1);
          auto expected = target;
          std::copy_n(source.begin() + std::ptrdiff_t(from), bytes, expected.begin() + std::ptrdiff_t(to));
          copy(target.data() + to, source.data() + from, bytes);
          EXPECT_EQ(target, expected) << bytes << " bytes from " << from << " to " << to;
        }
}

using namespace std::chrono_literals;

/// Passes on `chunks` chunks. A chunk that goes past the caches takes `past`, any other 10 us. Returns how
/// many chunks went past the caches.
int pass(copy_choice& choice, std::uint32_t& next, int chunks, std::size_t bytes,
         std::chrono::microseconds past) {
  int count = 0;
  for (int i = 0; i < chunks; ++i, ++next) {
    const bool way = choice.past_caches(next, bytes);
    count += way;
    if (!choice.timed(next))
      continue;
    choice.wrote(next, way ? past : 10us);
    choice.read(next, 1us);
  }
  return count;
}

TEST(CopyChoice, FollowsTheTimesOfBothWays) {
  copy_choice choice;
  std::uint32_t next = 0;
  EXPECT_EQ(pass(choice, next, 1, 65536, 5us), 0) << "the first of the pair";
  EXPECT_EQ(pass(choice, next, 1, 65536, 5us), 1) << "the second";
  EXPECT_GT(pass(choice, next, 1000, 65536, 5us), 980) << "all but the timed ones";
  EXPECT_LT(pass(choice, next, 1000, 65536, 20us), 400) << "until it has noticed";
  EXPECT_LT(pass(choice, next, 1000, 65536, 20us), 20);
  EXPECT_EQ(pass(choice, next, 1000, copy_choice::least_bytes - 1, 1us), 0) << "so short ones never";
}

TEST(CopyChoice, ComparesChunksOfOneLength) {
  copy_choice choice;
  std::uint32_t next = 0;
  EXPECT_EQ(pass(choice, next, 1, 65536, 1us), 0);
  EXPECT_EQ(pass(choice, next, 30, 4096, 1us), 0) << "another length: no pair yet";
  EXPECT_EQ(pass(choice, next, 1, 65536, 5us), 1);
  EXPECT_EQ(pass(choice, next, 10, 4096, 5us), 10) << "what was learned holds for all";
}

TEST(CopyChoice, GivesUpAPairWhoseLengthNeverComesAgain) {
  copy_choice choice;
  std::uint32_t next = 0;
  EXPECT_EQ(pass(choice, next, 1, 4096, 5us), 0);
  EXPECT_GT(pass(choice, next, 2 * copy_choice::every, 65536, 5us), 0);
}

TEST(CopyChoice, ALateRankIsNoReasonToChange) {
  copy_choice choice;
  std::uint32_t next = 0;
  pass(choice, next, 500, 65536, 5us);
  // In one pair of measured chunks the processor was taken away.
  pass(choice, next, copy_choice::every + 1, 65536, 5000us);
  EXPECT_GT(pass(choice, next, copy_choice::every, 65536, 5us), copy_choice::every - 3);
}

} // namespace
} // namespace troupe
