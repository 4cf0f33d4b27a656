#pragma once
// The providers of elastic pools: agents as processes of this host, and three commands of the user's.

#include "actors/provider/instance_provider.hpp"

#include <atomic>
#include <filesystem>
#include <memory>

namespace troupe::provider {

struct world {
  std::string pool;
  std::string master;                            ///< "HOST:PORT" that agents dial
  std::filesystem::path program;                 ///< this program
  std::filesystem::path folder;                  ///< of the pool's local agents; made where it is missing
  std::filesystem::path tls_dir;                 ///< empty: plain
  std::filesystem::path join_token_file;         ///< empty: agents need none
  std::shared_ptr<const std::atomic<bool>> ends; ///< true: this process ends, and no command is waited for
};

/// `settings`: `pools.NAME.provider` of a cluster file, complete. Null where its type is not known.
std::unique_ptr<instance_provider> make_provider(const value& settings, world where);

/// The lines that `list` of a command prints, `{"id", "state", "agent", "launched"}` each; "launched" in
/// seconds since 1970 or as RFC 3339. errc::corrupt with the line that is none.
result<std::vector<cloud_instance>> read_instances(std::string_view text);
/// The ids that `launch` prints, one or more in a line.
result<std::vector<std::string>> read_ids(std::string_view text);

} // namespace troupe::provider
