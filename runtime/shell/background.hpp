#pragma once
// What an interactive session learns without a command: events of the cluster, and the names that Tab offers.
// Each part has its own thread, connection and bounded queue, and dials again as long as it lives.

#include "runtime/shell/api.hpp"
#include "runtime/shell/completion.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace troupe::shell {

/// The events of the cluster, printed above the prompt.
class event_feed {
public:
  static constexpr std::size_t most_waiting = 200;

  /// Audit rows of `own_user` are left out, because that user sees the answers.
  event_feed(client::server_address where, client::server_options options, std::string own_user);
  ~event_feed();

  int fd() const { return fd_; } ///< readable while something waits to be shown
  struct news {
    std::vector<value> rows;
    std::size_t dropped = 0;
    std::string link; ///< "the connection to ... is lost", "... is back"; may be empty
  };
  news take();

private:
  void run();
  void wake();

  std::atomic<bool> stop_{false};
  api api_;
  std::string where_, own_user_;
  int fd_ = -1;
  std::mutex mutex_;
  news waiting_;
  std::thread thread_;
};

/// Names of actors, nodes and messages. They are refreshed when they are asked for and some seconds old.
class name_cache {
public:
  name_cache(client::server_address where, client::server_options options);
  ~name_cache();

  /// The known names; waits at most `patience` for names that were never read.
  live_names get(std::chrono::milliseconds patience);

private:
  void run();

  std::atomic<bool> stop_{false};
  api api_;
  std::mutex mutex_;
  std::condition_variable changed_;
  live_names names_;
  bool wanted_ = true, loaded_ = false;
  std::chrono::steady_clock::time_point read_at_{};
  std::thread thread_;
};

} // namespace troupe::shell
