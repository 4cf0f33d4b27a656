#include "workers/task_init/fence.hpp"

#include <arpa/inet.h>
#include <csignal>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>

namespace troupe::task_init {
namespace {

constexpr std::int64_t patience_ms = 2000;

/// Returns 0 where `text` is not ADDRESS:PORT.
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

void fence::give_up() {
  if (child_ >= 0) {
    syscall(SYS_pidfd_send_signal, child_, SIGKILL, nullptr, 0);
    close(child_);
  }
  if (fd_ >= 0)
    close(fd_);
  fd_ = child_ = -1;
}

void fence::begin(bool dead) {
  give_up();
  about_death_ = dead;
  used_ = 0;
  gives_up_at_ms_ = boot_ms() + patience_ms;
  if (at_.by_program)
    start_program();
  else
    connect_to_master();
}

void fence::connect_to_master() {
  sockaddr_storage where{};
  auto size = parse(at_.address, where);
  if (!size)
    return;
  fd_ = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0)
    return;
  if (connect(fd_, reinterpret_cast<sockaddr*>(&where), size) != 0 && errno != EINPROGRESS)
    return give_up();
  sent_ = false;
}

void fence::start_program() {
  char* told = nullptr;
  const int bytes = asprintf(&told, "%s\n%s\n%s", at_.address, about_death_ ? at_.dead : at_.ask, at_.ca);
  int in[2] = {-1, -1}, out[2] = {-1, -1};
  // The program is started only if its input fits into an empty pipe: nothing here may block.
  bool ready = bytes > 0 && pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 &&
               fcntl(in[1], F_SETFL, O_NONBLOCK) == 0 &&
               write(in[1], told, static_cast<std::size_t>(bytes)) == bytes;
  free(told);
  const pid_t pid = ready ? fork() : -1;
  if (pid == 0) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    dup2(in[0], 0);
    dup2(out[1], 1);
    char name[] = "troupe", verb[] = "--fence";
    char* arguments[] = {name, verb, nullptr};
    char* environment[] = {nullptr};
    syscall(SYS_execveat, at_.program, "", arguments, environment, AT_EMPTY_PATH);
    _exit(127);
  }
  if (pid > 0) {
    child_ = static_cast<int>(
      syscall(SYS_pidfd_open, pid, 0)); // this thread reaps, so the pid is still the program's
    fd_ = out[0];
    out[0] = -1;
    fcntl(fd_, F_SETFL, O_NONBLOCK);
    sent_ = true;
  }
  const int ends[] = {in[0], in[1], out[0], out[1]};
  for (int end : ends)
    if (end >= 0)
      close(end);
}

fence::answer fence::on_ready() {
  if (!sent_) {
    const char* body = about_death_ ? at_.dead : at_.ask;
    auto n = snprintf(text_, sizeof text_,
                      "POST /troupe/v1/fence HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
                      "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                      at_.address, strlen(body), body);
    // The request fits into an empty socket's buffer, unless the connection is broken.
    sent_ = static_cast<std::size_t>(n) < sizeof text_ &&
            send(fd_, text_, static_cast<std::size_t>(n), MSG_NOSIGNAL) == n;
    if (sent_)
      return answer::none;
    give_up();
    return answer::failed;
  }
  auto n = read(fd_, text_ + used_, sizeof text_ - 1 - used_);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return answer::none;
  if (n > 0) {
    used_ += static_cast<std::size_t>(n);
    if (used_ < sizeof text_ - 1)
      return answer::none;
  }
  give_up(); // the connection, or the program, ends with the answer, so the answer is complete
  text_[used_] = 0;
  return read_answer();
}

fence::answer fence::read_answer() {
  if (at_.by_program)
    return strcmp(text_, "kill\n") == 0 ? answer::kill
           : strcmp(text_, "go\n") == 0 ? answer::go_on
                                        : answer::failed;
  if (strncmp(text_, "HTTP/1.1 200 ", 13) != 0)
    return answer::failed;
  return strstr(text_, "\"kill\":true") ? answer::kill : answer::go_on;
}

} // namespace troupe::task_init
