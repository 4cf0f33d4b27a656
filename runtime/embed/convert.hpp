#pragma once
// Converts the engine's types to the public ones.

#include "runtime/embed/engine.hpp"
#include "runtime/embed/troupe/embed.hpp"

namespace troupe {
inline namespace v0 {

error to_error(const embedding::fault& why);
std::string text_of(const parameter& x); ///< as JSON

} // namespace v0
} // namespace troupe
