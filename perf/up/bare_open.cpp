// The floor of a start: a program that opens the column families of a data directory with RocksDB's defaults
// and answers its first HTTP request. Usage: perf_bare_open DIRECTORY PORT

#include "perf/bare_families.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc != 3)
    return std::fprintf(stderr, "usage: perf_bare_open DIRECTORY PORT\n"), 2;
  const bare_families families(argv[1]);
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(std::atoi(argv[2])));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(listener, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 || ::listen(listener, 8) != 0)
    return std::perror("perf_bare_open"), 1;
  for (;;) {
    const int peer = ::accept(listener, nullptr, nullptr);
    char request[4096];
    static constexpr char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    if (::read(peer, request, sizeof request) > 0 && ::write(peer, answer, sizeof answer - 1) < 0)
      std::perror("perf_bare_open");
    ::close(peer);
  }
}
