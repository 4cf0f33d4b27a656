#pragma once
// Copies into and out of memory through which processors hand data to each other.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace troupe {

/// Copies as std::memcpy does, but past the caches: for memory that another processor reads next. A thread
/// that sees a later atomic store of this thread sees the copy.
void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes);

/// Copies as std::memcpy does, in the same time for every pair of addresses.
void copy_evenly(std::byte* to, const std::byte* from, std::size_t bytes);

/// Begins to take memory that this thread writes next away from the processor that read it last, and returns
/// at once.
void take_early(const std::byte* at, std::size_t bytes);

/// Decides whether data for other ranks is written past the caches. Where the ranks' cores share a cache that
/// takes twice the time, elsewhere half of it (on an EPYC of the third generation), and a virtual machine may
/// move from one case to the other. So some chunks are timed, in pairs of one length, and the last pairs vote
/// for the better way. Equal lengths on all ranks give the same pairs, so both ends of a chunk are timed for
/// the same way. The result of an operation does not depend on the choice.
class copy_choice {
public:
  using duration = std::chrono::steady_clock::duration;
  static constexpr std::size_t least_bytes = 4096; ///< shorter chunks always go into the caches
  static constexpr int every = 64;                 ///< chunks between two pairs
  static constexpr int most_votes = 3;

  /// How to write this chunk. To be called once for each chunk, in their order.
  bool past_caches(std::uint32_t chunk, std::size_t bytes) {
    return bytes >= least_bytes && choose(chunk, bytes);
  }
  bool timed(std::uint32_t chunk) const { return pair_[0].is(chunk) || pair_[1].is(chunk); }
  /// Notes the time that writing a timed chunk took.
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

  std::array<sample, 2> pair_; ///< the time into the caches, and past them
  std::size_t bytes_ = 0;      ///< bytes of both samples
  int since_ = every;          ///< chunks since the last pair was begun
  int votes_ = 0;              ///< above 0: past the caches
};

} // namespace troupe
