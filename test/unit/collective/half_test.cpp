#include "workers/half.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace troupe {
namespace {

// Returns the value of the bits by the definition of binary16.
double meaning_of(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == 31)
    return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * HUGE_VAL;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

TEST(F16, EveryValueIsReadExactlyAndWrittenBack) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const f16 x{std::uint16_t(bits)};
    const double expected = meaning_of(x.bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(to_float(x)));
      ASSERT_TRUE(std::isnan(to_float(to_f16(to_float(x)))));
    } else {
      ASSERT_EQ(double(to_float(x)), expected) << bits;
      ASSERT_EQ(to_f16(to_float(x)), x) << bits;
    }
  }
}

TEST(F16, WhatLiesBetweenTwoValuesGoesToTheNearerAndAMiddleToTheEvenOne) {
  for (std::uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = to_float(f16{bits}), high = to_float(f16{std::uint16_t(bits + 1)});
    const float middle = (low + high) / 2; // exact in float
    ASSERT_EQ(to_f16(std::nextafterf(middle, low)).bits, bits);
    ASSERT_EQ(to_f16(std::nextafterf(middle, high)).bits, bits + 1);
    ASSERT_EQ(to_f16(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(to_f16(-middle).bits, 0x8000 | (bits % 2 == 0 ? bits : bits + 1));
  }
  EXPECT_EQ(to_f16(65519.996f).bits, 0x7bff);
  EXPECT_EQ(to_f16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(to_f16(HUGE_VALF).bits, 0x7c00);
  EXPECT_EQ(to_f16(-1e30f).bits, 0xfc00);
  EXPECT_EQ(to_f16(1e-30f).bits, 0);
}

TEST(Bf16, RoundsToNearestEvenAndKeepsWhatIsNoNumber) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const bf16 x{std::uint16_t(bits)};
    if (std::isnan(to_float(x)))
      ASSERT_TRUE(std::isnan(to_float(to_bf16(to_float(x)))));
    else
      ASSERT_EQ(to_bf16(to_float(x)), x);
  }
  // a value in the middle becomes the even one
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f808000u)).bits, 0x3f80);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f818000u)).bits, 0x3f82);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f808001u)).bits, 0x3f81);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x7f7fffffu)).bits, 0x7f80); // the largest float becomes infinity
}

} // namespace
} // namespace troupe
