#include "runtime/api/ssh_keys.hpp"

#include "runtime/api/context.hpp"
#include "system/random.hpp"

#include <sodium.h>

namespace troupe::api {
namespace {

constexpr const char* algorithm = "ssh-ed25519";

/// Appends a number, and below a text, in the form of RFC 4251.
void add_number(std::string& to, std::uint32_t x) {
  for (int shift = 24; shift >= 0; shift -= 8)
    to += static_cast<char>(x >> shift & 0xff);
}
void add_text(std::string& to, const std::string& x) {
  add_number(to, static_cast<std::uint32_t>(x.size()));
  to += x;
}

} // namespace

ssh_key fresh_ssh_key(const std::string& comment) {
  std::string open(crypto_sign_PUBLICKEYBYTES, 0), secret(crypto_sign_SECRETKEYBYTES, 0);
  // The secret has 64 bytes: the seed, then the public key.
  crypto_sign_keypair(reinterpret_cast<unsigned char*>(open.data()),
                      reinterpret_cast<unsigned char*>(secret.data()));
  std::string blob;
  add_text(blob, algorithm);
  add_text(blob, open);

  std::string hidden;
  const auto check = random_bytes(4);
  hidden += check + check;
  add_text(hidden, algorithm);
  add_text(hidden, open);
  add_text(hidden, secret);
  add_text(hidden, comment);
  for (char pad = 1; hidden.size() % 8 != 0; ++pad)
    hidden += pad;

  std::string whole("openssh-key-v1\0", 15);
  add_text(whole, "none"); // cipher
  add_text(whole, "none"); // key derivation
  add_text(whole, "");
  add_number(whole, 1);
  add_text(whole, blob);
  add_text(whole, hidden);
  sodium_memzero(secret.data(), secret.size());

  ssh_key made;
  made.public_line = std::string(algorithm) + " " + to_base64(blob) + " " + comment;
  made.secret = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
  const auto text = to_base64(whole);
  for (std::size_t at = 0; at < text.size(); at += 70)
    made.secret += text.substr(at, 70) + "\n";
  made.secret += "-----END OPENSSH PRIVATE KEY-----\n";
  return made;
}

} // namespace troupe::api
