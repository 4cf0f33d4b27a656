// What a master may say to an agent that brings it a connection to a service: answers, mended at random, over
// real sockets. Whatever it says, the service hears nothing but what follows an upgrade, as it came; both
// ends close; the agent goes on. No libFuzzer target: Debian's clang has no coroutines for Boost 1.74.
// TROUPE_OPENER_ANSWERS says how many (1000), TROUPE_OPENER_SEED begins elsewhere.

#include "runtime/proxy/service_opener.hpp"

#include <arpa/inet.h>
#include <cstdlib>
#include <gtest/gtest.h>
#include <poll.h>
#include <random>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

namespace troupe {
namespace {

void require(bool true_, const char* what) {
  if (!true_)
    throw std::runtime_error(what);
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

std::string rest_of(int fd) {
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

/// A byte of choices, then what the master says.
void play(stage& on, std::string_view input) {
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
      break; // it has heard enough
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

const std::string answers[] = {
  "\x04HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: troupe-connection\r\n\r\nhello",
  "\x0eHTTP/1.1 101 S\r\nContent-Length: 5\r\n\r\nhello\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
  "\x01HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}",
  "\x06HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
  "\x08HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 101 S\r\n\r\nlate",
};

std::string mended(std::mt19937& random) {
  auto text = answers[random() % std::size(answers)];
  for (auto times = random() % 6; times > 0; --times) {
    const auto at = random() % text.size(), length = 1 + random() % 12;
    switch (random() % 5) {
    case 0:
      text[at] = static_cast<char>(random());
      break;
    case 1:
      text.erase(at, length);
      break;
    case 2:
      text.insert(at, text.substr(random() % text.size(), length));
      break;
    case 3:
      text.insert(at, std::string(random() % 5000, "\r\n\0x:"[random() % 5]));
      break;
    default:
      text.resize(at + 1);
    }
    if (text.empty())
      text = "a";
  }
  return text;
}

TEST(ServiceOpener, TakesNoHarmFromWhatAMasterSays) {
  const auto number = [](const char* name, unsigned otherwise) {
    const char* text = std::getenv(name);
    return text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
  };
  std::mt19937 random(number("TROUPE_OPENER_SEED", 1));
  stage on;
  for (const auto& one : answers)
    ASSERT_NO_THROW(play(on, one)) << one;
  for (auto left = number("TROUPE_OPENER_ANSWERS", 1000); left > 0; --left) {
    const auto input = mended(random);
    ASSERT_NO_THROW(play(on, input)) << testing::PrintToString(input) << " with " << left << " left";
  }
}

} // namespace
} // namespace troupe
