#pragma once
// Arithmetic of reductions on raw memory. Pure.

#include "workers/collective.hpp"

namespace troupe {

/// Each of `out` becomes how(in[0][i], in[1][i], ...) for `count` elements, in the order of `in`; an average
/// divides by `in.size()`. At least one of both. Any alignment. One of `out` may be one of `in`, but may not
/// overlap one otherwise, nor another of `out`.
void reduce_elements(element type, reduce how, std::span<const std::byte* const> in,
                     std::span<std::byte* const> out, std::size_t count);

} // namespace troupe
