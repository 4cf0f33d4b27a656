#pragma once
// What a body says of the resources of a live experiment.

#include "model/commands/table.hpp"

namespace troupe::api {

/// Of `priority`, `weight`, `maxSlots` (a number; null or "none": any number) and `pool`; what is absent
/// stays. errc::invalid with the key.
result<commands::experiment_set> resource_patch(experiment_id id, const value& body);

} // namespace troupe::api
