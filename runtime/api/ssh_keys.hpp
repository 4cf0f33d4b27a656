#pragma once
// Keys for shells, in the form that OpenSSH reads.

#include <string>

namespace troupe::api {

struct ssh_key {
  std::string secret;      ///< "-----BEGIN OPENSSH PRIVATE KEY-----" ...: a file as ssh-keygen writes it
  std::string public_line; ///< "ssh-ed25519 AAAA... comment"
};

/// A new Ed25519 key, without a passphrase.
ssh_key fresh_ssh_key(const std::string& comment);

} // namespace troupe::api
