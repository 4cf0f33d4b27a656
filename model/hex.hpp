#pragma once
// Bytes as text, and the text of a UUID. Random bytes come from system/random.hpp.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// Two lower-case digits for each byte.
std::string hex(std::string_view bytes);

/// A UUID of version 4 (RFC 9562) from random bytes; the bits of version and variant are replaced.
std::string uuid_of(std::array<std::uint8_t, 16> random);

} // namespace troupe
