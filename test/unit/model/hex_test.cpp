#include "model/back_off.hpp"
#include "model/hex.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using namespace std::chrono_literals;

TEST(Hex, HasTwoDigitsAByte) {
  EXPECT_EQ(hex(""), "");
  EXPECT_EQ(hex(std::string_view("\x00\x09\xaf\xff", 4)), "0009afff");
}

TEST(Hex, AUuidKeepsItsBytesButForVersionAndVariant) {
  EXPECT_EQ(uuid_of({}), "00000000-0000-4000-8000-000000000000");
  std::array<std::uint8_t, 16> ones;
  ones.fill(0xff);
  EXPECT_EQ(uuid_of(ones), "ffffffff-ffff-4fff-bfff-ffffffffffff");
}

TEST(BackOff, DoublesUpToItsLongest) {
  const std::chrono::milliseconds waits[] = {0ms, 200ms, 400ms, 800ms, 1600ms, 2000ms, 2000ms};
  for (int n = 0; n < int(std::size(waits)); ++n)
    EXPECT_EQ(back_off(n, 200ms, 2000ms), waits[n]) << n;
  EXPECT_EQ(back_off(-1, 1s, 30s), 0s);
  EXPECT_EQ(back_off(1'000'000, 1s, 30s), 30s);
  EXPECT_EQ(back_off(1, 5s, 3s), 3s) << "the first is not longer than the longest";
}

} // namespace
} // namespace troupe
