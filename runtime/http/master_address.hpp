#pragma once
// Where an agent's process finds the master's HTTP port.

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe::http {

struct master_address {
  std::string host; ///< a name, or an address without brackets
  std::uint16_t port = 0;
  /// CA whose certificates TLS accepts; empty: no TLS.
  std::filesystem::path ca_file;
};

} // namespace troupe::http
