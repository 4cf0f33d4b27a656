#pragma once
// How a client finds the server, and how a node makes itself found: the lock file of a data directory says
// who holds it, and a pointer file in the user's state folder says which data directory the last `up` used.
//
// DIR/lock holds the lines "pid N", "start N" (of /proc/N/stat, so that a reused pid does not match), "boot
// ID" and "url http://HOST:PORT"; the node holds the file with flock while it lives. The text outlives a
// crash; readers check the process, not the text.

#include "model/result.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace troupe::client {

/// Reads environment variables; empty where one is not set.
using environment = std::function<std::string(const char* name)>;
std::string process_environment(const char* name);

struct lock_content {
  pid_t pid = 0;
  std::uint64_t start = 0; ///< start of the process, in ticks after boot
  std::string boot;        ///< the kernel's id of this boot
  std::string url;         ///< empty until the node listens
};

/// What this process writes into its lock file.
lock_content lock_of_this_process(std::string url);
std::string to_text(const lock_content& lock);
result<lock_content> parse_lock(std::string_view text);

/// Replaces the text of the lock file that the caller holds open and locked.
result<void> write_lock(int fd, const lock_content& lock);
/// errc::not_found where DIR has no lock file, errc::corrupt where it says something else.
result<lock_content> read_lock(const std::filesystem::path& data_dir);
/// Whether the process of the lock still runs, on this boot.
bool alive(const lock_content& lock);

/// $TROUPE_DATA_DIR, else $XDG_DATA_HOME/troupe, else ~/.local/share/troupe.
std::filesystem::path default_data_dir(const environment& env = process_environment);
/// $XDG_STATE_HOME/troupe/last-data-dir, else below ~/.local/state.
std::filesystem::path pointer_file(const environment& env = process_environment);
/// Called by a node once it holds `data_dir` (made absolute here); replaces the pointer at once or not at
/// all.
result<void> remember_data_dir(const std::filesystem::path& data_dir,
                               const environment& env = process_environment);

/// Where results are looked for while no node runs: $TROUPE_DATA_DIR, the last `up`'s, the default one.
std::filesystem::path data_dir_to_read(const environment& env = process_environment);

struct server_address {
  std::string url;                ///< "http://127.0.0.1:8080", no slash at the end
  std::string found_by;           ///< source, for messages: "--master", "TROUPE_MASTER", the data directory
  std::filesystem::path data_dir; ///< data directory of the lock file; empty: found in another way
  pid_t pid = 0;                  ///< likewise
};

/// The live node of this host that listens at `url`, where its data directory is one of those that
/// find_server looks into.
std::optional<server_address> node_of_this_host(const std::string& url,
                                                const environment& env = process_environment);

/// In this order: `master` (the flag), $TROUPE_MASTER, $TROUPE_DATA_DIR, the data directory of the last `up`,
/// the default one. Never connects. Fails with errc::unreachable and "no cluster is running" where only dead
/// leftovers are found, and with errc::invalid on a malformed address.
result<server_address> find_server(const std::string& master, const environment& env = process_environment);

/// "HOST:PORT", "HOST", "http://HOST:PORT/" -> "http://HOST:PORT"; without a port 8080 (443 for https).
/// Fails with errc::invalid.
result<std::string> master_url(std::string_view text);
/// What a client on this host dials for a listen address: "0.0.0.0:8080" -> "http://127.0.0.1:8080".
result<std::string> reachable_url(std::string_view listen, bool tls = false);

} // namespace troupe::client
