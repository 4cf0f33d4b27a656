#include "model/states.hpp"

namespace troupe {

std::string_view name(experiment_state state) {
  switch (state) {
  case experiment_state::active:
    return "ACTIVE";
  case experiment_state::paused:
    return "PAUSED";
  case experiment_state::stopping_completed:
    return "STOPPING_COMPLETED";
  case experiment_state::stopping_canceled:
    return "STOPPING_CANCELED";
  case experiment_state::stopping_killed:
    return "STOPPING_KILLED";
  case experiment_state::stopping_error:
    return "STOPPING_ERROR";
  case experiment_state::completed:
    return "COMPLETED";
  case experiment_state::canceled:
    return "CANCELED";
  case experiment_state::error:
    return "ERROR";
  case experiment_state::deleting:
    return "DELETING";
  case experiment_state::delete_failed:
    return "DELETE_FAILED";
  }
  return "ERROR";
}

std::string_view name(trial_state state) {
  switch (state) {
  case trial_state::queued:
    return "QUEUED";
  case trial_state::running:
    return "RUNNING";
  case trial_state::paused:
    return "PAUSED";
  case trial_state::stopping:
    return "STOPPING_COMPLETED";
  case trial_state::completed:
    return "COMPLETED";
  case trial_state::canceled:
    return "CANCELED";
  case trial_state::error:
    return "ERROR";
  }
  return "ERROR";
}

std::string_view name(task_state state) {
  switch (state) {
  case task_state::active:
    return "ACTIVE";
  case task_state::stopping_paused:
    return "STOPPING_PAUSED";
  case task_state::paused:
    return "PAUSED";
  case task_state::stopping_canceled:
    return "STOPPING_CANCELED";
  case task_state::completed:
    return "COMPLETED";
  case task_state::canceled:
    return "CANCELED";
  case task_state::error:
    return "ERROR";
  }
  return "ERROR";
}

std::string_view name(end why) {
  switch (why) {
  case end::completed:
    return "completed";
  case end::failed:
    return "failed";
  case end::lost:
    return "lost";
  case end::stopped:
    return "stopped";
  case end::invalid_hp:
    return "invalid_hp";
  }
  return "failed";
}

} // namespace troupe
