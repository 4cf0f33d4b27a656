#pragma once
// Random bytes from the kernel, for names and secrets that nobody can guess. Code that needs a seed has its
// own generators.

#include <string>

namespace troupe {

std::string random_bytes(std::size_t count);
/// A token of `bytes` random bytes, two digits for each.
std::string random_hex(std::size_t bytes);
/// A UUID of version 4.
std::string random_uuid();

} // namespace troupe
