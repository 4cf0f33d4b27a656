#include "runtime/node/fence_tokens.hpp"

#include "runtime/api/durable_file.hpp"

#include <cstdio>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

namespace troupe::node {
namespace {

constexpr std::size_t secret_bytes = 32;

std::string hex(const unsigned char* bytes, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    char pair[3];
    std::snprintf(pair, sizeof pair, "%02x", bytes[i]);
    out += pair;
  }
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
  if (RAND_bytes(bytes, sizeof bytes) != 1)
    return error{errc::internal, "no random bytes for '" + secret_file.string() + "'"};
  fence_tokens made{hex(bytes, sizeof bytes)};
  if (auto ok = api::replace_file(secret_file, made.secret_); !ok)
    return ok.error();
  return made;
}

std::string fence_tokens::of(const std::string& agent) const {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (!HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
            reinterpret_cast<const unsigned char*>(agent.data()), agent.size(), digest, &size))
    return {};
  return hex(digest, size);
}

} // namespace troupe::node
