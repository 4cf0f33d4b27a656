#pragma once
// The connection of one client: it reads requests and writes answers and streams. Only server.cpp uses this.

#include <utility> // has to come before Asio, whose coroutine header forgets to include it

#include "runtime/api/server.hpp"
#include "runtime/api/service.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <set>

namespace troupe::api {

namespace net = boost::asio;
using tcp = net::ip::tcp;

/// A stream that waits for the next commit. Its timer belongs to the loop of its connection.
struct sleeper {
  explicit sleeper(net::any_io_executor on) : timer(on) {}
  net::steady_timer timer;
};

struct server_core;

/// Wakes sleepers after a commit. Commits in quick succession wake them once.
class alarm_clock {
public:
  explicit alarm_clock(server_core& core) : core_(core) {}
  void committed();
  std::uint64_t version() const { return version_; }
  /// Registers a sleeper that knows the version `seen`. False where a commit came after it: then the caller
  /// must not sleep.
  bool enter(const std::shared_ptr<sleeper>& who, std::uint64_t seen);
  void leave(const std::shared_ptr<sleeper>& who);

private:
  void ring();

  server_core& core_;
  std::atomic<std::uint64_t> version_ = 0;
  std::atomic<std::size_t> waiting_ = 0;
  std::atomic<bool> ringing_ = false;
  std::mutex mutex_;
  std::set<std::shared_ptr<sleeper>> sleepers_;
};

/// What `stop` needs of a connection. Used only in the connection's loop.
struct open_connection {
  net::any_io_executor on;
  std::function<void()> close; ///< empty once the connection has ended
  /// Whether no request waits for its answer; empty once the connection has ended.
  std::function<bool()> idle;
};

/// The connections of one thread. A connection stays in its loop, so that it never has to wake another
/// thread.
struct loop {
  struct context : net::io_context {
    context() : io_context(1) {}
    /// Ends everything that waits in this loop. All loops have to be abandoned before one is destroyed,
    /// because a connection may refer to a connection of another loop.
    void abandon() { shutdown(); }
  };
  context io;
  std::size_t open = 0; ///< number of connections; guarded by server_core::mutex
};

/// The state that all connections share. Late answers from other threads hold it weakly. Connections end
/// while their loops are destroyed and still use the other members then, so the loops are the last member.
struct server_core : std::enable_shared_from_this<server_core> {
  server_core(server_options how, services parts)
      : options(std::move(how)), api(std::move(parts), options.more_routes), clock(*this),
        loops(std::max(options.threads, 1u)) {}
  ~server_core() {
    for (auto& one : loops)
      one.io.abandon();
  }

  server_options options;
  service api;
  std::optional<net::ssl::context> tls;
  std::atomic<bool> stopping = false;
  std::atomic<std::size_t> body_bytes = 0; ///< bytes of options.body_memory that are reserved
  std::atomic<std::size_t> slow_calls = 0;

  std::mutex mutex;
  std::condition_variable all_closed;
  std::set<std::shared_ptr<open_connection>> connections;
  alarm_clock clock;
  std::unique_ptr<net::thread_pool> slow; ///< one thread, started when first used
  std::deque<loop> loops;

  net::io_context& first() { return loops.front().io; } ///< also runs acceptors, alarms and watches
  net::thread_pool& slow_thread();

  /// Checks connections to services every few seconds while there are any.
  void keep_watch();
  std::atomic<bool> watches = false;
};

/// Which of the server's ports a client called.
enum class entrance {
  api,
  pages ///< the port that shows only tasks' pages
};

/// Serves the connection until the client closes it or the server stops. `over` then runs, on any thread.
void serve(server_core& core, tcp::socket socket, entrance at, std::function<void()> over);

} // namespace troupe::api
