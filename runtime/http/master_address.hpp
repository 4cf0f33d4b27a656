#pragma once
// Where an agent's process finds the master's HTTP port.

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe::http {

struct master_address {
  std::string host; ///< a name or an address without brackets
  std::uint16_t port = 0;
  std::filesystem::path ca_file; ///< TLS with certificates of this CA; empty: plain
};

} // namespace troupe::http
