#pragma once
// Strong ids: a trial_id never converts to another id or to an integer.

#include <charconv>
#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace troupe {

/// A positive number that names one thing; 0 names nothing.
template <class Tag>
struct strong_id {
  std::uint64_t value = 0;
  friend auto operator<=>(const strong_id&, const strong_id&) = default;
  explicit operator bool() const { return value != 0; }
};

struct experiment_tag {
  static constexpr const char* name = "experiment";
};
struct trial_tag {
  static constexpr const char* name = "trial";
};
struct run_tag {
  static constexpr const char* name = "run";
};
using experiment_id = strong_id<experiment_tag>;
using trial_id = strong_id<trial_tag>; ///< unique in the cluster, not only in its experiment
using run_id = strong_id<run_tag>;     ///< counts from 1 within one trial

/// One try of one trial on the slots it was granted. Written "12.3": run 3 of trial 12.
struct allocation_id {
  trial_id trial;
  run_id run;
  friend auto operator<=>(const allocation_id&, const allocation_id&) = default;
};

template <class Tag>
std::string to_string(strong_id<Tag> id) {
  return std::to_string(id.value);
}
inline std::string to_string(allocation_id id) { return to_string(id.trial) + "." + to_string(id.run); }

/// Reads a positive decimal number; 0 where `text` is anything else.
template <class Id>
Id parse_id(std::string_view text) {
  std::uint64_t number = 0;
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc{} && end == text.data() + text.size() ? Id{number} : Id{};
}

/// Reads "12.3"; an empty id where `text` is anything else.
inline allocation_id parse_allocation(std::string_view text) {
  auto dot = text.find('.');
  if (dot == std::string_view::npos)
    return {};
  allocation_id id{parse_id<trial_id>(text.substr(0, dot)), parse_id<run_id>(text.substr(dot + 1))};
  return id.trial && id.run ? id : allocation_id{};
}

} // namespace troupe

template <class Tag>
struct std::hash<troupe::strong_id<Tag>> {
  std::size_t operator()(troupe::strong_id<Tag> id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value);
  }
};
