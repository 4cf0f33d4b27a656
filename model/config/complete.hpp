#pragma once
// Brings a checked value into the one form of a configuration, and fills in its defaults.

#include "model/config/schema.hpp"

namespace troupe::config {

/// Brings `x`, which passed `check`, into normal form: short and old spellings become the one spelling, null
/// keys and ignored keys are dropped, plain hyperparameters become {type: const, val: ...}, whole numbers
/// become integers. Doing it twice changes nothing.
void normalize(value& x, const shape& s);

/// Fills the defaults into a normal `x`. Keys without a default become null, quiet keys stay away. Doing it
/// twice changes nothing.
void fill_defaults(value& x, const shape& s);

/// Writes null for every key that is not given and not quiet, as a merge shows a partial configuration.
void fill_nulls(value& x, const shape& s);

} // namespace troupe::config
