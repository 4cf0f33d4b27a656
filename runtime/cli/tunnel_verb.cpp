#include "runtime/cli/interrupt.hpp"
#include "runtime/cli/session.hpp"
#include "runtime/cli/verbs.hpp"
#include "runtime/client/server.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <mutex>
#include <ostream>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace troupe::cli::verbs {
namespace {

constexpr std::size_t most_waiting = 65'536; ///< bytes that wait in each direction
constexpr std::size_t one_write = 4096;      ///< a pipe that is ready takes this many bytes without waiting
constexpr int most_connections = 64;

/// Passes bytes between two descriptors and the service, until both directions have ended. `in` and `out` may
/// be the same socket.
result<void> carry(client::http_upgrade& service, int in, int out, bool socket) {
  std::string up, down; // bytes that wait to be written
  bool in_over = false, service_over = false, ended = false;
  while (!service_over || !down.empty()) {
    if (down.size() < most_waiting && !service_over) { // some may wait inside of TLS, where no poll sees it
      auto got = service.read();
      if (!got)
        return got.error();
      down += got->bytes;
      service_over = got->over;
    }
    if (!up.empty()) {
      auto sent = service.write(up);
      if (!sent)
        return sent.error();
      up.erase(0, *sent);
    }
    if (in_over && up.empty() && !std::exchange(ended, true))
      service.end_writing();
    pollfd wait[3] = {
      {service.descriptor(),
       static_cast<short>((down.size() < most_waiting && !service_over ? POLLIN : 0) |
                          (up.empty() ? 0 : POLLOUT)),
       0},
      {in_over || up.size() >= most_waiting ? -1 : in, POLLIN, 0},
      {down.empty() ? -1 : out, POLLOUT, 0},
    };
    if (service_over && up.empty())
      wait[0].fd = -1;
    if (service_over && down.empty())
      break;
    if (::poll(wait, 3, -1) < 0 && errno != EINTR)
      return error{errc::io, std::string("poll: ") + std::strerror(errno)};
    if (wait[1].revents) {
      char bytes[32'768];
      const auto n = ::read(in, bytes, sizeof bytes);
      if (n > 0)
        up.append(bytes, static_cast<std::size_t>(n));
      else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        in_over = true;
    }
    if (wait[2].revents) {
      const auto n = socket ? ::send(out, down.data(), down.size(), MSG_NOSIGNAL | MSG_DONTWAIT)
                            : ::write(out, down.data(), std::min(down.size(), one_write));
      if (n > 0)
        down.erase(0, static_cast<std::size_t>(n));
      else if (n < 0 && errno != EAGAIN && errno != EINTR)
        return error{errc::io, std::string("who reads has gone: ") + std::strerror(errno)};
    }
  }
  if (socket)
    ::shutdown(out, SHUT_WR);
  return {};
}

struct local_address {
  sockaddr_storage at{};
  socklen_t size = 0;
};

/// "127.0.0.1:8080", "[::1]:8080": only addresses, because a name may be another host's.
result<local_address> address_of(const std::string& text) {
  const error wrong{errc::invalid, "--listen '" + text + "' is not ADDRESS:PORT, as 127.0.0.1:8080"};
  const auto colon = text.rfind(':');
  if (colon == text.npos)
    return wrong;
  auto host = text.substr(0, colon);
  std::uint16_t port = 0;
  const auto* last = text.data() + text.size();
  if (auto [end, bad] = std::from_chars(text.data() + colon + 1, last, port);
      bad != std::errc{} || end != last)
    return wrong;
  if (host == "localhost")
    host = "127.0.0.1";
  local_address out;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&out.at);
  if (::inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    out.size = sizeof *v4;
    return out;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.at);
  if (host.size() < 2 || ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6->sin6_addr) != 1)
    return wrong;
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(port);
  out.size = sizeof *v6;
  return out;
}

std::string text_of(int listener) {
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size);
  char host[INET6_ADDRSTRLEN] = "";
  if (at.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&at);
    ::inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
    return "[" + std::string(host) + "]:" + std::to_string(ntohs(v6->sin6_port));
  }
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(&at);
  ::inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
  return std::string(host) + ":" + std::to_string(ntohs(v4->sin_port));
}

struct shared_server {
  std::mutex mutex; ///< guards `cluster`, which is not thread-safe, and the console
  client::server& cluster;
  session& s;
  std::string service;
  std::atomic<int> open{0};

  void serve(int socket) {
    auto way = [&] {
      std::lock_guard lock(mutex);
      return cluster.tunnel(service);
    }();
    auto done = way ? carry(**way, socket, socket, true) : result<void>(way.error());
    if (!done) {
      const linger reset{1, 0}; // the local program must not take it for an end of the service
      ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      std::lock_guard lock(mutex);
      s.fail(done.error());
    }
    ::close(socket);
    --open;
  }
};

int serve_port(session& s, client::server& cluster, const std::string& service, const std::string& address) {
  auto where = address_of(address);
  if (!where)
    return s.fail(where.error());
  const int listener = ::socket(where->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (listener < 0 || ::bind(listener, reinterpret_cast<const sockaddr*>(&where->at), where->size) != 0 ||
      ::listen(listener, 64) != 0)
    return s.fail({errc::conflict, "cannot listen on " + address + ": " + std::strerror(errno)});
  if (auto first = cluster.tunnel(service); !first) // a wrong name fails now, and not at the first connection
    return s.fail(first.error());
  s.io.err << "forwarding " << text_of(listener) << " to " << service << "; Ctrl-C ends it\n" << std::flush;
  interrupt_watch interrupted;
  shared_server all{{}, cluster, s, service};
  while (!interrupted.seen()) {
    pollfd wait{all.open < most_connections ? listener : -1, POLLIN, 0};
    if (::poll(&wait, 1, 200) <= 0)
      continue;
    const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0)
      continue;
    ++all.open;
    std::thread([&all, socket] { all.serve(socket); }).detach();
  }
  ::close(listener);
  std::_Exit(0); // open connections end with the process
}

} // namespace

int tunnel(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  const auto service = given.text("SERVICE");
  if (const auto listen = given.text("--listen"); !listen.empty())
    return serve_port(s, **cluster, service, listen);
  auto way = (*cluster)->tunnel(service);
  if (!way)
    return s.fail(way.error());
  auto done = carry(**way, STDIN_FILENO, STDOUT_FILENO, false);
  return done ? 0 : s.fail(done.error());
}

} // namespace troupe::cli::verbs
