// The line protocol of task_format.hpp on the task's socket.

#include "workers/task_init/supervisor.hpp"

#include "workers/task_init/task_format.hpp"

#include <csignal>
#include <sys/socket.h>

#include <sys/stat.h>
#include <sys/un.h>

namespace troupe::task_init {

fault listen_here(int& listener) {
  int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path, task_format::socket_file); // relative, because the folder's path may be too long
  unlink(task_format::socket_file);
  if (made >= 0 && bind(made, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      chmod(task_format::socket_file, 0600) == 0 && listen(made, 16) == 0) {
    listener = made;
    return {};
  }
  auto why = complain("socket: %s", strerror(errno));
  if (made >= 0)
    close(made);
  return why;
}

void supervisor::accept_connection() {
  int fd = accept4(box_.listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0)
    return;
  for (auto& c : connections_)
    if (c.fd < 0) {
      c.fd = fd;
      c.used = 0;
      lonely_since_ms_ = 0;
      return tell_state(c);
    }
  // The oldest connection is dropped: its agent is the likeliest to be dead, and only a live agent dials.
  drop(connections_[0]);
  connections_[0].fd = fd;
  connections_[0].used = 0;
  lonely_since_ms_ = 0;
  tell_state(connections_[0]);
}

void supervisor::drop(connection& c) {
  if (c.fd < 0)
    return;
  close(c.fd);
  c.fd = -1;
  for (auto& fd : c.passed) {
    if (fd >= 0)
      close(fd);
    fd = -1;
  }
  for (auto& other : connections_)
    if (other.fd >= 0)
      return;
  lonely_since_ms_ = boot_ms();
  wait_for_an_agent();
}

/// A peer that does not read loses its connection; when it dials again it hears the state.
void supervisor::tell(connection& c, const char* text) {
  auto n = strlen(text);
  if (c.fd >= 0 && send(c.fd, text, n, MSG_NOSIGNAL | MSG_DONTWAIT) != static_cast<ssize_t>(n))
    drop(c);
}

void supervisor::tell_all(const char* text) {
  for (auto& c : connections_)
    tell(c, text);
}

void supervisor::tell_state(connection& c) {
  const char* state = phase_ == phase::spare   ? "spare"
                      : phase_ == phase::ended ? "ended"
                      : asking()               ? "starting"
                      : frozen_                ? "frozen"
                                               : "running";
  long long left = phase_ == phase::running && lease_end_ms_ != INT64_MAX ? lease_end_ms_ - boot_ms() : 0;
  char text[1024];
  snprintf(text, sizeof text, "state %s %d %d %s %lld %s\n", state, box_.host_pid,
           ranks_.size ? ranks_[0].host_pid : 0, box_.pid_namespace ? "namespaces" : "process-group", left,
           box_.remark.text);
  tell(c, text);
  if (frozen_) {
    snprintf(text, sizeof text, "frozen %s\n", frozen_why_);
    tell(c, text);
  }
  for (std::size_t n = 0; n < ranks_.size; ++n)
    if (ranks_[n].ended) {
      describe_end(n, text, sizeof text);
      tell(c, text);
    }
}

void supervisor::describe_end(std::size_t n, char* text, std::size_t room) const {
  const auto& rank = ranks_[n];
  snprintf(text, room, "rank %zu %s %d %lld %s%s%s\n", n, rank.signalled ? "signal" : "code", rank.value,
           static_cast<long long>(rank.at_us), rank.killed ? "k" : "", rank.oom ? "o" : "",
           rank.killed || rank.oom ? "" : "-");
}

void supervisor::read_connection(connection& c) {
  iovec bytes{c.line + c.used, sizeof c.line - c.used};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof c.passed)];
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  auto n = recvmsg(c.fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n <= 0)
    return drop(c);
  if (auto* header = CMSG_FIRSTHDR(&message); header && header->cmsg_type == SCM_RIGHTS) {
    for (auto& fd : c.passed) {
      if (fd >= 0)
        close(fd);
      fd = -1;
    }
    memcpy(c.passed, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
  }
  c.used += static_cast<std::size_t>(n);
  while (auto* newline = static_cast<char*>(memchr(c.line, '\n', c.used))) {
    *newline = 0;
    auto line_bytes = static_cast<std::size_t>(newline + 1 - c.line);
    char line[sizeof c.line];
    memcpy(line, c.line, line_bytes);
    memmove(c.line, newline + 1, c.used - line_bytes);
    c.used -= line_bytes;
    obey(c, line);
    if (c.fd < 0 || gone_)
      return;
  }
  if (c.used == sizeof c.line)
    drop(c); // our agents end every line
}

void supervisor::obey(connection& c, char* line) {
  char* value = strchr(line, ' ');
  if (value)
    *value++ = 0;
  long long number = value ? atoll(value) : 0;
  auto is = [line](const char* word) { return strcmp(line, word) == 0; };
  if (is("status"))
    tell_state(c);
  else if (is("renew") && value)
    // Only `thaw` ends a freeze: an agent that renews may not know that the task was given away.
    lease_end_ms_ = frozen_ ? lease_end_ms_ : number > 0 ? boot_ms() + number : INT64_MAX;
  else if (is("signal") && number > 0 && number < NSIG)
    signal_ranks(static_cast<int>(number));
  else if (is("kill"))
    kill_all("killed");
  else if (is("freeze"))
    freeze("order");
  else if (is("thaw") && value)
    thaw(number);
  else if (is("run") && c.passed[0] >= 0 && phase_ == phase::spare) {
    int spec = c.passed[0], zygote = c.passed[1];
    c.passed[0] = c.passed[1] = -1;
    start(spec, zygote);
  } else if (is("bye"))
    gone_ = phase_ == phase::ended || phase_ == phase::spare;
  else
    tell(c, "error not understood, or not now\n");
}

} // namespace troupe::task_init
