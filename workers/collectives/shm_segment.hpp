#pragma once
// The shared memory of a group: which ranks are there, what each has published, and which are gone.

#include "model/result.hpp"
#include "workers/collectives/operation_mark.hpp"
#include "workers/collectives/shm.hpp"

#include <atomic>
#include <pthread.h>

namespace troupe {

/// Every rank of a group maps it. All waits are bounded: they end when a rank is gone or the group is broken.
class shm_segment {
public:
  static constexpr std::uint32_t ahead = 3; ///< chunks that a rank writes before it waits for others
  static constexpr std::uint32_t slots = 2 * ahead + 2; ///< all ranks have read the slot that is written next

  static constexpr std::size_t taken_early =
    2048; ///< bytes of the next slot that are taken early: more would wait for each other

  static result<std::unique_ptr<shm_segment>> open(const shm_group& group);
  ~shm_segment();
  shm_segment(const shm_segment&) = delete;

  /// To be called before and after the rank takes part, on one thread that lives as long: the kernel notes
  /// when that thread dies.
  void enter();
  void leave();
  result<void> claim();        ///< takes this rank's place, once
  result<void> wait_for_all(); ///< waits until all ranks have entered
  const std::string& path() const { return path_; }
  void beat(); ///< shows that this process runs; to be called at least every second

  std::byte* slot(int rank, std::uint32_t chunk) const {
    return rings_ + (std::size_t(rank) * slots + chunk % slots) * group_.chunk_bytes;
  }
  operation_mark& mark(int rank, std::uint32_t number) const {
    return places_[rank].marks[number % 2];
  } ///< the slot of the operation with this number
  /// Where the rank's data lies in memory that all ranks reach; 0: elsewhere.
  std::uint32_t& spot(int rank, std::uint32_t number) const { return places_[rank].spots[number % 2]; }

  /// Allows the other ranks to read this rank's slots and marks of all chunks before `upto`.
  void publish(std::uint32_t upto) {
    place& mine = places_[group_.rank];
    mine.published.store(upto); // sequentially consistent, as is the waiters' store: one side sees the other
    if (mine.waiters.load() != 0)
      wake_waiters();
  }
  /// Waits until `rank` has published `upto` chunks.
  result<void> wait_for(int rank, std::uint32_t upto) {
    const auto& published = places_[rank].published;
    for (int i = 0; i < spins_; ++i) {
      if (reached(published.load(std::memory_order_acquire), upto))
        return {};
      relax();
    }
    return wait_long_for(rank, upto);
  }

  /// From now on every rank's waits fail with the first text given. Any thread may call it.
  void break_group(errc code, const std::string& why);
  result<void> unbroken() const { return *broken_ == 0 ? result<void>{} : why_broken(); }

private:
  struct header;
  struct alignas(64) place {
    // They share a cache line, so that a rank which sees a chunk published has the mark as well. The marks
    // are used in turn: when an operation begins, all ranks have ended the last but one.
    alignas(64) std::atomic<std::uint32_t> published{0}; // chunks; wraps around
    std::atomic<std::uint32_t> waiters{0};
    operation_mark marks[2];
    std::uint32_t spots[2] = {0, 0};
    alignas(64) std::atomic<std::uint32_t> state{0}; // holds a rank_state
    std::atomic<std::uint32_t> beats{0};
    pthread_mutex_t alive; // held while the rank is present
  };
  static_assert(sizeof(operation_mark[2]) + 4 * sizeof(std::uint32_t) <= 64);

  shm_segment() = default;
  void locate();
  static bool reached(std::uint32_t published, std::uint32_t upto) {
    return std::int32_t(published - upto) >= 0;
  }
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  result<void> why_broken() const;
  void wake_waiters();
  result<void> wait_long_for(int rank, std::uint32_t upto);
  result<void> check(int rank, int& silent_checks, std::uint32_t& last_beat);

  shm_group group_;
  header* header_ = nullptr;
  const std::atomic<std::uint32_t>* broken_ = nullptr;
  place* places_ = nullptr;    // by rank
  std::byte* rings_ = nullptr; // the slots, by rank
  std::size_t bytes_ = 0;
  std::string path_;
  int spins_ = 0;
};

} // namespace troupe
