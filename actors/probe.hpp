#pragma once
// What one actor counts of its own mail: how many messages there were, how long they waited and ran, and the
// last 32 of them. Only the actor writes; any thread reads. The way of a message takes no lock, and an actor
// allocates once in its life (for the texts). Times are in ticks of the processor's clock.
//
// Every message is counted. Reading the clock costs as much as everything else together, so that an actor
// that takes many messages times only every eighth. A calm actor takes at most 16 messages in about 16 ms; it
// times each message and keeps a short text of it.

#include "model/ids.hpp"
#include "model/time.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace troupe {

#if defined(__x86_64__)
/// Whether the time stamp counter runs evenly, in all states of the processor and on all its cores.
inline const bool even_time_stamps = [] {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x8000'0007, &a, &b, &c, &d) && (d & 1u << 8);
}();
#endif

inline std::uint64_t ticks_now() noexcept {
#if defined(__x86_64__)
  if (even_time_stamps) [[likely]]
    return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t t;
  asm volatile("mrs %0, cntvct_el0" : "=r"(t));
  return t;
#endif
#if !defined(__aarch64__)
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

/// About 16 ms: a power of two in ticks, or computed from the frequency that the clock reports.
#if defined(__aarch64__)
inline const std::uint64_t calm_window = [] {
  std::uint64_t per_second;
  asm("mrs %0, cntfrq_el0" : "=r"(per_second));
  return per_second / 64;
}();
#else
inline constexpr std::uint64_t calm_window = std::uint64_t{1} << 25;
#endif

/// Converts ticks to times. It measures the length of a tick from its construction on, so that it is more
/// exact the older it is. Thread-safe.
class tick_scale {
public:
  tick_scale();
  double microseconds(std::uint64_t ticks) const; ///< length of a difference in microseconds
  std::uint64_t ticks(std::chrono::nanoseconds of) const;
  time_point wall(std::uint64_t at) const; ///< wall time of a reading of ticks_now()

  /// Both clocks, read once for the many times of one answer.
  struct moment {
    time_point wall;
    std::uint64_t ticks = 0;
    double ns_per_tick = 1;
    double microseconds(std::uint64_t of) const { return static_cast<double>(of) * ns_per_tick / 1000; }
    time_point wall_at(std::uint64_t at) const;
  };
  moment now() const;

private:
  double nanoseconds_per_tick() const;
  std::uint64_t first_;
  std::chrono::steady_clock::time_point first_steady_;
};

inline constexpr std::uint64_t not_timed = std::numeric_limits<std::uint64_t>::max();

/// Counts times in buckets of powers of two. One thread writes.
class tick_histogram {
public:
  static constexpr int size = 40, finest = 5; ///< the first bucket ends at 2^5 ticks, the last has no end
  void add(std::uint64_t ticks, std::uint64_t weight = 1) noexcept {
    auto& count = counts_[static_cast<std::size_t>(std::min<int>(std::bit_width(ticks >> finest), size - 1))];
    count.store(count.load(std::memory_order_relaxed) + weight, std::memory_order_relaxed);
  }
  std::array<std::uint64_t, size> read() const;
  /// Upper end of the bucket, not included.
  static std::uint64_t upper(int bucket) { return std::uint64_t{1} << (bucket + finest); }

private:
  std::array<std::atomic<std::uint64_t>, size> counts_{};
};

/// The upper end of the bucket that holds the quantile `q` (0..1) of what `counts` counts; 0 if nothing was
/// counted.
std::uint64_t quantile(const std::array<std::uint64_t, tick_histogram::size>& counts, double q);

/// Which experiment, trial or other task a message is about: a kind and a number. 0: none.
using correlation = std::uint64_t;
enum class correlation_kind : std::uint8_t { none = 0, experiment, trial, task };
constexpr correlation correlate(correlation_kind kind, std::uint64_t id) {
  return static_cast<std::uint64_t>(kind) << 56 | (id & 0x00ff'ffff'ffff'ffff);
}
correlation correlation_of(task_id id);  ///< the last 56 bits of a UUID stand for it; 0 for an empty id
std::string to_string_of(correlation x); ///< "trial/7", "task/*" and the end of a UUID; empty for none
/// "trial/7" and "allocation/7.1" are trial 7, "experiment/3" and "searcher/3" experiment 3; none for other
/// names.
correlation correlation_of_name(std::string_view name);

/// The type of a message: a small number for types of CAF, otherwise the address of its type_info.
using type_key = std::uintptr_t;

/// Reads the correlation out of a message of a known type.
using correlation_reader = correlation (*)(const void*);
/// Writes the beginning of a message of a known type, as msgpack, into at most `most` bytes, and returns how
/// many it wrote.
using brief_writer = std::size_t (*)(const void*, char* to, std::size_t most);

/// One of the last messages, as it was read from the ring.
struct message_note {
  std::uint64_t at = 0;     ///< time at which the actor began the message
  std::uint64_t number = 0; ///< counts this actor's messages from 0
  type_key type = 0;
  std::uint64_t sender = 0;  ///< id of the sending actor; 0: anonymous
  std::uint32_t node = 0;    ///< node of the sender, as node_code gives it; 0: this node
  std::uint64_t request = 0; ///< CAF's message id; its top bit is set in answers
  correlation about = 0;
  std::uint64_t wait = not_timed, run = not_timed;
  std::string brief; ///< text of its brief_writer; may be cut off; empty: none was kept
};

class alignas(64) probe {
public:
  // ---- set before the probe enters the register, constant from then on
  std::string name, kind, owner;
  std::uint64_t actor_id = 0;
  correlation about = 0; ///< correlation of messages that name nothing themselves
  time_point since;      ///< wall time at which the actor was made
  int restarts = 0;      ///< restarts of this name, counted by the register

  static constexpr std::size_t ring = 32, ring_slots = ring + 1, types = 14, stamped = 16, brief_bytes = 64;
  static constexpr std::uint64_t sampled = 8;        ///< a busy actor times every eighth message
  static constexpr std::uint64_t calm_messages = 16; ///< limit in calm_window; with more the actor is busy

  ~probe();

  // ---- any thread
  /// Counts a message that has arrived.
  void arrived() noexcept {
    const auto number = in_.fetch_add(1, std::memory_order_relaxed);
    if ((number & skips_.load(std::memory_order_relaxed)) == 0)
      stamp(number);
  }
  std::uint64_t in() const { return in_.load(std::memory_order_relaxed); }
  std::uint64_t done() const { return done_.load(std::memory_order_relaxed); }
  std::uint64_t backlog() const {
    // Read in this order, so that the difference is never below 0.
    const auto done = this->done(), in = this->in();
    return in > done ? in - done : 0;
  }
  std::uint64_t errors() const { return errors_.load(std::memory_order_relaxed); }
  std::uint32_t waits_for() const { return open_requests_.load(std::memory_order_relaxed); }
  /// The state of the actor's machine in one word; nullptr: the actor has no machine.
  const char* state() const { return state_.load(std::memory_order_relaxed); }
  /// The type of the current message; 0: there is none.
  type_key doing() const { return doing_.load(std::memory_order_relaxed); }
  const tick_histogram& waits() const { return wait_; }
  const tick_histogram& runs() const { return run_; }
  /// The last messages, oldest first. Notes that are overwritten during the call are left out.
  std::vector<message_note> recent() const;
  struct by_type {
    type_key type = 0; ///< 1: all types that have no slot of their own
    std::uint64_t count = 0;
    std::array<std::uint64_t, tick_histogram::size> run{};
  };
  std::vector<by_type> of_types() const;

  // ---- only the actor
  struct type_slot {
    std::atomic<type_key> type{0};
    std::atomic<std::uint64_t> count{0};
    std::array<std::atomic<std::uint32_t>, tick_histogram::size> run{};
    correlation_reader reads = nullptr;
    brief_writer writes = nullptr;
    void timed(std::uint64_t ticks) noexcept;
  };
  struct begun {
    type_slot* slot;
    std::uint64_t wait, at; ///< `at`: 0 if this message is not timed
    std::uint32_t brief;    ///< number of bytes that were kept of the message
  };
  /// The slot of a type that has come before, or nullptr.
  type_slot* slot_of(type_key type) noexcept {
    if (last_slot_->type.load(std::memory_order_relaxed) == type)
      return last_slot_;
    for (auto& slot : types_)
      if (slot.type.load(std::memory_order_relaxed) == type)
        return last_slot_ = &slot;
    return nullptr;
  }
  /// Makes a slot for a type that is new here.
  type_slot* add_slot(type_key type, correlation_reader reads, brief_writer writes = nullptr) noexcept;

  /// Whether each message is timed and its text kept: then `keep` is called before `begin`.
  bool calm() const noexcept { return skips_.load(std::memory_order_relaxed) == 0; }
  /// Keeps the text of the message that is begun next; returns the number of bytes.
  std::uint32_t keep(brief_writer writes, const void* content);

  begun begin(type_slot* slot, std::uint32_t brief = 0) noexcept {
    const auto number = done_.load(std::memory_order_relaxed);
    doing_.store(slot->type.load(std::memory_order_relaxed), std::memory_order_relaxed);
    begun b{slot, not_timed, 0, brief};
    if ((number & skips_.load(std::memory_order_relaxed)) == 0)
      time(b, number);
    return b;
  }
  void end(const begun& b, std::uint64_t sender, std::uint32_t node, std::uint64_t request,
           correlation on) noexcept {
    const auto number = done_.load(std::memory_order_relaxed);
    const auto run = b.at ? timed(b, number) : not_timed;
    auto& slot = ring_[number % ring_slots];
    slot.at.store(latest_, std::memory_order_relaxed);
    slot.type.store(b.slot->type.load(std::memory_order_relaxed), std::memory_order_relaxed);
    slot.sender.store(sender, std::memory_order_relaxed);
    slot.node.store(node, std::memory_order_relaxed);
    slot.brief.store(b.brief, std::memory_order_relaxed);
    slot.request.store(request, std::memory_order_relaxed);
    slot.about.store(on, std::memory_order_relaxed);
    slot.wait.store(b.wait, std::memory_order_relaxed);
    slot.run.store(run, std::memory_order_relaxed);
    b.slot->count.store(b.slot->count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    doing_.store(0, std::memory_order_relaxed);
    done_.store(number + 1, std::memory_order_release);
  }
  /// The message stays in the mailbox, or does not count.
  void passed() noexcept { doing_.store(0, std::memory_order_relaxed); }
  void not_counted() noexcept { in_.fetch_sub(1, std::memory_order_relaxed); }
  void failed() noexcept {
    errors_.store(errors_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void open_requests(std::size_t n) noexcept {
    open_requests_.store(static_cast<std::uint32_t>(n), std::memory_order_relaxed);
  }
  /// Sets the word for the state; `text` must be a literal.
  void show(const char* text) noexcept { state_.store(text, std::memory_order_relaxed); }

private:
  struct alignas(64) ring_slot {
    std::atomic<std::uint64_t> at{0}, sender{0}, request{0}, about{0}, wait{0}, run{0};
    std::atomic<type_key> type{0};
    std::atomic<std::uint32_t> node{0}, brief{0};
  };
  struct arrival {
    std::atomic<std::uint64_t> at{0}, number{not_timed};
  };
  using words = std::array<std::atomic<std::uint64_t>, brief_bytes / 8>;

  /// Called by the sender of a message that is to be timed. Behind a long queue, one message at a time is
  /// stamped.
  void stamp(std::uint64_t number) noexcept;
  /// Called by the actor, at the beginning and at the end of a message that is timed.
  void time(begun& b, std::uint64_t number) noexcept;
  std::uint64_t timed(const begun& b, std::uint64_t number) noexcept;
  arrival& arrival_of(std::uint64_t number) noexcept {
    return arrivals_[(skips_.load(std::memory_order_relaxed) ? number / sampled : number) % stamped];
  }

  // Read by all threads, seldom written: one less than the number of messages from one timed message to the
  // next, which is a power of two.
  std::atomic<std::uint64_t> skips_{0};
  // Written by every sender.
  alignas(64) std::atomic<std::uint64_t> in_{0};
  std::atomic<std::uint64_t> sample_number_{0}, sample_at_{0};
  std::array<arrival, stamped> arrivals_;
  // Written by the actor.
  alignas(64) std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint64_t> errors_{0};
  std::atomic<type_key> doing_{0};
  std::atomic<const char*> state_{nullptr};
  std::atomic<std::uint32_t> open_requests_{0};
  std::uint64_t latest_ = 0;
  type_slot* last_slot_ = types_.data();
  std::uint64_t last_wait_ = 0, last_run_ = 0; ///< how many messages the histograms stand for
  std::uint64_t window_at_ = 0, window_number_ = 0;
  std::atomic<std::array<words, ring_slots>*> briefs_{nullptr}; ///< made with the first text
  std::array<type_slot, types> types_;
  std::array<ring_slot, ring_slots> ring_;
  tick_histogram wait_, run_;
};

} // namespace troupe
