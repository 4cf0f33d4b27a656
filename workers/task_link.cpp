#include "workers/task_link.hpp"

#include "workers/task_init/task_format.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

namespace troupe::workers {
namespace {

error refused(errc code, const std::string& what, int why) { return {code, what + ": " + strerror(why)}; }

} // namespace

sandbox_news decode_news(std::string_view line) {
  std::string text(line);
  char word[32] = "", how[32] = "", flags[16] = "";
  int a = 0, b = 0, rest = 0;
  long long left = 0;
  if (std::sscanf(text.c_str(), "state %31s %d %d %31s %lld %n", word, &a, &b, how, &left, &rest) == 5)
    return sandbox_state{word, b,
                         std::strcmp(how, name(isolation::namespaces)) == 0 ? isolation::namespaces
                                                                            : isolation::process_group,
                         rest > 0 ? text.substr(static_cast<std::size_t>(rest)) : std::string{}, a};
  if (std::sscanf(text.c_str(), "started %d", &a) == 1)
    return sandbox_started{a};
  if (std::sscanf(text.c_str(), "rank %d %31s %d %lld %15s", &a, word, &b, &left, flags) == 5)
    return rank_end{a,
                    std::strcmp(word, "signal") == 0,
                    b,
                    std::strchr(flags, 'k') != nullptr,
                    std::strchr(flags, 'o') != nullptr,
                    time_point{std::chrono::microseconds{left}}};
  if (std::sscanf(text.c_str(), "frozen %31s", word) == 1)
    return sandbox_frozen{word};
  if (text == "thawed")
    return sandbox_thawed{};
  if (text == "exited")
    return sandbox_ended{};
  return sandbox_complaint{text};
}

result<int> spawn(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                  const std::filesystem::path& complaints, int connection) {
  std::vector<char*> argv{const_cast<char*>("troupe-task")};
  for (const auto& argument : arguments)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  char* no_environment[] = {nullptr};

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, 2, complaints.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&files, connection, 3);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  int why = ::posix_spawn(&pid, program.c_str(), &files, &attributes, argv.data(), no_environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (why != 0)
    return refused(errc::io, "starting " + program.string(), why);
  return pid;
}

result<task_link> task_link::dial(int folder) {
  task_link link;
  link.socket_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!link.socket_)
    return refused(errc::io, "socket", errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // The folder's path may be longer than a socket address takes.
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder,
                task_format::socket_file);
  if (::connect(link.socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return refused(errno == EAGAIN ? errc::busy : errc::unreachable, "the task's socket", errno);
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(link.socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return refused(errc::io, "the task's socket", errno);
  link.helper_ = helper_behind(link.socket_.get(), peer.pid);
  if (!link.helper_)
    return refused(errc::unreachable, "troupe-task", ESRCH);
  return link;
}

result<task_link> task_link::make(owned_fd& other) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
    return refused(errc::io, "socket", errno);
  task_link link;
  link.socket_.reset(pair[0]);
  other.reset(pair[1]);
  return link;
}

owned_fd helper_behind(int socket, int pid) {
  owned_fd helper{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
  // The process lived after the pidfd was made, so the pidfd is not that of a later process with its number.
  pollfd p{socket, 0, 0};
  if (::poll(&p, 1, 0) != 0 && (p.revents & (POLLHUP | POLLERR)))
    helper.reset();
  return helper;
}

result<void> task_link::send(const std::string& line) {
  auto n = ::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n == static_cast<ssize_t>(line.size()))
    return {};
  // A socket that cannot take a short line has a peer that does not read; half a line would garble the next
  // one.
  auto why = n < 0 ? errno : EAGAIN;
  socket_.reset();
  return refused(errc::unreachable, "the task's socket", why);
}

bool task_link::receive(std::vector<std::string>& lines) {
  char bytes[4096];
  while (socket_) {
    auto n = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && errno == EAGAIN)
      return true;
    if (n <= 0)
      return false;
    for (ssize_t i = 0; i < n; ++i)
      if (bytes[i] == '\n') {
        lines.push_back(std::move(partial_));
        partial_.clear();
      } else if (partial_.size() < task_format::max_line_bytes) {
        partial_.push_back(bytes[i]);
      }
  }
  return false;
}

bool send_with(int socket, std::string_view line, std::initializer_list<int> descriptors) {
  const auto bytes_of_them = descriptors.size() * sizeof(int);
  iovec bytes{const_cast<char*>(line.data()), line.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(bytes_of_them);
  auto* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(bytes_of_them);
  std::memcpy(CMSG_DATA(header), descriptors.begin(), bytes_of_them);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(line.size());
}

result<owned_fd> file_in_memory(std::string_view bytes) {
  owned_fd file{::memfd_create("troupe-task-spec", MFD_CLOEXEC)};
  if (!file)
    return refused(errc::io, "memory for a task's spec", errno);
  while (!bytes.empty()) {
    auto n = ::write(file.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return refused(errc::io, "memory for a task's spec", errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return file;
}

bool is_dead(int pidfd) {
  pollfd p{pidfd, POLLIN, 0};
  return ::poll(&p, 1, 0) == 1;
}

} // namespace troupe::workers
