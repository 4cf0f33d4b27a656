#pragma once
// Random bytes of the kernel, for names and secrets that nobody can guess. What is seeded has generators of
// its own.

#include <string>

namespace troupe {

std::string random_bytes(std::size_t count);
/// `bytes` random bytes, two digits each: a token.
std::string random_hex(std::size_t bytes);
/// Version 4.
std::string random_uuid();

} // namespace troupe
