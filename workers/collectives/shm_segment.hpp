#pragma once
// The shared memory of a group: who is there, who has published what, and who is gone.

#include "model/result.hpp"
#include "workers/collectives/operation_mark.hpp"
#include "workers/collectives/shm.hpp"

#include <atomic>
#include <pthread.h>

namespace troupe {

/// Mapped by every rank of a group. All waits are bounded: they end when a rank is gone or the group is
/// broken.
class shm_segment {
public:
  static constexpr std::uint32_t ahead = 3; ///< chunks that a rank writes before it waits for the others'
  static constexpr std::uint32_t slots = 2 * ahead + 2; ///< so that the one written next was read by all

  static constexpr std::size_t taken_early = 2048; ///< bytes of the next slot: more of them would wait for each other

  static result<std::unique_ptr<shm_segment>> open(const shm_group& group);
  ~shm_segment();
  shm_segment(const shm_segment&) = delete;

  /// Before and after the rank takes part, on one thread that lives as long: the kernel notes when it dies.
  void enter();
  void leave();
  result<void> claim();        ///< takes this rank's place, once
  result<void> wait_for_all(); ///< until every rank has entered
  void beat();                 ///< this process runs; at least every second

  std::byte* slot(int rank, std::uint32_t chunk) const;
  operation_mark& mark(int rank, std::uint32_t number) const; ///< of the operation of this number

  /// This rank's slots and marks of all chunks before `upto` may be read.
  void publish(std::uint32_t upto);
  /// Waits until `rank` has published `upto` chunks.
  result<void> wait_for(int rank, std::uint32_t upto);

  /// From now on every rank's waits fail with the first text given. Any thread.
  void break_group(errc code, const std::string& why);
  result<void> unbroken() const;

private:
  struct header;
  struct place;
  shm_segment() = default;
  place& of(int rank) const;
  std::byte* ring(int rank) const;
  result<void> check(int rank, int& silent_checks, std::uint32_t& last_beat);

  shm_group group_;
  header* header_ = nullptr;
  std::size_t bytes_ = 0;
  std::string path_;
  int spins_ = 0;
};

} // namespace troupe
