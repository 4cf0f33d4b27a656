#pragma once
// A master and a service that the opener of connections of an agent meets over real sockets. The caller
// decides what the master says. Whatever that is, the service receives only the bytes that follow an upgrade,
// unchanged, and both ends close; otherwise `play` throws std::runtime_error.

#include "runtime/proxy/service_opener.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

namespace troupe {

inline void require(bool true_, const char* what) {
  if (!true_)
    throw std::runtime_error(what);
}

inline constexpr int patience_ms = 20'000; ///< for a step that usually takes a millisecond

inline bool readable(int fd, int ms = patience_ms) {
  pollfd one{fd, POLLIN, 0};
  return ::poll(&one, 1, ms) == 1;
}

struct open_port {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::uint16_t port = 0;
  open_port() {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    require(::bind(fd, reinterpret_cast<sockaddr*>(&at), size) == 0 && ::listen(fd, 16) == 0 &&
              ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) == 0,
            "a port");
    port = ntohs(at.sin_port);
  }
  int next() const {
    require(readable(fd), "nobody came");
    const int got = ::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC);
    require(got >= 0, "nobody came");
    return got;
  }
};

inline std::string rest_of(int fd) {
  std::string out;
  char piece[65536];
  for (;;) {
    require(readable(fd), "no end came");
    const auto got = ::read(fd, piece, sizeof piece);
    if (got <= 0) // a reset is an end too
      return out;
    out.append(piece, static_cast<std::size_t>(got));
  }
}

struct opener_stage {
  open_port master, service;
  bool absent = false;
  proxy::service_opener opener{{[this] {
                                  return http::master_address{"127.0.0.1", master.port, {}};
                                },
                                [this](allocation_id, const std::string&) -> result<proxy::service_target> {
                                  if (absent)
                                    return error{errc::not_found, "no such service"};
                                  return proxy::service_target{service.port, "", ""};
                                },
                                {}}};
};

/// `input` is a byte of choices and then what the master says.
inline void play(opener_stage& on, std::string_view input) {
  const auto choices = static_cast<unsigned char>(input.front());
  const auto says = input.substr(1);
  on.absent = (choices & 1) != 0;
  const std::size_t piece = std::size_t{1} << (choices >> 1 & 7) * 2;
  on.opener.open({{}, "7", "c1", "secret"});
  const int service = on.absent ? -1 : on.service.next();
  const int master = on.master.next();
  std::string asked;
  for (char c = 0; !asked.ends_with("\r\n\r\n"); asked += c)
    require(readable(master) && ::read(master, &c, 1) == 1, "no question");
  require(asked.starts_with("GET /troupe/v1/connections/c1"), "another question");
  require((asked.find("absent=true") != asked.npos) == on.absent, "what stood in the way is not said");
  for (std::size_t at = 0; at < says.size(); at += piece)
    if (const auto part = says.substr(at, piece); ::send(master, part.data(), part.size(), MSG_NOSIGNAL) < 0)
      break; // the agent has closed the connection
  ::shutdown(master, SHUT_WR);
  if (service >= 0) {
    const auto heard = rest_of(service);
    const auto before = says.substr(0, says.size() - std::min(says.size(), heard.size()));
    require(says.ends_with(heard), "the service hears other bytes");
    require(heard.empty() || before.find(" 101") != before.npos, "the service hears what is no upgrade's");
    ::close(service);
  }
  (void)rest_of(master);
  ::close(master);
}

} // namespace troupe
