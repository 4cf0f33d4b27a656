#pragma once
// Keys that are accepted and have no effect here, or less than in Determined. One table; who builds what a
// key asks for takes its line out.

#include "model/config/schema.hpp"

#include <string_view>
#include <vector>

namespace troupe::config {

struct without_effect {
  std::string_view path;                ///< keys of maps only, as `resources.shm_size`
  std::string_view says;                ///< text: what happens instead
  bool (*when)(const value&) = nullptr; ///< condition on the value; null: whenever it is not the default
  bool of_trial_classes = false; ///< Determined's client reads it in the task, where a trial class runs
};

const std::vector<without_effect>& keys_without_effect();

/// Why a key of `task_container_defaults` has no effect; empty where it has one.
std::string_view idle_task_default(std::string_view key);

} // namespace troupe::config
