#pragma once
// Tokens that the sandboxes of an agent that died show to the master. Each agent has one; it is computed from
// a secret in the data directory, so that it is the same after a restart and nobody has to keep a list.

#include "model/result.hpp"

#include <filesystem>
#include <string>

namespace troupe::node {

class fence_tokens {
public:
  /// Reads the secret, or makes it if there is none. errc::io, errc::no_space.
  static result<fence_tokens> open(const std::filesystem::path& secret_file);
  /// Returns the agent's token, 64 hexadecimal digits. Thread-safe.
  std::string of(const std::string& agent) const;

private:
  explicit fence_tokens(std::string secret) : secret_(std::move(secret)) {}
  std::string secret_;
};

} // namespace troupe::node
