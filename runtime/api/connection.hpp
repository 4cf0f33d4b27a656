#pragma once
// One client's connection: requests in, answers and streams out. Only for server.cpp.

#include <utility> // before Asio: its coroutine header forgets it

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

/// A stream that waits for the next commit; its timer lives in its connection's loop.
struct sleeper {
  explicit sleeper(net::any_io_executor on) : timer(on) {}
  net::steady_timer timer;
};

struct server_core;

/// Wakes sleepers after a commit. A burst of commits wakes them once.
class alarm_clock {
public:
  explicit alarm_clock(server_core& core) : core_(core) {}
  void committed();
  std::uint64_t version() const { return version_; }
  /// False where something was committed after `seen`: then do not sleep.
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

/// What `stop` has to reach of a connection. Touched in the connection's loop only.
struct open_connection {
  net::any_io_executor on;
  std::function<void()> close; ///< empty once it is over
  std::function<bool()> idle;  ///< nobody is owed an answer; empty once it is over
};

/// The connections of one thread. A connection stays in its loop, so that nothing of it wakes another thread.
struct loop {
  struct context : net::io_context {
    context() : io_context(1) {}
    /// Ends all that waits in it. Of each loop before any goes, as a connection may hold on to one of
    /// another.
    void abandon() { shutdown(); }
  };
  context io;
  std::size_t open = 0; ///< connections; under server_core::mutex
};

/// Shared by all connections. Late answers from other threads hold it weakly; connections end inside their
/// loops, which are therefore the last member: they still touch the others while these go.
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
  std::atomic<std::size_t> body_bytes = 0; ///< reserved of options.body_memory
  std::atomic<std::size_t> slow_calls = 0;

  std::mutex mutex;
  std::condition_variable all_closed;
  std::set<std::shared_ptr<open_connection>> connections;
  alarm_clock clock;
  std::unique_ptr<net::thread_pool> slow; ///< one thread, from its first use on
  std::deque<loop> loops;

  net::io_context& first() { return loops.front().io; } ///< of doors, alarms and watches, too
  net::thread_pool& slow_thread();

  /// Looks after connections to services, every few seconds while there are any.
  void keep_watch();
  std::atomic<bool> watches = false;
};

/// Which of the server's ports a client called.
enum class entrance {
  api,
  pages ///< tasks' pages, and nothing else
};

/// Serves until the client goes or the server stops; `over` runs at the end, on any thread.
void serve(server_core& core, tcp::socket socket, entrance at, std::function<void()> over);

} // namespace troupe::api
