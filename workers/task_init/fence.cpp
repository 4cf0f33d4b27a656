#include "workers/task_init/fence.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace troupe::task_init {
namespace {

constexpr std::int64_t patience_ms = 2000;

/// 0 where `text` is no ADDRESS:PORT.
socklen_t parse(const char* text, sockaddr_storage& out) {
  char host[64] = "";
  const char* colon = strrchr(text, ':');
  const bool six = *text == '[';
  if (!colon || colon - text < 2 + 2 * six || static_cast<std::size_t>(colon - text) >= sizeof host)
    return 0;
  memcpy(host, text + six, static_cast<std::size_t>(colon - text) - 2 * six);
  auto port = htons(static_cast<std::uint16_t>(atoi(colon + 1)));
  if (six) {
    auto& a = reinterpret_cast<sockaddr_in6&>(out);
    a.sin6_family = AF_INET6;
    a.sin6_port = port;
    return inet_pton(AF_INET6, host, &a.sin6_addr) == 1 ? sizeof a : 0;
  }
  auto& a = reinterpret_cast<sockaddr_in&>(out);
  a.sin_family = AF_INET;
  a.sin_port = port;
  return inet_pton(AF_INET, host, &a.sin_addr) == 1 ? sizeof a : 0;
}

} // namespace

void fence::set(const char* address, const char* ask, const char* dead) {
  address_ = address;
  ask_ = ask;
  dead_ = dead;
}

void fence::give_up() {
  if (fd_ >= 0)
    close(fd_);
  fd_ = -1;
}

void fence::begin(bool dead) {
  give_up();
  sockaddr_storage where{};
  auto size = parse(address_, where);
  if (!size)
    return;
  fd_ = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0)
    return;
  if (connect(fd_, reinterpret_cast<sockaddr*>(&where), size) != 0 && errno != EINPROGRESS)
    return give_up();
  sent_ = false;
  about_death_ = dead;
  used_ = 0;
  gives_up_at_ms_ = boot_ms() + patience_ms;
}

fence::answer fence::on_ready() {
  if (!sent_) {
    const char* body = about_death_ ? dead_ : ask_;
    auto n = snprintf(text_, sizeof text_,
                      "POST /troupe/v1/fence HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
                      "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                      address_, strlen(body), body);
    // It fits into an empty socket's buffer, or the connection is broken.
    sent_ = static_cast<std::size_t>(n) < sizeof text_ && send(fd_, text_, static_cast<std::size_t>(n), MSG_NOSIGNAL) == n;
    if (sent_)
      return answer::none;
    give_up();
    return answer::failed;
  }
  auto n = recv(fd_, text_ + used_, sizeof text_ - 1 - used_, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return answer::none;
  if (n > 0) {
    used_ += static_cast<std::size_t>(n);
    if (used_ < sizeof text_ - 1)
      return answer::none;
  }
  give_up(); // all of it is here: the connection ends with the answer
  text_[used_] = 0;
  if (strncmp(text_, "HTTP/1.1 200 ", 13) != 0)
    return answer::failed;
  return strstr(text_, "\"kill\":true") ? answer::kill : answer::go_on;
}

} // namespace troupe::task_init
