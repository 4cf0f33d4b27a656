#pragma once
// Arithmetic of reductions on raw memory. Pure.

#include "workers/collective.hpp"

namespace troupe {

/// out[i] = how(in[0][i], in[1][i], ...) for `count` elements, in the order of `in`; an average divides by `in.size()`, at least 1.
/// Any alignment. `out` may be one of `in`, but may not overlap one otherwise.
void reduce_elements(element type, reduce how, std::span<const std::byte* const> in, std::byte* out,
                     std::size_t count);

} // namespace troupe
