#pragma once
// The layers of an experiment's configuration below and above its text.

#include "model/config/check.hpp"

#include <string>
#include <vector>

namespace troupe::config {

/// Puts `key.of.a.key=value` into the tree of a text; the parts that it makes have no place. Returns what is
/// wrong, or an empty text.
std::string apply_override(node& root, std::string_view assignment);

/// What the defaults of a pool mean for an experiment with this many slots, as a partial configuration.
/// `defaults` is normal.
value as_experiment_layer(const value& defaults, std::int64_t slots_per_trial);

/// The section `checkpoint_storage` of all layers together, highest first; null where none has it. The
/// highest layer that names a type decides the kind. Of the layers below number `own`, keys that the kind
/// does not have are dropped; those of the others stay, so that a check refuses them.
value merged_storage(std::vector<value> layers, std::size_t own);

/// The layer of config policies, as faults name it.
inline constexpr const char* policy_layer = "config policies";

/// A layer as faults name it. Its nodes have places only where a person wrote the text.
struct named_layer {
  std::string name;
  node root;
};

/// Removes from a message the value that it shows, and the hint that may show it, too.
void hide_value(diagnostic& fault);

/// Gives faults of a merged configuration the name and the place of the layer that they lie in: for a single
/// value the highest that has it, for a map or a list layer number `own` where it has one. What no layer has
/// lies in layer `own`. Messages about other layers do not show values, which may be secrets. `layers` stand
/// highest first.
void place_faults(std::vector<diagnostic>& faults, const std::vector<named_layer>& layers, std::size_t own);

} // namespace troupe::config
