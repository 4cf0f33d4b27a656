#pragma once
// Memory sizes as people write them: 512, 1.5G, 4 GiB. K, M, G, T, P are powers of 1024, with or without `i`.

#include <cstdint>
#include <optional>
#include <string_view>

namespace troupe::config {

/// In bytes; nothing where `text` is not a size, or beyond 63 bits.
std::optional<std::int64_t> parse_memory_size(std::string_view text);

} // namespace troupe::config
