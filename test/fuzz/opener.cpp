// Input: a byte of choices, then what a master says to an agent that brings it a connection to a service.
// Over real sockets. Whatever it says: the service hears nothing but what follows an upgrade, as it came;
// both ends close; the agent goes on.

#include "runtime/proxy/service_opener.hpp"

#include <arpa/inet.h>
#include <cstdlib>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace troupe;

namespace {

void require(bool true_) {
  if (!true_)
    std::abort();
}

constexpr int patience_ms = 20'000; ///< of a step that takes a millisecond

bool readable(int fd, int ms = patience_ms) {
  pollfd one{fd, POLLIN, 0};
  return ::poll(&one, 1, ms) == 1;
}

struct listener {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::uint16_t port = 0;
  listener() {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    require(::bind(fd, reinterpret_cast<sockaddr*>(&at), size) == 0 && ::listen(fd, 16) == 0 &&
            ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    port = ntohs(at.sin_port);
  }
  int next() const {
    require(readable(fd));
    const int got = ::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC);
    require(got >= 0);
    return got;
  }
};

std::string rest_of(int fd) {
  std::string out;
  char piece[65536];
  for (;;) {
    require(readable(fd));
    const auto got = ::read(fd, piece, sizeof piece);
    if (got <= 0) // a reset is an end too
      return out;
    out.append(piece, static_cast<std::size_t>(got));
  }
}

struct stage {
  listener master, service;
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

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static stage on;
  if (size == 0)
    return 0;
  const std::string_view says(reinterpret_cast<const char*>(data) + 1, size - 1);
  on.absent = (data[0] & 1) != 0;
  const std::size_t piece = std::size_t{1} << (data[0] >> 1 & 7) * 2;
  on.opener.open({{}, "7", "c1", "secret"});
  const int service = on.absent ? -1 : on.service.next();
  const int master = on.master.next();
  std::string asked;
  for (char c = 0; !asked.ends_with("\r\n\r\n"); asked += c)
    require(readable(master) && ::read(master, &c, 1) == 1);
  require(asked.starts_with("GET /troupe/v1/connections/c1") &&
          (asked.find("absent=true") != asked.npos) == on.absent);
  for (std::size_t at = 0; at < says.size(); at += piece)
    if (const auto part = says.substr(at, piece); ::send(master, part.data(), part.size(), MSG_NOSIGNAL) < 0)
      break; // it has heard enough
  ::shutdown(master, SHUT_WR);
  if (service >= 0) {
    const auto heard = rest_of(service);
    require(says.ends_with(heard) &&
            (heard.empty() || says.substr(0, says.size() - heard.size()).find(" 101") != says.npos));
    ::close(service);
  }
  (void)rest_of(master);
  ::close(master);
  return 0;
}
