#pragma once
// The states that users see, named as Determined names them.

#include <msgpack.hpp>

#include <string_view>

namespace troupe {

/// paused -> active -> ... -> completed, canceled or error; a stopping state says which end will be reached.
/// An ended experiment may be deleted: deleting -> gone, or delete_failed, from which deletion is tried
/// again.
enum class experiment_state : int {
  active = 0,
  paused,
  stopping_completed,
  stopping_canceled,
  stopping_killed,
  stopping_error,
  completed,
  canceled,
  error,
  deleting,     ///< its files, reports and logs are being removed
  delete_failed ///< a part of it could not be deleted; `why` says which
};
/// Running lasts from the first placed run to the end, without pauses.
enum class trial_state : int { queued = 0, running, paused, stopping, completed, canceled, error };

/// The states of a task that is not a trial:
///
///   active --pause--> stopping_paused --its run is over--> paused --unpause--> active
///   active --exit code 0--> completed, another--> error; killed: stopping_canceled --> canceled
enum class task_state : int {
  active = 0,
  stopping_paused,
  paused,
  stopping_canceled,
  completed,
  canceled,
  error
};

/// Why a run ended.
enum class end : int {
  completed = 0, ///< exit code 0
  failed,        ///< exit code other than 0, or a signal that nobody ordered
  lost,          ///< the agent or sandbox is gone; costs no restart
  stopped,       ///< ordered: pause, searcher, cancel or kill
  invalid_hp,    ///< the script said that its hyperparameters cannot be trained
};

/// "ACTIVE", "STOPPING_COMPLETED", ... as in Determined's API without its prefix STATE_.
std::string_view name(experiment_state state);
std::string_view name(trial_state state);
std::string_view name(task_state state);
std::string_view name(end why);
constexpr bool terminal(experiment_state s) { return s >= experiment_state::completed; }
constexpr bool stopping(experiment_state s) {
  return s >= experiment_state::stopping_completed && s <= experiment_state::stopping_error;
}
constexpr bool terminal(trial_state s) { return s >= trial_state::completed; }
constexpr bool terminal(task_state s) { return s >= task_state::completed; }

} // namespace troupe

MSGPACK_ADD_ENUM(troupe::experiment_state)
MSGPACK_ADD_ENUM(troupe::trial_state)
MSGPACK_ADD_ENUM(troupe::task_state)
MSGPACK_ADD_ENUM(troupe::end)
