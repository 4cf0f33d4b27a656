#include "fake_server.hpp"

#include <arpa/inet.h>
#include <cstring>
#include <netinet/in.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

namespace troupe {

void fake_server::connection::send(const std::string& bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    auto wrote = ::send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (wrote <= 0)
      return;
    at += static_cast<std::size_t>(wrote);
  }
}

void fake_server::connection::answer(int status, const std::string& body, const std::string& more_headers) {
  send("HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: application/json\r\nContent-Length: " +
       std::to_string(body.size()) + "\r\n" + more_headers + "\r\n" + body);
}

void fake_server::connection::begin_stream(const std::string& content_type) {
  send("HTTP/1.1 200 OK\r\nContent-Type: " + content_type + "\r\nConnection: close\r\n\r\n");
}

void fake_server::connection::wait_for_end() {
  char byte;
  while (::recv(fd_, &byte, 1, 0) > 0)
    ;
}

fake_server::fake_server(handler h, int port) : handler_(std::move(h)) {
  listen_fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int yes = 1;
  ::setsockopt(listen_fd_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::bind(listen_fd_, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 || ::listen(listen_fd_, 16) != 0)
    throw std::runtime_error(std::strerror(errno));
  socklen_t size = sizeof at;
  ::getsockname(listen_fd_, reinterpret_cast<sockaddr*>(&at), &size);
  port_ = ntohs(at.sin_port);
  acceptor_ = std::thread([this] { accept_loop(); });
}

fake_server::~fake_server() {
  stopping_ = true;
  ::shutdown(listen_fd_, SHUT_RDWR);
  acceptor_.join();
  {
    std::lock_guard lock(mutex_);
    for (int fd : open_)
      ::shutdown(fd, SHUT_RDWR);
  }
  for (auto& t : threads_)
    t.join();
  for (int fd : open_)
    ::close(fd);
  ::close(listen_fd_);
}

std::vector<fake_server::received> fake_server::requests() {
  std::lock_guard lock(mutex_);
  return requests_;
}

void fake_server::accept_loop() {
  while (!stopping_) {
    int fd = ::accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0)
      return;
    std::lock_guard lock(mutex_);
    open_.push_back(fd);
    threads_.emplace_back([this, fd] { serve(fd); });
  }
}

void fake_server::serve(int fd) {
  std::string bytes;
  char part[4096];
  auto fill = [&] {
    auto got = ::recv(fd, part, sizeof part, 0);
    if (got > 0)
      bytes.append(part, static_cast<std::size_t>(got));
    return got > 0;
  };
  for (;;) {
    std::size_t end;
    while ((end = bytes.find("\r\n\r\n")) == std::string::npos)
      if (!fill())
        return;
    received r;
    r.head = bytes.substr(0, end);
    bytes.erase(0, end + 4);
    auto space = r.head.find(' ');
    r.method = r.head.substr(0, space);
    r.target = r.head.substr(space + 1, r.head.find(' ', space + 1) - space - 1);
    std::size_t length = 0;
    if (auto at = r.head.find("Content-Length: "); at != std::string::npos)
      length = std::stoul(r.head.substr(at + 16));
    while (bytes.size() < length)
      if (!fill())
        return;
    r.body = bytes.substr(0, length);
    bytes.erase(0, length);
    {
      std::lock_guard lock(mutex_);
      requests_.push_back(r);
    }
    connection c(fd);
    handler_(r, c);
    if (r.target.find("/events") != std::string::npos || r.target.find("close") != std::string::npos) {
      ::shutdown(fd, SHUT_RDWR);
      return;
    }
  }
}

} // namespace troupe
