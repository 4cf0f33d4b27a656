#pragma once
// SSH keys for shells, in the form that OpenSSH reads.

#include <string>

namespace troupe::api {

struct ssh_key {
  /// The private key as ssh-keygen writes it to a file: "-----BEGIN OPENSSH PRIVATE KEY-----" ...
  std::string secret;
  std::string public_line; ///< "ssh-ed25519 AAAA... comment"
};

/// Makes an Ed25519 key without a passphrase.
ssh_key fresh_ssh_key(const std::string& comment);

} // namespace troupe::api
