#pragma once
// Copies into and out of memory by which processors hand data to each other.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace troupe {

/// Does std::memcpy past the caches: for memory that another processor reads next and this one does not.
/// Whoever sees a later atomic store of this thread sees the copy.
void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes);

/// Does std::memcpy in the same time for every pair of addresses.
void copy_evenly(std::byte* to, const std::byte* from, std::size_t bytes);

/// Begins to take memory that this thread writes next away from the processor that read it last, and returns
/// at once.
void take_early(const std::byte* at, std::size_t bytes);

/// Whether what is written for other ranks goes past the caches. Where the ranks' cores share one it takes
/// twice the time, elsewhere half of it (an EPYC of the third generation), and a virtual machine is moved
/// from one to the other. So of the chunks that a group passes on some are timed, in pairs of one length, and
/// the better way has the votes of the last pairs. The same lengths on all ranks give the same pairs, so both
/// ends of a chunk are timed for the same way. What is computed does not depend on it.
class copy_choice {
public:
  using duration = std::chrono::steady_clock::duration;
  static constexpr std::size_t least_bytes = 4096; ///< below, always into the caches
  static constexpr int every = 64;                 ///< chunks between two pairs
  static constexpr int most_votes = 3;

  /// How to write this chunk. Called once for each, in their order.
  bool past_caches(std::uint32_t chunk, std::size_t bytes) {
    return bytes >= least_bytes && choose(chunk, bytes);
  }
  bool timed(std::uint32_t chunk) const { return pair_[0].is(chunk) || pair_[1].is(chunk); }
  /// The time that writing or reading a timed chunk took.
  void wrote(std::uint32_t chunk, duration took) { add(chunk, took); }
  void read(std::uint32_t chunk, duration took);

private:
  struct sample {
    std::uint32_t chunk = 0;
    bool open = false;
    duration took{};
    bool is(std::uint32_t x) const { return open && chunk == x; }
  };
  bool choose(std::uint32_t chunk, std::size_t bytes);
  void add(std::uint32_t chunk, duration took);

  std::array<sample, 2> pair_; ///< into the caches, past them
  std::size_t bytes_ = 0;      ///< bytes of both samples
  int since_ = every;          ///< chunks since the last pair was begun
  int votes_ = 0;              ///< above 0: past the caches
};

} // namespace troupe
