#pragma once
// A hand-written HTTP server on a loopback port. A test says what each request gets, byte by byte where
// needed.

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace troupe {

class fake_server {
public:
  struct received {
    std::string method, target, head, body;
  };
  /// A connection on which a request came in. Writing to a peer that has gone does nothing.
  class connection {
  public:
    explicit connection(int fd) : fd_(fd) {}
    void send(const std::string& bytes);
    void answer(int status, const std::string& body, const std::string& more_headers = "");
    /// Sends the head of a stream that ends with the connection.
    void begin_stream(const std::string& content_type);
    /// Waits until the client has gone or the server stops.
    void wait_for_end();

  private:
    int fd_;
  };
  using handler = std::function<void(const received&, connection&)>;

  /// Listens at once; `port` 0 takes a free port. Every connection has a thread of its own, which handles one
  /// request.
  explicit fake_server(handler h, int port = 0);
  ~fake_server();

  int port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<received> requests();

private:
  void accept_loop();
  void serve(int fd);

  handler handler_;
  int listen_fd_ = -1, port_ = 0;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<received> requests_;
  std::vector<int> open_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

} // namespace troupe
