#pragma once
// Keys that are accepted but have no effect here, or less than in Determined. They stand in one table;
// whoever builds what a key asks for removes its line.

#include "model/config/schema.hpp"

#include <string_view>
#include <vector>

namespace troupe::config {

struct without_effect {
  std::string_view path;                ///< path through maps only, such as `resources.shm_size`
  std::string_view says;                ///< what happens instead
  bool (*when)(const value&) = nullptr; ///< condition on the value; null: any value but the default
  bool of_trial_classes = false; ///< Determined's client reads it in the task, where a trial class runs
};

const std::vector<without_effect>& keys_without_effect();

/// Why a key of `task_container_defaults` has no effect; empty where it has one.
std::string_view idle_task_default(std::string_view key);

} // namespace troupe::config
