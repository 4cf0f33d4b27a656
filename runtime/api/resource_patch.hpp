#pragma once
// What a body says of the resources of a live experiment.

#include "model/commands/table.hpp"

namespace troupe::api {

/// Of `priority`, `weight`, `maxSlots` (a number; null or "none": any number) and `pool`; what is absent
/// stays. errc::invalid with the key. `zero_weight`: it may be 0, which Determined refuses.
result<commands::experiment_set> resource_patch(experiment_id id, const value& body, bool zero_weight);

} // namespace troupe::api
