#pragma once
// What a YAML scalar means: null, boolean, number or string.

#include "model/config/document.hpp"

namespace troupe::config {

/// Sets type and value of `out` from a scalar as written. `tag` is the explicit tag, or empty. Returns what
/// is wrong, or an empty text.
std::string resolve(node& out, std::string_view written, bool plain, std::string_view tag);

/// Reads a number as YAML writes it; false where `text` is not one.
bool resolve_number(node& out, std::string_view text);

} // namespace troupe::config
