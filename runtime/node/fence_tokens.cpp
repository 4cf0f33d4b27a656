#include "runtime/node/fence_tokens.hpp"

#include "model/hex.hpp"
#include "system/random.hpp"
#include "system/whole_file.hpp"

#include <sodium.h> // not OpenSSL, whose start costs 3 MB on a host that does not use TLS

namespace troupe::node {
namespace {

constexpr std::size_t secret_bytes = 32;

} // namespace

result<fence_tokens> fence_tokens::open(const std::filesystem::path& secret_file) {
  auto stored = read_whole(secret_file);
  if (!stored)
    return stored.error();
  if (*stored && (*stored)->size() == 2 * secret_bytes)
    return fence_tokens{std::move(**stored)};
  if (sodium_init() < 0)
    return error{errc::internal, "libsodium cannot be used"};
  fence_tokens made{random_hex(secret_bytes)};
  if (auto ok = replace_file(secret_file, made.secret_); !ok)
    return ok.error();
  return made;
}

std::string fence_tokens::of(const std::string& agent) const {
  unsigned char digest[crypto_auth_hmacsha256_BYTES];
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, reinterpret_cast<const unsigned char*>(secret_.data()), secret_.size());
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(agent.data()), agent.size());
  crypto_auth_hmacsha256_final(&state, digest);
  return hex({reinterpret_cast<const char*>(digest), sizeof digest});
}

} // namespace troupe::node
