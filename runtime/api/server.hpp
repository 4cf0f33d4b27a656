#pragma once
// The HTTP server: it listens at a port, and a few threads answer requests from the route table. An idle
// server uses no processor time.

#include "runtime/api/accounts.hpp"
#include "runtime/api/gate.hpp"
#include "runtime/api/route.hpp"
#include "runtime/proxy/junctions.hpp"
#include "storage/journal.hpp"

namespace troupe::api {

struct tls_files { ///< files in PEM format
  std::filesystem::path certificate, key;
};

struct listen_address {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const listen_address&, const listen_address&) = default;
};
/// Reads "127.0.0.1:8080", "[::1]:8080", "localhost:0" or ":8080" (every address). Fails with errc::invalid,
/// and names what is wrong.
result<listen_address> parse_listen(std::string_view text);
/// "HOST:PORT", with brackets around an IPv6 address. An empty host becomes "0.0.0.0".
std::string to_string(const listen_address& at);
/// Whether only this machine can reach the host. False where the name does not resolve.
bool is_loopback(const std::string& host);

struct server_options {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0; ///< 0: any free port
  std::optional<tls_files> tls;
  unsigned threads = 4; ///< number of threads; each serves connections of its own
  cluster_identity about;
  /// Further connections wait in the kernel's queue. At most 4,096 connections of viewers pass through the
  /// proxy; each takes two, the viewer's and the agent's.
  std::size_t max_connections = 12'288;
  std::size_t body_memory = 512u << 20;       ///< limit of all bodies over 1 MiB that are received or handled
  std::chrono::milliseconds head_time{30000}; ///< time for a request's head to arrive
  std::chrono::milliseconds idle_time{75000}; ///< time that a connection stays open without a request
  /// Time for a body to arrive, plus a second for each `body_rate` bytes.
  std::chrono::milliseconds body_time{30000};
  /// Time for the client to take an answer, or one piece of a stream, plus a second for each `body_rate`
  /// bytes.
  std::chrono::milliseconds write_time{30000};
  std::size_t body_rate = 64u << 10;
  std::chrono::milliseconds rights_time{5000}; ///< pause between two checks of whether a stream may go on
  std::function<time_point()> now;             ///< clock; default: the system clock
  std::vector<route> more_routes;              ///< routes beside the API's own
  browser_rules browsers;              ///< `loopback`, `tls` and `proxy_port` are set by the server itself
  std::optional<listen_address> pages; ///< a further port that shows only tasks' pages
  std::function<std::unique_ptr<storage::journal>()> empty_journal; ///< see services
  std::shared_ptr<role_book> roles;                                 ///< see services
  /// Connections to services that were asked for and are not there yet, for an agent in this process that
  /// brings them. Null: the server makes the table.
  std::shared_ptr<proxy::junctions> junctions;
  bool strict_queue = false;
  token_lives tokens;
};

class server {
public:
  /// Listens before it returns. Fails with errc::conflict where the address is taken, with errc::invalid
  /// where the address or the certificate cannot be used, with errc::denied for a port that this user may not
  /// open.
  static result<std::unique_ptr<server>> start(server_options how, gate& cluster,
                                               std::shared_ptr<storage::reader> storage,
                                               std::shared_ptr<accounts> users);
  ~server(); ///< calls `stop`

  std::uint16_t port() const;

  /// Wakes the live streams. The node calls it after every commit, from any thread; it costs a few
  /// nanoseconds where no stream waits.
  void committed(const storage::commit_summary& what);

  /// Accepts no more connections, lets open requests finish for at most `grace`, and closes. Must not be
  /// called from a handler's own thread.
  void stop(std::chrono::milliseconds grace = std::chrono::milliseconds{3000});

private:
  struct inside;
  explicit server(std::unique_ptr<inside> x);
  std::unique_ptr<inside> inside_;
};

} // namespace troupe::api
