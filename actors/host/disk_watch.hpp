#pragma once
// Remembers whether a disk was full when a task failed: then the run is lost, not failed.

#include "model/time.hpp"

#include <cstdint>
#include <optional>

namespace troupe {

/// Not thread-safe. All times come from one clock that never jumps.
class disk_watch {
public:
  static constexpr std::uint64_t least_bytes = 4 << 20; ///< a disk with fewer free bytes is full
  static constexpr duration memory = 5s;                ///< a script may fail so long after its write did

  /// `free_bytes`: free space of one disk that tasks write to.
  void saw(std::uint64_t free_bytes, time_point now) {
    if (free_bytes < least_bytes)
      full_at_ = now;
  }
  bool full_lately(time_point now) const { return full_at_ && now - *full_at_ < memory; }

private:
  std::optional<time_point> full_at_;
};

} // namespace troupe
