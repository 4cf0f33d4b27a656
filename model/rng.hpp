#pragma once
// Counter-based random numbers: a value depends only on its coordinates, never on how many were drawn before.
// Mixing function: SplitMix64's finalizer (Steele, Lea, Flood, OOPSLA 2014), chained over the coordinates.

#include <cstdint>

namespace troupe {

constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// 64 uniform bits at the coordinates (seed, stream, ordinal, dimension, attempt).
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t ordinal,
                                    std::uint64_t dimension = 0, std::uint64_t attempt = 0) {
  auto x = mix64(seed);
  x = mix64(x ^ stream);
  x = mix64(x ^ ordinal);
  x = mix64(x ^ dimension);
  return mix64(x ^ attempt);
}

/// The upper 53 bits as a double in [0, 1).
constexpr double unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

/// A small sequential generator over the same mixing, for simulations; satisfies UniformRandomBitGenerator.
class rng {
public:
  using result_type = std::uint64_t;
  explicit constexpr rng(std::uint64_t seed) : state_(mix64(seed)) {}
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }
  constexpr result_type operator()() { return mix64(state_++); }
  /// A uniform number in [0, n), for n > 0. The bias is below n / 2^64.
  constexpr std::uint64_t below(std::uint64_t n) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>((*this)()) * n) >> 64);
  }
  constexpr double unit() { return troupe::unit((*this)()); }
  constexpr bool chance(double p) { return unit() < p; }

private:
  std::uint64_t state_;
};

} // namespace troupe
