#include "system/random.hpp"

#include "model/assert.hpp"
#include "model/hex.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/random.h>

namespace troupe {

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t have = 0; have < count;) {
    const auto got = ::getrandom(bytes.data() + have, count - have, 0);
    TROUPE_ASSERT(got > 0 || errno == EINTR); // every kernel that runs this has the call
    have += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  return bytes;
}

std::string random_hex(std::size_t bytes) { return hex(random_bytes(bytes)); }

std::string random_uuid() {
  std::array<std::uint8_t, 16> random;
  const auto bytes = random_bytes(random.size());
  std::copy(bytes.begin(), bytes.end(), random.begin());
  return uuid_of(random);
}

} // namespace troupe
