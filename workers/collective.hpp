#pragma once
// Operations that all ranks of a group do together: reductions, broadcast, gathering, barrier.

#include "model/result.hpp"
#include "workers/half.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// How the values of the ranks become one. They are taken in order of rank, so that the bits do not depend on
/// which rank came first. f16 and bf16 are added in float and rounded once. Integer sums wrap around; an
/// integer average is exact, rounded toward zero. `min` and `max` are NaN where one of the values is.
enum class reduce { sum, average, min, max };

enum class element : std::uint8_t { f16, bf16, f32, f64, i32, i64 };

constexpr std::size_t size_of(element type) { ///< bytes
  switch (type) {
  case element::f16:
  case element::bf16:
    return 2;
  case element::f32:
  case element::i32:
    return 4;
  case element::f64:
  case element::i64:
    return 8;
  }
  return 1;
}
const char* name(element type);
const char* name(reduce how);

template <class T>
constexpr element element_of = element::f32;
template <>
inline constexpr element element_of<f16> = element::f16;
template <>
inline constexpr element element_of<bf16> = element::bf16;
template <>
inline constexpr element element_of<double> = element::f64;
template <>
inline constexpr element element_of<std::int32_t> = element::i32;
template <>
inline constexpr element element_of<std::int64_t> = element::i64;

enum class operation_kind : std::uint8_t { all_reduce, broadcast, all_gather, reduce_scatter, barrier };
const char* name(operation_kind what);

/// One buffer of an operation. `count` counts elements: those of `out` in a reduction, those of `in` in a
/// gathering.
struct operation_buffer {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::size_t count = 0;
};

/// One operation as a member receives it, without types.
struct operation {
  operation_kind what = operation_kind::barrier;
  element type = element::f32;
  reduce how = reduce::sum;
  int root = 0;
  operation_buffer first;             ///< the only one, unless grouped
  std::vector<operation_buffer> more; ///< further buffers of a grouped all_reduce
};

/// The handle of an operation that was started and runs beside its caller. Its destructor waits for the
/// operation, which uses the caller's memory.
class pending {
public:
  struct state; ///< known to members
  pending() = default;
  explicit pending(std::shared_ptr<state> of) : state_(std::move(of)) {}
  pending(pending&&) = default;
  pending& operator=(pending&& other) noexcept;
  ~pending();

  bool done() const; ///< whether wait() returns at once
  /// Returns when the operation has ended; a second call gives the same answer. An empty handle has
  /// succeeded.
  result<void> wait();

private:
  std::shared_ptr<state> state_;
};

/// Elements that `collective::allocate` made. Copies share the memory, which is freed with the last of them.
template <class T>
class group_memory {
public:
  using value_type = T;
  using const_iterator = const T*;
  group_memory() = default;
  group_memory(std::shared_ptr<std::byte> first, std::size_t count)
      : first_(std::move(first)), count_(count) {}
  T* data() const { return reinterpret_cast<T*>(first_.get()); }
  std::size_t size() const { return count_; }
  T* begin() const { return data(); }
  T* end() const { return data() + count_; }
  T& operator[](std::size_t i) const { return data()[i]; }

private:
  std::shared_ptr<std::byte> first_;
  std::size_t count_ = 0;
};

class collective;

/// The calls for one element type, as overloads, so that a std::vector can stand for a span.
template <class T>
class typed_collective {
public:
  /// Every rank's `data` becomes the reduction over all ranks, in place. Equal lengths on all ranks.
  result<void> all_reduce(std::span<T> data, reduce how);
  /// Starts an all_reduce and returns; `data` is left alone until it is done. Operations run in the
  /// order of their calls.
  pending all_reduce_async(std::span<T> data, reduce how);
  /// Reduces several buffers as one operation; all ranks give the same lengths in the same order.
  result<void> all_reduce_grouped(std::span<const std::span<T>> data, reduce how);
  pending all_reduce_grouped_async(std::span<const std::span<T>> data, reduce how);
  /// Every rank's `data` becomes that of rank `root`.
  result<void> broadcast(std::span<T> data, int root);
  /// `all` becomes the ranks' `mine`, one behind the other in order of rank: `all.size() == size() *
  /// mine.size()`. `mine` may be this rank's own part of `all`.
  result<void> all_gather(std::span<const T> mine, std::span<T> all);
  /// `mine` becomes the reduction of part `rank()` of the ranks' `all`: `all.size() == size() * mine.size()`.
  /// `mine` may be this rank's own part of `all`.
  result<void> reduce_scatter(std::span<const T> all, std::span<T> mine, reduce how);

private:
  collective& self();
};

template <class... T>
class typed_collectives : public typed_collective<T>... {
public:
  using typed_collective<T>::all_reduce...;
  using typed_collective<T>::all_reduce_async...;
  using typed_collective<T>::all_reduce_grouped...;
  using typed_collective<T>::all_reduce_grouped_async...;
  using typed_collective<T>::broadcast...;
  using typed_collective<T>::all_gather...;
  using typed_collective<T>::reduce_scatter...;
};

/// A group of ranks. All ranks call the same operations with the same lengths in the same order. A rank that
/// does not breaks the group: every rank's operation ends with `conflict`. Only one thread of a process may
/// call it at a time.
///
/// No operation hangs: where a rank dies, leaves or stops answering (5 s), the pending and all later
/// operations end with `unreachable` on all others, as they do after abort(). A rank that is merely late is
/// waited for without limit. What the buffers hold after an error is not defined. A broken group stays
/// broken: make a new one.
class collective : public typed_collectives<f16, bf16, float, double, std::int32_t, std::int64_t> {
public:
  virtual ~collective() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const char* member() const = 0; ///< name of the implementation: "alone", "shm", ...

  /// Returns when every rank has called it.
  result<void> barrier();

  /// Makes `count` zero elements; the first lies at the start of a cache line. All ranks call it with the
  /// same count, as they call an operation. Where the member can (`shm`, as long as /dev/shm has room), every
  /// rank reaches all ranks' elements, and an all_reduce in place copies nothing where all ranks give the
  /// same part of the same memory: from 16 KiB on it takes two fifths to two thirds of the time. Other
  /// members give ordinary memory. Operations accept both. It may outlive the group, but after an error other
  /// ranks may still write to it: allocate anew from the next group. Fails with `invalid` for more than 1
  /// TiB, `conflict` where `shm` finds that the counts differ, `no_space`, and the errors of operations.
  template <class T>
  result<group_memory<T>> allocate(std::size_t count) {
    if (count > most_allocated / sizeof(T))
      return too_much(count, sizeof(T));
    auto made = memory(count * sizeof(T));
    if (!made)
      return made.error();
    return group_memory<T>(std::move(*made), count);
  }

  /// Ends the pending operations of every rank of the group within a second; their errors say `why`. Any
  /// thread may call it.
  virtual void abort(const std::string& why) = 0;

  /// Makes a group of some of this group's ranks, in the order given. Only these ranks call it, with the same
  /// list.
  virtual result<std::unique_ptr<collective>> group(std::span<const int> ranks) = 0;

  /// Runs an operation. The caller has checked it and keeps its memory until the end.
  virtual result<void> perform(const operation& x) = 0;
  virtual pending start(operation x) = 0;
  /// The memory behind allocate(), in bytes; this one is ordinary memory.
  virtual result<std::shared_ptr<std::byte>> memory(std::size_t bytes);

private:
  static constexpr std::size_t most_allocated = std::size_t(1) << 40; // bytes
  static error too_much(std::size_t count, std::size_t width);
};

/// A group of one rank.
std::unique_ptr<collective> make_alone_collective();

} // namespace troupe
