#include "searchers/compat/nprand.hpp"
#include "model/hex.hpp"

namespace troupe::searchers {

nprand::nprand(std::uint32_t seed) {
  state_[0] = seed;
  for (std::uint32_t i = 1; i < state_.size(); ++i)
    state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
}

void nprand::refill() {
  constexpr std::size_t n = 624, shift = 397;
  for (std::size_t i = 0; i < n; ++i) {
    auto y = (state_[i] & 0x80000000u) | (state_[(i + 1) % n] & 0x7fffffffu);
    state_[i] = state_[(i + shift) % n] ^ (y >> 1) ^ ((y & 1u) ? 0x9908b0dfu : 0u);
  }
  next_ = 0;
}

std::uint32_t nprand::bits32() {
  if (next_ >= state_.size())
    refill();
  auto y = state_[next_++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

double nprand::unit() {
  auto high = static_cast<double>(bits32() >> 5);
  auto low = static_cast<double>(bits32() >> 6);
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

double nprand::uniform(double low, double high) { return low + (high - low) * unit(); }

std::uint64_t nprand::below(std::uint64_t n) {
  const std::uint64_t limit = n - 1; // n == 0 stands for 2^64
  if (limit == 0)
    return 0;
  std::uint64_t mask = limit;
  for (int shift = 1; shift < 64; shift *= 2)
    mask |= mask >> shift;
  for (;;) {
    std::uint64_t drawn = bits32();
    if (limit > 0xffffffffu)
      drawn = (drawn << 32) | bits32();
    if ((drawn & mask) <= limit)
      return drawn & mask;
  }
}

std::string nprand::request_id() {
  std::array<std::uint8_t, 16> bytes{};
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    auto drawn = bits32();
    for (std::size_t j = 0; j < 4; ++j)
      bytes[i + j] = static_cast<std::uint8_t>(drawn >> (8 * j));
  }
  return uuid_of(bytes);
}

void nprand::persist(archive& ar) {
  ar(state_, next_);
  if (next_ > state_.size())
    ar.fail();
}

} // namespace troupe::searchers
