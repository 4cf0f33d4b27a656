#pragma once
// The random stream of Determined: MT19937, seeded and read as by the legacy numpy.random.RandomState.

#include "searchers/archive.hpp"

#include <array>
#include <cstdint>
#include <string>

namespace troupe::searchers {

class nprand {
public:
  explicit nprand(std::uint32_t seed);
  std::uint32_t bits32();
  double unit();                           ///< [0, 1), 53 bits from two draws
  double uniform(double low, double high); ///< low + (high - low) * unit
  /// A number in [0, n), uniform by masked rejection; n == 1 draws nothing.
  std::uint64_t below(std::uint64_t n);
  std::string request_id(); ///< a version 4 UUID from 16 bytes
  void persist(archive& ar);

private:
  void refill();
  std::array<std::uint32_t, 624> state_{};
  std::uint32_t next_ = 624;
};

} // namespace troupe::searchers
