#pragma once
// A master of a few lines over plain sockets, and a client. A test sees every byte that is sent.

#include "runtime/forward/forwarder.hpp"

#include <arpa/inet.h>
#include <atomic>
#include <functional>
#include <mutex>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace troupe::forward::test {

inline int listen_on(std::uint16_t port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(port);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 || ::listen(fd, 64) != 0) {
    ::close(fd);
    return -1;
  }
  return fd;
}

inline std::uint16_t port_of(int fd) {
  sockaddr_in at{};
  socklen_t size = sizeof at;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
  return ntohs(at.sin_port);
}

/// One end of a connection.
class wire {
public:
  explicit wire(int fd) : fd_(fd) {}
  wire(wire&& other) noexcept : fd_(std::exchange(other.fd_, -1)), rest_(std::move(other.rest_)) {}
  ~wire() { close(); }
  void close() {
    if (fd_ >= 0)
      ::close(std::exchange(fd_, -1));
  }
  void send(const std::string& text) {
    static_cast<void>(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL));
  }

  /// Returns what has come once `end` is in it, or less if the other side closes or 10 s pass.
  std::string read_until(const std::string& end) {
    auto at = rest_.find(end);
    while (at == rest_.npos && more())
      at = rest_.find(end);
    auto taken = rest_.substr(0, at == rest_.npos ? at : at + end.size());
    rest_.erase(0, taken.size());
    return taken;
  }
  std::string read(std::size_t bytes) {
    while (rest_.size() < bytes && more())
      ;
    auto taken = rest_.substr(0, bytes);
    rest_.erase(0, taken.size());
    return taken;
  }
  /// Returns a head and the body that its Content-Length announces.
  std::string message() {
    auto head = read_until("\r\n\r\n");
    auto at = head.find("Content-Length: ");
    return at == head.npos ? head : head + read(static_cast<std::size_t>(std::atoll(head.c_str() + at + 16)));
  }
  bool closed() { return rest_.empty() && !more(); }
  void end_writing() { ::shutdown(fd_, SHUT_WR); }

private:
  bool more() {
    pollfd wait{fd_, POLLIN, 0};
    char part[65536];
    if (::poll(&wait, 1, 10'000) != 1)
      return false;
    auto n = ::recv(fd_, part, sizeof part, 0);
    if (n > 0)
      rest_.append(part, static_cast<std::size_t>(n));
    return n > 0;
  }
  int fd_;
  std::string rest_;
};

inline wire dial(std::uint16_t port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(port);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) {
    ::close(fd);
    fd = -1;
  }
  return wire{fd};
}

inline std::string answer(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// Serves each connection in a thread of its own with `serve(connection, number)`. Numbers begin at 1.
class toy_master {
public:
  using server = std::function<void(wire&, int)>;
  explicit toy_master(server serve, std::uint16_t port = 0) : serve_(std::move(serve)) {
    fd_ = listen_on(port);
    port_ = port_of(fd_);
    thread_ = std::thread([this] {
      for (int n = 1;; ++n) {
        int one = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
        if (one < 0)
          return;
        connections = n;
        others_.emplace_back([this, one, n] {
          wire w{one};
          serve_(w, n);
        });
      }
    });
  }
  ~toy_master() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
    for (auto& other : others_)
      other.join();
  }
  std::uint16_t port() const { return port_; }
  std::atomic<int> connections{0};

private:
  server serve_;
  int fd_ = -1;
  std::uint16_t port_ = 0;
  std::thread thread_;
  std::vector<std::thread> others_;
};

} // namespace troupe::forward::test
