#pragma once
// result<T> is a value, or an error with a code that callers branch on and a text for people.

#include "model/assert.hpp"

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace troupe {

/// A code exists only where a caller reacts differently.
enum class errc {
  invalid,      ///< the input is wrong; the same call fails again
  not_found,    ///< there is no such thing
  conflict,     ///< the thing changed meanwhile, or its state forbids the call
  gap,          ///< an append that leaves a gap in its stream or overlaps it
  denied,       ///< not allowed
  unauthorized, ///< not logged in
  busy,         ///< a bounded queue is full; try later
  no_space,     ///< the disk is below its reserve
  io,           ///< the operating system refused a read or write
  unreachable,  ///< the peer cannot be reached
  timeout,      ///< no answer came in time: the outcome is unknown
  corrupt,      ///< stored bytes cannot be decoded
  unsupported,  ///< this build cannot do it
  internal,     ///< a bug
};

const char* name(errc code);

struct error {
  errc code = errc::internal;
  std::string what;
  friend bool operator==(const error&, const error&) = default;
};

/// Holds a `T` or an `error`. Access to the wrong one is an assertion.
template <class T>
class [[nodiscard]] result {
public:
  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  result(troupe::error why) : state_(std::in_place_index<1>, std::move(why)) {}
  template <class U>
  requires(std::is_convertible_v<U&&, T> && !std::is_same_v<std::decay_t<U>, T> &&
           !std::is_same_v<std::decay_t<U>, troupe::error> && !std::is_same_v<std::decay_t<U>, result>)
    result(U&& value)
      : state_(std::in_place_index<0>, std::forward<U>(value)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& value() & { return TROUPE_ASSERT(state_.index() == 0), *std::get_if<0>(&state_); }
  const T& value() const& { return TROUPE_ASSERT(state_.index() == 0), *std::get_if<0>(&state_); }
  T&& value() && { return TROUPE_ASSERT(state_.index() == 0), std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const troupe::error& error() const { return TROUPE_ASSERT(state_.index() == 1), *std::get_if<1>(&state_); }

private:
  std::variant<T, troupe::error> state_;
};

template <>
class [[nodiscard]] result<void> {
public:
  result() = default;
  result(troupe::error why) : why_(std::move(why)) {}
  explicit operator bool() const { return !why_; }
  const troupe::error& error() const { return TROUPE_ASSERT(why_.has_value()), *why_; }

private:
  std::optional<troupe::error> why_;
};

} // namespace troupe
