// A rank that a warmed parent outside forks: asked for, let go, or started cold after all.

#include "workers/task_init/supervisor.hpp"

#include "workers/task_init/task_format.hpp"

#include <csignal>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

namespace troupe::task_init {

using namespace task_format;

namespace {

constexpr std::int64_t warm_up_limit_ms = 150'000; ///< above the agent's own limit; meant for a lost agent
constexpr std::int64_t fork_limit_ms = 10'000;
constexpr int sent_descriptors = 8;

/// A file that holds the working directory, arguments and variables as the zygote reads them.
int request_file(const rank_spec& rank) {
  int file = memfd_create("troupe-zygote-request", MFD_CLOEXEC);
  FILE* out = file < 0 ? nullptr : fdopen(fcntl(file, F_DUPFD_CLOEXEC, 0), "we");
  if (!out) {
    if (file >= 0)
      close(file);
    return -1;
  }
  auto put = [out](const char* key, const char* value) {
    fputs(key, out);
    fputc(0, out);
    fputs(value, out);
    fputc(0, out);
  };
  put("cwd", rank.cwd);
  for (auto* argument : rank.direct_argv)
    put("arg", argument);
  for (auto* variable : rank.direct_env)
    put("env", variable);
  fclose(out);
  return file;
}

/// `more` says that another rank will be asked for through the same connection.
bool send_all(int socket, const int (&fds)[sent_descriptors], bool more) {
  char last[] = "fork", one_of_several[] = "more";
  iovec bytes{more ? one_of_several : last, 4};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  auto* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fds);
  memcpy(CMSG_DATA(header), fds, sizeof fds);
  return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 4;
}

/// Where a peer ended with something unread the first call fails, though the peer's last message can still be
/// read.
ssize_t receive(int socket, char* text, std::size_t room) {
  auto n = recv(socket, text, room, MSG_DONTWAIT);
  return n < 0 && errno == ECONNRESET ? recv(socket, text, room, MSG_DONTWAIT) : n;
}

void shut(int& fd) {
  if (fd >= 0)
    close(fd);
  fd = -1;
}

} // namespace

void supervisor::set_last_pid(unsigned number) {
  int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return;
  char text[16];
  int bytes = snprintf(text, sizeof text, "%u", number);
  (void)!write(fd, text, static_cast<std::size_t>(bytes));
  close(fd);
}

fault supervisor::ask_zygote() {
  if (!box_.pid_namespace)
    return complain("the sandbox has no namespaces to fork into");
  if (zygote_ < 0)
    return complain("the agent has none");
  int out[2] = {-1, -1}, err[2] = {-1, -1}, gate[2] = {-1, -1};
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0 ||
      socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, gate) != 0)
    return complain("pipe: %s", strerror(errno));
  fcntl(out[0], F_SETFL, O_NONBLOCK);
  fcntl(err[0], F_SETFL, O_NONBLOCK);
  set_last_pid(299); // leaves the low numbers to the rank, as a cold start does
  const std::size_t n = asked_for_;
  int sent[sent_descriptors] = {request_file(spec_.ranks[n]),
                                open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC),
                                open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC),
                                open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC),
                                open("/dev/null", O_RDONLY | O_CLOEXEC),
                                out[1],
                                err[1],
                                gate[1]};
  bool ok = send_all(zygote_, sent, n + 1 < spec_.ranks.size);
  const int why = ok ? 0 : errno;
  for (int& fd : sent)
    shut(fd);
  streams_[2 * n].fd = out[0];
  streams_[2 * n + 1].fd = err[0];
  for (std::size_t i = 2 * n; i < 2 * n + 2; ++i)
    if (!streams_[i].line && !(streams_[i].line = static_cast<char*>(malloc(max_payload_bytes))))
      abort();
  gate_ = gate[0];
  ask_until_ms_ = boot_ms() + warm_up_limit_ms;
  // Where the zygote has ended, its last message can still be read.
  return ok || why == EPIPE || why == ECONNRESET ? fault{}
                                                 : complain("it cannot be asked: %s", strerror(why));
}

void supervisor::hear_zygote() {
  char text[1024];
  auto n = receive(zygote_, text, sizeof text - 1);
  if (n < 0 && (errno == EAGAIN || errno == EINTR ||
                errno == ECONNRESET)) // after a reset, the earlier message can still be read
    return;
  if (n <= 0) {
    // A process that the zygote has begun to fork speaks for itself.
    shut(zygote_);
    if (ask_until_ms_ > boot_ms() + fork_limit_ms)
      start_cold("the zygote ended");
    return;
  }
  text[n] = 0;
  if (strncmp(text, "no ", 3) == 0)
    start_cold(text + 3);
  else
    ask_until_ms_ = boot_ms() + fork_limit_ms;
}

void supervisor::hear_gate() {
  char text[64];
  auto n = receive(gate_, text, sizeof text - 1);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  text[n > 0 ? n : 0] = 0;
  int pid = 0, host_pid = 0;
  if (sscanf(text, "ready %d %d", &pid, &host_pid) != 2) {
    if (zygote_ >= 0)
      hear_zygote(); // the zygote says why before it closes the gate
    if (asking())
      start_cold("its forked process ended before it was ready");
    return;
  }
  let_go(pid, host_pid);
}

/// Lets go the forked process, which stands behind the gate and has run nothing of the user's yet.
void supervisor::let_go(pid_t pid, pid_t host_pid) {
  auto& rank = ranks_[asked_for_];
  rank.pid = pid;
  rank.host_pid = host_pid;
  rank.ran = true;
  rank.at_us = wall_us();
  bool ok = limit_process(rank.pid, spec_) && send(gate_, "go", 2, MSG_NOSIGNAL | MSG_DONTWAIT) == 2;
  if (!ok) {
    kill(rank.pid, SIGKILL);
    rank = {};
    return start_cold("its forked process could not be let go");
  }
  shut(gate_);
  if (++asked_for_ < ranks_.size) {
    if (auto f = ask_zygote())
      start_cold(f.text);
    return;
  }
  shut(zygote_);
  tell_started();
}

/// Starts the rank that was asked for, and all later ones, without the zygote.
void supervisor::start_cold(const char* why) {
  // A process behind the gate ends when the gate is closed.
  shut(gate_);
  shut(zygote_);
  shut(streams_[2 * asked_for_].fd);
  shut(streams_[2 * asked_for_ + 1].fd);
  char text[1024];
  int bytes = snprintf(text, sizeof text, "troupe: started without the zygote: %s", why);
  auto shown = bytes < static_cast<int>(sizeof text) ? static_cast<std::size_t>(bytes) : sizeof text - 1;
  spool_.add(static_cast<unsigned>(asked_for_), spool_stream::notice, 0, text, shown);
  for (std::size_t n = asked_for_; n < ranks_.size; ++n)
    start_one(n);
  tell_started();
}

/// Called when the rank, and all later ones, are killed before they began.
void supervisor::stop_asking() {
  if (!asking())
    return;
  shut(gate_);
  shut(zygote_);
  for (std::size_t n = asked_for_; n < ranks_.size; ++n) {
    auto& rank = ranks_[n];
    rank.ran = rank.ended = rank.signalled = rank.killed = true;
    rank.value = SIGKILL;
    rank.at_us = wall_us();
    char text[128];
    describe_end(n, text, sizeof text);
    tell_all(text);
  }
}

} // namespace troupe::task_init
