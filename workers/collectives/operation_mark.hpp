#pragma once
// What a rank is doing. Ranks compare their marks, so that those that differ hear of it before their data is
// used.

#include "workers/collective.hpp"

namespace troupe {

struct operation_mark {
  std::uint64_t bytes = 0;   ///< bytes of all buffers
  std::uint32_t buffers = 0; ///< number of buffers of a grouped operation
  std::int32_t root = 0;
  reduce how{};
  operation_kind what{};
  element type{};
  friend bool operator==(const operation_mark&, const operation_mark&) = default;
};
std::string show(const operation_mark& mark);

inline std::size_t elements_of(const operation& x) { ///< elements of all buffers
  std::size_t n = x.first.count;
  for (const auto& b : x.more)
    n += b.count;
  return n;
}

inline operation_mark mark_of(const operation& x) {
  const bool reduces = x.what == operation_kind::all_reduce || x.what == operation_kind::reduce_scatter;
  operation_mark mark;
  mark.what = x.what;
  mark.type = x.type;
  mark.how = reduces ? x.how : reduce::sum;
  mark.root = x.root;
  mark.bytes = elements_of(x) * size_of(x.type);
  mark.buffers = std::uint32_t(1 + x.more.size());
  return mark;
}

/// Takes the buffers as one stretch of elements, and calls f(buffer, offset in it, count, offset in the
/// stretch) for each part in [from, from + count).
template <class F>
void each_part(const operation& x, std::size_t from, std::size_t count, F f) {
  std::size_t done = 0;
  const auto part = [&](const operation_buffer& b) {
    if (from >= b.count) {
      from -= b.count;
      return;
    }
    const std::size_t n = std::min(b.count - from, count - done);
    if (n > 0)
      f(b, from, n, done);
    done += n;
    from = 0;
  };
  part(x.first);
  for (const auto& b : x.more) {
    if (done == count)
      return;
    part(b);
  }
}

/// The name of a group of some ranks of the group `parent`: all of them get the same name, and each repeat
/// another one. Fails with `invalid` where the list does not hold different ranks of the parent, the caller
/// among them.
result<std::string> name_of_inner_group(const std::string& parent, std::span<const int> ranks, int rank,
                                        int size, int repeat, const char* member);

} // namespace troupe
