#pragma once
// Reads the changes of a live experiment's resources from a body.

#include "model/commands/table.hpp"

namespace troupe::api {

/// Reads `priority`, `weight`, `maxSlots` (a number; null or "none" for no limit) and `pool`; keys that are
/// absent change nothing. Fails with errc::invalid, and names the key. `zero_weight`: whether the weight may
/// be 0, which Determined refuses.
result<commands::experiment_set> resource_patch(experiment_id id, const value& body, bool zero_weight);

} // namespace troupe::api
