#pragma once
// The two 16-bit floating-point types as they lie in memory. They are for storage: arithmetic is done in
// float.

#include <bit>
#include <cstdint>

namespace troupe {

/// IEEE 754 binary16: 1 sign, 5 exponent and 10 fraction bits.
struct f16 {
  std::uint16_t bits = 0;
  friend bool operator==(f16, f16) = default; ///< compares bits: NaN equals itself, -0 differs from 0
};

/// The upper half of a float: 1 sign, 8 exponent and 7 fraction bits.
struct bf16 {
  std::uint16_t bits = 0;
  friend bool operator==(bf16, bf16) = default; ///< compares bits
};

/// Exact. It has no branches, so that loops over it become vector code, and is right also where denormal
/// floats are flushed.
constexpr float to_float(f16 x) {
  const std::uint32_t magnitude = std::uint32_t(x.bits & 0x7fffu) << 13;
  const std::uint32_t exponent = magnitude & 0x0f800000u;
  const std::uint32_t normal = magnitude + 0x38000000u;                               // bias 127 - 15
  const std::uint32_t special = magnitude | 0x7f800000u;                              // infinity, NaN
  const float tiny = std::bit_cast<float>(magnitude + 0x38800000u) - 6.103515625e-5f; // 2^-14 + m, less 2^-14
  const std::uint32_t wide = exponent == 0x0f800000u ? special
                             : exponent == 0         ? std::bit_cast<std::uint32_t>(tiny)
                                                     : normal;
  return std::bit_cast<float>(wide | std::uint32_t(x.bits & 0x8000u) << 16);
}

constexpr float to_float(bf16 x) { return std::bit_cast<float>(std::uint32_t(x.bits) << 16); }

/// Rounds to nearest, ties to even. Values beyond the range become infinity; NaN stays NaN and becomes quiet.
constexpr f16 to_f16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  // Below 2^-14, adding 0.5 leaves the fraction in the last bits of the sum, rounded by the hardware.
  const float below = magnitude < 0x38800000u ? std::bit_cast<float>(magnitude) : 0.0f;
  const std::uint32_t tiny = std::bit_cast<std::uint32_t>(below + 0.5f) - 0x3f000000u;
  const std::uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const std::uint32_t half = magnitude >= 0x47800000u ? special : magnitude < 0x38800000u ? tiny : normal;
  return {std::uint16_t(half | sign)};
}

/// Does the same for bfloat16.
constexpr bf16 to_bf16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return {std::uint16_t(is_nan ? (bits >> 16 | 0x40u) : rounded)};
}

} // namespace troupe
