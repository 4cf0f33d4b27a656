#pragma once
// From a checked value to the one form of a configuration, and its defaults.

#include "model/config/schema.hpp"

namespace troupe::config {

/// Brings `x`, which passed `check`, into normal form: short and old spellings become the one spelling, null
/// keys and ignored keys go, plain hyperparameters become {type: const, val: ...}, whole numbers become
/// integers. Doing it twice changes nothing.
void normalize(value& x, const shape& s);

/// Fills the defaults into a normal `x`; keys without a default become null, quiet ones stay away. Doing it
/// twice changes nothing.
void fill_defaults(value& x, const shape& s);

/// Writes null for every key that is not given and not quiet: how a merge shows a partial configuration.
void fill_nulls(value& x, const shape& s);

} // namespace troupe::config
