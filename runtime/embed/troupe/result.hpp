#pragma once
// What the calls of <troupe/embed.hpp> and <troupe/study.hpp> return: a value, or an error for the program
// and for people.

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#if defined(__GNUC__)
#define TROUPE_API __attribute__((visibility("default")))
#else
#define TROUPE_API
#endif

namespace troupe {
inline namespace v0 {

/// A code exists only where a caller reacts differently.
enum class errc {
  invalid,     ///< the input is wrong; the same call fails again
  not_found,   ///< there is no such thing
  conflict,    ///< the state forbids it: it is over, held by another, or taken
  denied,      ///< not allowed
  busy,        ///< a bounded queue is full; try later
  no_space,    ///< the disk is below its reserve
  io,          ///< the operating system refused a read or write
  unreachable, ///< the peer cannot be reached, or the node has stopped
  timeout,     ///< no answer came in time: the outcome is unknown
  corrupt,     ///< stored bytes cannot be decoded
  unsupported, ///< this build cannot do it
  internal     ///< a bug
};
TROUPE_API const char* name(errc code);

struct error {
  errc code = errc::internal;
  std::string message; ///< the fault, with its place
  std::string hint;    ///< how to mend it; may be empty
  /// Prints "error: MESSAGE", and "hint: HINT" below it where there is one. Returns 1, for a `return` in
  /// main.
  TROUPE_API int print(std::FILE* to) const;
};

/// Holds a `T` or an error. Taking the value of a failed one ends the process: check first.
template <class T>
class [[nodiscard]] result {
public:
  result(T value) : value_(std::move(value)) {}
  result(troupe::v0::error why) : why_(std::move(why)) {}
  explicit operator bool() const { return value_.has_value(); }
  T& value() & { return must(), *value_; }
  const T& value() const& { return must(), *value_; }
  T&& value() && { return must(), std::move(*value_); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const troupe::v0::error& error() const { return why_; }

private:
  void must() const {
    if (!value_) {
      why_.print(stderr);
      std::abort();
    }
  }
  std::optional<T> value_;
  troupe::v0::error why_;
};

template <>
class [[nodiscard]] result<void> {
public:
  result() = default;
  result(troupe::v0::error why) : why_(std::move(why)) {}
  explicit operator bool() const { return !why_; }
  const troupe::v0::error& error() const { return *why_; }

private:
  std::optional<troupe::v0::error> why_;
};

} // namespace v0
} // namespace troupe
