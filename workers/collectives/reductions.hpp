#pragma once
// Arithmetic of reductions on raw memory. Pure.

#include "workers/collective.hpp"

namespace troupe {

/// Sets each of `out` to how(in[0][i], in[1][i], ...) for `count` elements, in the order of `in`; an average
/// divides by `in.size()`. Neither `in` nor `out` is empty; any alignment is allowed. A buffer of `out` may
/// also be one of `in`, but must not overlap another one of either.
void reduce_elements(element type, reduce how, std::span<const std::byte* const> in,
                     std::span<std::byte* const> out, std::size_t count);

} // namespace troupe
