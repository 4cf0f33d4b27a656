#pragma once
// The shell's calls of the cluster's HTTP API, which Ctrl-C ends, and its streams of rows.

#include "runtime/client/server.hpp"
#include "runtime/client/sse.hpp"

#include <atomic>
#include <functional>

namespace troupe::shell {

/// An element of a stream: a row, the number of dropped rows, or the end.
struct stream_event {
  enum class kind { row, lost, end } what = kind::row;
  value data; ///< lost: {"count"}; end: {"seen", "shown", "dropped", "why"}
};

/// Not thread-safe. Errors are those of client::server.
class row_stream {
public:
  row_stream(client::server& from, std::string path, client::query with);

  /// Waits at most `wait`. An empty list does not mean the end; `ended()` does. Fails where the stream is
  /// refused or breaks.
  result<std::vector<stream_event>> read(std::chrono::milliseconds wait);
  bool ended() const { return ended_; }
  bool open() const { return answered_; } ///< whether the server has accepted the stream

private:
  client::server& from_;
  std::string path_;
  client::query with_;
  std::unique_ptr<client::http_stream> stream_;
  client::sse_parser parser_{1 << 20};
  bool answered_ = false, ended_ = false, logged_in_again_ = false;
};

/// Not thread-safe: each thread has its own.
class api {
public:
  /// Checks `interrupted`, which must outlive this object, while it waits for an answer.
  api(client::server_address where, client::server_options options,
      const std::atomic<bool>* interrupted = nullptr);

  const client::server_address& where() const { return server_.where(); }
  bool find_again() { return server_.find_again(); }

  /// Waits at most 30 s. Fails with errc::timeout and "interrupted" after Ctrl-C.
  result<value> get(const std::string& path, const client::query& with = {});
  result<value> post(const std::string& path, const value& body);
  /// `get` calls it about every 100 ms while it waits; where it returns true, `get` gives up as after Ctrl-C.
  void set_idle(std::function<bool()> idle) { idle_ = std::move(idle); }
  row_stream stream(const std::string& path, client::query with) { return {server_, path, std::move(with)}; }

private:
  client::server server_;
  const std::atomic<bool>* interrupted_;
  std::function<bool()> idle_;
};

/// All routes of the shell are below this path.
inline std::string route(const std::string& name) { return "/troupe/v1/shell/" + name; }

} // namespace troupe::shell
