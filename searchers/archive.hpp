#pragma once
// The bytes of a snapshot. One `persist` for each type both writes and reads, so the two cannot disagree.
// Little-endian and length-prefixed. A reader that meets a wrong length becomes `failed` and leaves
// everything after it empty.

#include "model/result.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace troupe::searchers {

static_assert(std::endian::native == std::endian::little, "snapshots are written as the memory lies");

class archive {
public:
  archive() = default; ///< makes a writer
  explicit archive(std::string_view bytes) : reading_(true), left_(bytes) {}

  bool reading() const { return reading_; }
  bool failed() const { return failed_; }
  bool at_end() const { return left_.empty(); }
  void fail() { failed_ = true; }
  std::string take() { return std::move(bytes_); }

  template <class... Ts>
  void operator()(Ts&... xs) {
    (one(xs), ...);
  }

private:
  template <class T>
  void one(T& x) {
    if constexpr (std::is_trivially_copyable_v<T>)
      raw(&x, sizeof(T));
    else if constexpr (requires { x.persist(*this); })
      x.persist(*this);
    else
      sequence(x);
  }

  /// A string, or a vector of any type that this class reads and writes.
  template <class T>
  void sequence(T& xs) {
    using element = typename T::value_type;
    std::uint64_t n = xs.size();
    raw(&n, sizeof n);
    // Every element takes at least one byte, so a wrong length cannot ask for more elements than there are
    // bytes.
    constexpr std::size_t least = std::is_trivially_copyable_v<element> ? sizeof(element) : 1;
    if (reading_ && (failed_ || n > left_.size() / least)) {
      failed_ = true;
      xs.clear();
      return;
    }
    if (reading_)
      xs.resize(n);
    if constexpr (std::is_trivially_copyable_v<element>)
      raw(xs.data(), n * sizeof(element));
    else
      for (auto& x : xs)
        one(x);
  }

  void raw(void* at, std::size_t n) {
    if (n == 0)
      return;
    if (!reading_) {
      bytes_.append(static_cast<const char*>(at), n);
    } else if (failed_ || left_.size() < n) {
      failed_ = true;
      std::memset(at, 0, n);
    } else {
      std::memcpy(at, left_.data(), n);
      left_.remove_prefix(n);
    }
  }

  bool reading_ = false, failed_ = false;
  std::string bytes_;
  std::string_view left_;
};

/// `sealed` appends a checksum to `payload`; `unsealed` checks and removes it, or fails with `errc::corrupt`.
std::string sealed(std::string payload);
result<std::string_view> unsealed(std::string_view bytes);

} // namespace troupe::searchers
