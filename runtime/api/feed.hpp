#pragma once
// Rows on their way from the cluster to one reader over server-sent events. The queue is bounded: rows that a
// slow reader does not take are dropped and counted, and the reader is told the count.

#include "runtime/api/gate.hpp"
#include "runtime/api/http.hpp"

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>

namespace troupe::api {

/// Thread-safe.
class feed {
public:
  explicit feed(std::size_t most = 1024) : most_(most) {}
  void push(value row);
  void end(value row); ///< the last row; rows that come later are ignored
  /// Says that nobody reads any more, so that callers of `push` can stop.
  void close() { closed_.store(true, std::memory_order_relaxed); }
  bool closed() const { return closed_.load(std::memory_order_relaxed); }

  struct part {
    std::vector<value> rows;
    std::uint64_t lost = 0; ///< number of rows that were dropped before the first of these
    std::optional<value> end;
  };
  part take(std::size_t most);

private:
  const std::size_t most_;
  std::mutex mutex_;
  std::deque<value> rows_;
  std::uint64_t lost_ = 0;
  std::optional<value> end_;
  std::atomic<bool> closed_{false};
};

/// A gate through which a reader can watch the cluster.
class feed_gate {
public:
  virtual ~feed_gate() = default;
  /// Like gate::order, for shell_trace, shell_follow and shell_events. Answers once rows flow into `to`, or
  /// with the error.
  template <commands::command C>
  void watch(const principal& who, C what, std::shared_ptr<feed> to, answer done) {
    open(who, C::is.name, commands::write(std::move(what)), std::move(to), std::move(done));
  }
  virtual void open(const principal& who, const std::string& command, value fields, std::shared_ptr<feed> to,
                    answer done) = 0;
};

/// One server-sent event: `data` alone, or with the event's name.
std::string sse_event(const value& data, const char* name = nullptr);

/// A body that sends the rows of a feed up to its end. It closes the feed when the reader goes.
std::unique_ptr<body_stream> feed_stream(std::shared_ptr<feed> from);

} // namespace troupe::api
