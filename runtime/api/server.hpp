#pragma once
// The HTTP server: a port, a few threads, the route table behind them. Idle it does nothing at all.

#include "runtime/api/accounts.hpp"
#include "runtime/api/gate.hpp"
#include "runtime/api/route.hpp"
#include "runtime/proxy/junctions.hpp"
#include "storage/journal.hpp"

namespace troupe::api {

struct tls_files { ///< PEM
  std::filesystem::path certificate, key;
};

struct listen_address {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const listen_address&, const listen_address&) = default;
};
/// "127.0.0.1:8080", "[::1]:8080", "localhost:0", ":8080" (every address). errc::invalid names what is wrong.
result<listen_address> parse_listen(std::string_view text);
/// "HOST:PORT", with brackets around an IPv6 address; no host is "0.0.0.0".
std::string to_string(const listen_address& at);
/// Is it reachable from this machine alone? False where the name does not resolve.
bool is_loopback(const std::string& host);

struct server_options {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0; ///< 0: any free one
  std::optional<tls_files> tls;
  unsigned threads = 4; ///< each has connections of its own
  cluster_identity about;
  /// Further ones wait in the kernel's queue. Of the proxy there are 4,096 at most, each two: its viewer's,
  /// and the agent's.
  std::size_t max_connections = 12'288;
  std::size_t body_memory = 512u << 20;       ///< limit of all bodies over 1 MiB that are received or handled
  std::chrono::milliseconds head_time{30000}; ///< time for a request's head to arrive
  std::chrono::milliseconds idle_time{75000}; ///< a kept connection without a request
  std::chrono::milliseconds body_time{30000}; ///< time for a body, plus a second for each `body_rate` bytes
  std::chrono::milliseconds write_time{
    30000}; ///< for an answer to be taken, plus a second per `body_rate` bytes; for each piece of a stream
  std::size_t body_rate = 64u << 10;
  std::chrono::milliseconds rights_time{5000}; ///< after which it is asked whether a stream may go on
  std::function<time_point()> now;             ///< default: the system clock
  std::vector<route> more_routes;              ///< beside the API's own
  browser_rules browsers;              ///< `loopback`, `tls` and `proxy_port` are set by the server itself
  std::optional<listen_address> pages; ///< a further port, that shows tasks' pages and nothing else
  std::function<std::unique_ptr<storage::journal>()> empty_journal; ///< see services
  std::shared_ptr<role_book> roles;                                 ///< see services
  /// Connections to services that are on their way, for who brings them within this process; empty: one is
  /// made.
  std::shared_ptr<proxy::junctions> junctions;
  bool strict_queue = false;
  token_lives tokens;
};

class server {
public:
  /// Listens before it returns: errc::conflict where the address is taken, errc::invalid where it or the
  /// certificate cannot be used, errc::denied for a port that this user may not have.
  static result<std::unique_ptr<server>> start(server_options how, gate& cluster,
                                               std::shared_ptr<storage::reader> storage,
                                               std::shared_ptr<accounts> users);
  ~server(); ///< stops

  std::uint16_t port() const;

  /// Wakes the live streams. To be called after every commit, from any thread; costs a few nanoseconds where
  /// nobody listens.
  void committed(const storage::commit_summary& what);

  /// Takes no more, lets open requests finish for at most `grace`, closes. Not from a handler's own thread.
  void stop(std::chrono::milliseconds grace = std::chrono::milliseconds{3000});

private:
  struct inside;
  explicit server(std::unique_ptr<inside> x);
  std::unique_ptr<inside> inside_;
};

} // namespace troupe::api
