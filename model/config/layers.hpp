#pragma once
// The layers of an experiment's configuration below and above its text.

#include "model/config/check.hpp"

namespace troupe::config {

/// Puts `key.of.a.key=value` into the tree of a text; the parts that it makes have no place. Returns what is
/// wrong, or an empty text.
std::string apply_override(node& root, std::string_view assignment);

/// What the defaults of a pool mean for an experiment with this many slots, as a partial configuration.
/// `defaults` is normal.
value as_experiment_layer(const value& defaults, std::int64_t slots_per_trial);

} // namespace troupe::config
