#include "workers/collectives/shared_copy.hpp"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace troupe {

#if defined(__SSE2__)

namespace {
constexpr std::size_t line = 64, word = sizeof(__m128i);
constexpr std::size_t lead_bytes = 2048; // how far to read ahead; the processor itself stops at each page
__m128i load(const std::byte* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
} // namespace

// An ordinary store to a line that its last reader still holds waits until that reader loses the line.
void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::size_t at = std::min(bytes, (line - reinterpret_cast<std::uintptr_t>(to) % line) % line);
  std::memcpy(to, from, at);
  for (; at + line <= bytes; at += line) {
    _mm_prefetch(reinterpret_cast<const char*>(from + std::min(at + lead_bytes, bytes - 1)), _MM_HINT_T0);
    for (std::size_t i = at; i < at + line; i += word)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), load(from + i));
  }
  _mm_sfence();
  std::memcpy(to + at, from + at, bytes - at);
}

// The C library copies by a string instruction, which takes five times as long where `to` lies a little above
// `from` within their pages (glibc bug 30994). A slot and the memory of a user lie so.
void copy_evenly(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::size_t at = 0;
  for (; at + line <= bytes; at += line)
    for (std::size_t i = at; i < at + line; i += word)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), load(from + i));
  std::memcpy(to + at, from + at, bytes - at);
}

void take_early(const std::byte* at, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += line)
    asm volatile("prefetchw %0" : : "m"(at[i])); // GCC would turn its own builtin into a prefetch for reading
}

#else

void take_early(const std::byte*, std::size_t) {}
void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}
void copy_evenly(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

#endif

bool copy_choice::choose(std::uint32_t chunk, std::size_t bytes) {
  if (++since_ > every) { // also where the last pair's length never came again
    since_ = 0;
    bytes_ = bytes;
    pair_ = {sample{chunk, true, {}}, sample{}};
    return false;
  }
  if (pair_[0].open && !pair_[1].open && bytes == bytes_) {
    pair_[1] = {chunk, true, {}};
    return true;
  }
  return votes_ > 0;
}

void copy_choice::add(std::uint32_t chunk, duration took) {
  for (auto& x : pair_)
    if (x.is(chunk))
      x.took += took;
}

void copy_choice::read(std::uint32_t chunk, duration took) {
  add(chunk, took);
  if (!pair_[1].is(chunk))
    return;
  const int vote = pair_[1].took < pair_[0].took ? 1 : -1;
  votes_ = std::clamp(votes_ + vote, -most_votes, most_votes);
  pair_ = {};
}

} // namespace troupe
