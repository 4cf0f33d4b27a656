#include "runtime/node/fence_tokens.hpp"

#include "runtime/api/durable_file.hpp"

#include <sodium.h> // not OpenSSL: its start costs a host that speaks no TLS 3 MB

namespace troupe::node {
namespace {

constexpr std::size_t secret_bytes = 32;

std::string hex(const unsigned char* bytes, std::size_t count) {
  std::string out(2 * count + 1, '\0');
  sodium_bin2hex(out.data(), out.size(), bytes, count);
  out.pop_back();
  return out;
}

} // namespace

result<fence_tokens> fence_tokens::open(const std::filesystem::path& secret_file) {
  auto stored = api::read_whole(secret_file);
  if (!stored)
    return stored.error();
  if (*stored && (*stored)->size() == 2 * secret_bytes)
    return fence_tokens{std::move(**stored)};
  unsigned char bytes[secret_bytes];
  if (sodium_init() < 0)
    return error{errc::internal, "no random bytes for '" + secret_file.string() + "'"};
  randombytes_buf(bytes, sizeof bytes);
  fence_tokens made{hex(bytes, sizeof bytes)};
  if (auto ok = api::replace_file(secret_file, made.secret_); !ok)
    return ok.error();
  return made;
}

std::string fence_tokens::of(const std::string& agent) const {
  unsigned char digest[crypto_auth_hmacsha256_BYTES];
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, reinterpret_cast<const unsigned char*>(secret_.data()), secret_.size());
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(agent.data()), agent.size());
  crypto_auth_hmacsha256_final(&state, digest);
  return hex(digest, sizeof digest);
}

} // namespace troupe::node
