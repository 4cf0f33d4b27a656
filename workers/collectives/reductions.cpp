#include "workers/collectives/reductions.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace troupe {
namespace {

// How an element lies in memory, at any address, and the type in which it is added up.
template <class Raw, class Sum>
struct plain {
  using raw [[gnu::aligned(1), gnu::may_alias]] = Raw;
  using sum = Sum;
  using wide = std::conditional_t<std::is_same_v<Raw, std::int64_t>, __int128, // for an exact average
                                  std::conditional_t<std::is_same_v<Raw, std::int32_t>, std::int64_t, Raw>>;
  static Sum load(Raw x) { return Sum(x); }
  static Raw store(Sum x) { return Raw(x); }
};
template <class Bits, class Half, Half (*from_float)(float)>
struct half {
  using raw [[gnu::aligned(1), gnu::may_alias]] =
    Bits; // std::uint16_t; a parameter is needed, because otherwise GCC 12 forgets the alignment
  using sum = float;
  using wide = float;
  static float load(std::uint16_t x) { return to_float(Half{x}); }
  static std::uint16_t store(float x) { return from_float(x).bits; }
};

struct add {
  template <class T>
  static T of(T a, T b) {
    if constexpr (std::is_same_v<T, std::int32_t>)
      return T(std::uint32_t(a) + std::uint32_t(b));
    else if constexpr (std::is_same_v<T, std::int64_t>)
      return T(std::uint64_t(a) + std::uint64_t(b));
    else
      return a + b;
  }
};
struct least {
  template <class T>
  static T of(T a, T b) {
    return (a < b) | (a != a) ? a : b; // a later NaN is not less than `b`, so it is kept as well
  }
};
struct greatest {
  template <class T>
  static T of(T a, T b) {
    return (a > b) | (a != a) ? a : b;
  }
};

// The common case of two ranks: one pass that needs no other memory. With `twice` the result also goes to
// `also`.
template <class Type, class Combine, bool average, bool twice>
[[gnu::always_inline]] inline void pass(const std::byte* a, const std::byte* b, std::byte* out,
                                        std::byte* also, std::size_t count) {
  using raw = typename Type::raw;
  using sum = typename Type::sum;
  const auto* x = reinterpret_cast<const raw*>(a);
  const auto* y = reinterpret_cast<const raw*>(b);
  auto* z = reinterpret_cast<raw*>(out);
  [[maybe_unused]] auto* w = reinterpret_cast<raw*>(also);
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    sum s = Combine::of(Type::load(x[i]), Type::load(y[i]));
    if constexpr (average)
      s = s * sum(0.5); // as exact as the division, and faster
    z[i] = Type::store(s);
    if constexpr (twice)
      w[i] = z[i];
  }
}

#if defined(__x86_64__)
// Gives the same bits with half the instructions, where the processor has them.
template <class Type, class Combine, bool average, bool twice>
[[gnu::target("avx2")]] void wide_pass(const std::byte* a, const std::byte* b, std::byte* out,
                                       std::byte* also, std::size_t count) {
  pass<Type, Combine, average, twice>(a, b, out, also, count);
}
const bool has_wide = __builtin_cpu_supports("avx2");
#endif

template <class Type, class Combine, bool average, bool twice>
void two(const std::byte* a, const std::byte* b, std::byte* out, std::byte* also, std::size_t count) {
#if defined(__x86_64__)
  if (has_wide)
    return wide_pass<Type, Combine, average, twice>(a, b, out, also, count);
#endif
  pass<Type, Combine, average, twice>(a, b, out, also, count);
}

// Takes any number of ranks, in blocks that stay in the nearest cache.
template <class Type, class Combine, bool average, class Sum>
void many(std::span<const std::byte* const> in, std::span<std::byte* const> out, std::size_t count) {
  using raw = typename Type::raw;
  constexpr std::size_t block = 512;
  Sum sums[block];
  for (std::size_t from = 0; from < count; from += block) {
    const std::size_t n = std::min(block, count - from);
    const auto* first = reinterpret_cast<const raw*>(in[0]) + from;
    for (std::size_t i = 0; i < n; ++i)
      sums[i] = Sum(Type::load(first[i]));
    for (std::size_t k = 1; k < in.size(); ++k) {
      const auto* next = reinterpret_cast<const raw*>(in[k]) + from;
      for (std::size_t i = 0; i < n; ++i)
        sums[i] = Combine::of(sums[i], Sum(Type::load(next[i])));
    }
    auto* to = reinterpret_cast<raw*>(out[0]) + from;
    for (std::size_t i = 0; i < n; ++i)
      to[i] = Type::store(typename Type::sum(average ? sums[i] / Sum(in.size()) : sums[i]));
    for (std::size_t k = 1; k < out.size(); ++k)
      std::memcpy(out[k] + from * sizeof(raw), to, n * sizeof(raw));
  }
}

template <class Type, class Combine, bool average, class Sum>
void any(std::span<const std::byte* const> in, std::span<std::byte* const> out, std::size_t count) {
  if (in.size() == 2 && out.size() == 1)
    return two<Type, Combine, average, false>(in[0], in[1], out[0], nullptr, count);
  if (in.size() == 2 && out.size() == 2)
    return two<Type, Combine, average, true>(in[0], in[1], out[0], out[1], count);
  return many<Type, Combine, average, Sum>(in, out, count);
}

template <class Type>
void typed(reduce how, std::span<const std::byte* const> in, std::span<std::byte* const> out,
           std::size_t count) {
  using sum = typename Type::sum;
  switch (how) {
  case reduce::sum:
    return any<Type, add, false, sum>(in, out, count);
  case reduce::average:
    if constexpr (std::is_floating_point_v<sum>)
      return any<Type, add, true, sum>(in, out, count);
    else
      return many<Type, add, true, typename Type::wide>(in, out, count);
  case reduce::min:
    return any<Type, least, false, sum>(in, out, count);
  case reduce::max:
    return any<Type, greatest, false, sum>(in, out, count);
  }
}

} // namespace

void reduce_elements(element type, reduce how, std::span<const std::byte* const> in,
                     std::span<std::byte* const> out, std::size_t count) {
  switch (type) {
  case element::f16:
    return typed<half<std::uint16_t, f16, to_f16>>(how, in, out, count);
  case element::bf16:
    return typed<half<std::uint16_t, bf16, to_bf16>>(how, in, out, count);
  case element::f32:
    return typed<plain<float, float>>(how, in, out, count);
  case element::f64:
    return typed<plain<double, double>>(how, in, out, count);
  case element::i32:
    return typed<plain<std::int32_t, std::int32_t>>(how, in, out, count);
  case element::i64:
    return typed<plain<std::int64_t, std::int64_t>>(how, in, out, count);
  }
}

} // namespace troupe
