#pragma once
// Which addresses a webhook may call. Pure; runtime/node/webhook_courier.hpp dials.

#include <string>
#include <vector>

namespace troupe {

/// The addresses that may be dialled. They are checked after a name was resolved, on the very address that is
/// dialled. Those where clouds keep their secrets (169.254.0.0/16, fe80::/10 and others), and those that are
/// not of one host, are never allowed.
struct webhook_targets {
  bool local = false; ///< whether loopback and private addresses are allowed
  /// Names of hosts, addresses and ranges (10.1.0.0/16) that may be dialled as well.
  std::vector<std::string> allow;

  /// `host`: the host in the webhook's address; `address`: the address to which it was resolved. Returns why
  /// `address` may not be dialled; empty: it may.
  std::string refuses(const std::string& host, const std::string& address) const;
};

/// Why no webhook may name `host`, where it is an address that is never allowed, in any notation; empty: it
/// is allowed, or a name.
std::string never_a_target(const std::string& host);

} // namespace troupe
