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
struct user_tag {
  static constexpr const char* name = "user";
};
struct workspace_tag {
  static constexpr const char* name = "workspace";
};
struct project_tag {
  static constexpr const char* name = "project";
};
struct model_tag {
  static constexpr const char* name = "model";
};
struct group_tag {
  static constexpr const char* name = "group";
};
struct webhook_tag {
  static constexpr const char* name = "webhook";
};
using workspace_id = strong_id<workspace_tag>; ///< 1: "Uncategorized", which always exists
using project_id = strong_id<project_tag>;     ///< unique in the cluster; 1: the project of workspace 1
using model_id = strong_id<model_tag>;
using group_id = strong_id<group_tag>; ///< a group of users
using webhook_id = strong_id<webhook_tag>;
using run_id = strong_id<run_tag>; ///< counts from 1 within one trial
using user_id = strong_id<user_tag>;

/// What a task runs. The number is the first hex digit of the task's UUID: never renumber. Only checkpoint_gc
/// holds no slots and is in no queue: the master itself removes files of checkpoints.
enum class task_kind : std::uint8_t {
  trial = 0,
  command,
  notebook,
  shell,
  tensorboard,
  generic,
  checkpoint_gc
};
inline constexpr task_kind newest_task_kind = task_kind::checkpoint_gc;

/// What runs on slots: a trial, which its number names, or a task of another kind, which a random UUID names.
/// The first hex digit of the UUID is the kind's number, so that the text or the bytes show what is named.
/// The numbers of trials stay below 2^60, so the two never meet. In the order of ids trials come first, by
/// number.
class task_id {
public:
  constexpr task_id() = default;                           ///< names nothing
  constexpr task_id(trial_id trial) : low_(trial.value) {} // a trial is a task
  /// Makes the id of a task that is not a trial from 122 random bits in two halves; the kind replaces 4 of
  /// them.
  static constexpr task_id of(task_kind kind, std::uint64_t high, std::uint64_t low) {
    task_id id;
    id.high_ = (high & 0x0fff'ffff'ffff'0fffULL) | std::uint64_t(kind) << 60 | 0x4000; // version 4
    id.low_ = (low & 0x3fff'ffff'ffff'ffffULL) | 0x8000'0000'0000'0000ULL;             // variant 1
    return id;
  }
  /// The id of these bits; empty where they name nothing. `high` is 0 for trials.
  static constexpr task_id of_bits(std::uint64_t high, std::uint64_t low) {
    if (high == 0)
      return trial_id{low};
    const auto kind = high >> 60;
    const bool sound = kind >= 1 && kind <= std::uint64_t(newest_task_kind);
    const auto made = sound ? of(task_kind(kind), high, low) : task_id{};
    return made.high_ == high && made.low_ == low ? made : task_id{};
  }

  constexpr task_kind kind() const { return task_kind(high_ >> 60); } ///< trial also where it names nothing
  constexpr bool is_trial() const { return high_ == 0 && low_ != 0; }
  constexpr trial_id trial() const { return {high_ == 0 ? low_ : 0}; } ///< 0 for other kinds
  constexpr std::uint64_t high() const { return high_; }
  constexpr std::uint64_t low() const { return low_; }
  constexpr explicit operator bool() const { return high_ != 0 || low_ != 0; }
  friend constexpr auto operator<=>(const task_id&, const task_id&) = default;

private:
  std::uint64_t high_ = 0, low_ = 0;
};

/// One try of a task on the slots that it was granted. Written "12.3" for run 3 of trial 12, "UUID.1" for
/// tasks of other kinds.
struct allocation_id {
  task_id task;
  run_id run;
  constexpr allocation_id() = default;
  constexpr allocation_id(task_id of, run_id number) : task(of), run(number) {}
  constexpr allocation_id(trial_id of, run_id number) : task(of), run(number) {}
  constexpr trial_id trial() const { return task.trial(); } ///< 0 for other kinds
  constexpr explicit operator bool() const { return bool(task); }
  friend auto operator<=>(const allocation_id&, const allocation_id&) = default;
};

/// The number of the job that a task which is not a trial is in its pool; a trial's job has its experiment's
/// number. No experiment has such a number.
constexpr experiment_id job_of(task_id task) {
  return {std::uint64_t{1} << 63 | (task.high() * 0x9e37'79b9'7f4a'7c15ULL ^ task.low()) >> 1};
}
constexpr bool is_task_job(experiment_id job) { return job.value >> 63 != 0; }

template <class Tag>
std::string to_string(strong_id<Tag> id) {
  return std::to_string(id.value);
}
std::string to_string(task_id id); ///< "12" for trial 12, the UUID of other tasks
std::string to_string(allocation_id id);

/// Reads a positive decimal number; 0 where `text` is anything else.
template <class Id>
Id parse_id(std::string_view text) {
  std::uint64_t number = 0;
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc{} && end == text.data() + text.size() ? Id{number} : Id{};
}

/// Reads "12", or a UUID (lower case) whose first digit is a known kind; an empty id where `text` is anything
/// else.
task_id parse_task(std::string_view text);
/// Reads "12.3", "UUID.1"; an empty id where `text` is anything else.
allocation_id parse_allocation(std::string_view text);

/// "command", "notebook"; "trial" for trials.
const char* name(task_kind kind);

} // namespace troupe

template <class Tag>
struct std::hash<troupe::strong_id<Tag>> {
  std::size_t operator()(troupe::strong_id<Tag> id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value);
  }
};
template <>
struct std::hash<troupe::task_id> {
  std::size_t operator()(troupe::task_id id) const noexcept {
    return std::hash<std::uint64_t>{}(id.high() ^ id.low());
  }
};
