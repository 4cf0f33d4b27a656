#pragma once
// The providers of elastic pools: agents as processes of this host, and three commands of the user.

#include "actors/provider/instance_provider.hpp"

#include <atomic>
#include <filesystem>
#include <memory>

namespace troupe::provider {

struct world {
  std::string pool;
  std::string master;                    ///< address that agents dial, "HOST:PORT"
  std::filesystem::path program;         ///< path of this program
  std::filesystem::path folder;          ///< folder of the pool's local agents; made if it is missing
  std::filesystem::path tls_dir;         ///< empty: no TLS
  std::filesystem::path join_token_file; ///< empty: agents need no token
  /// True once this process ends: then it no longer waits for a command.
  std::shared_ptr<const std::atomic<bool>> ends;
};

/// `settings`: the complete `pools.NAME.provider` of a cluster file. Null if its type is not known.
std::unique_ptr<instance_provider> make_provider(const value& settings, world where);

/// Reads the lines that the command `list` prints, each `{"id", "state", "agent", "launched"}`; "launched" is
/// in seconds since 1970 or as RFC 3339. errc::corrupt with the line that cannot be read.
result<std::vector<cloud_instance>> read_instances(std::string_view text);
/// Reads the ids that the command `launch` prints, one or more in a line.
result<std::vector<std::string>> read_ids(std::string_view text);

} // namespace troupe::provider
