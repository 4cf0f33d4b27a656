#include "runtime/shell/host_pipe.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <streambuf>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

extern char** environ;

namespace troupe::shell {
namespace {

constexpr std::size_t most_captured = 16 << 20;

class fd_buffer : public std::streambuf {
public:
  void set(int fd) {
    fd_ = fd;
    setp(bytes_.data(), bytes_.data() + bytes_.size());
  }

private:
  int_type overflow(int_type c) override {
    if (sync() != 0)
      return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) {
      *pptr() = traits_type::to_char_type(c);
      pbump(1);
    }
    return traits_type::not_eof(c);
  }

  int sync() override {
    for (const char* at = pbase(); at < pptr();) {
      auto count = ::write(fd_, at, static_cast<std::size_t>(pptr() - at));
      if (count < 0 && errno == EINTR)
        continue;
      if (count <= 0)
        return -1;
      at += count;
    }
    setp(bytes_.data(), bytes_.data() + bytes_.size());
    return 0;
  }

  int fd_ = -1;
  std::array<char, 16384> bytes_;
};

} // namespace

struct host_pipe::impl {
  fd_buffer buffer;
  std::ostream in{&buffer};
  pid_t pid = -1;
  int in_fd = -1, out_fd = -1, code = 0;
  std::string captured;
  std::thread reader;
};

host_pipe::host_pipe() : impl_(std::make_unique<impl>()) {}
host_pipe::~host_pipe() { finish(); }
std::ostream& host_pipe::in() { return impl_->in; }
const std::string& host_pipe::captured() const { return impl_->captured; }

result<std::unique_ptr<host_pipe>>
host_pipe::start(const std::string& command, const std::map<std::string, std::string>& more, bool capture) {
  auto fault = [](const char* what, int number) {
    return error{errc::io, std::string(what) + ": " + std::strerror(number)};
  };
  int in[2] = {-1, -1}, out[2] = {-1, -1};
  if (::pipe2(in, O_CLOEXEC) != 0)
    return fault("a pipe for the host command", errno);
  if (capture && ::pipe2(out, O_CLOEXEC) != 0) {
    auto why = errno;
    ::close(in[0]), ::close(in[1]);
    return fault("a pipe for the host command", why);
  }
  std::vector<std::string> texts;
  for (char** at = environ; *at; ++at)
    texts.emplace_back(*at);
  for (const auto& [name, text] : more)
    if (!::getenv(name.c_str()))
      texts.push_back(name + "=" + text);
  std::vector<char*> env;
  for (auto& text : texts)
    env.push_back(text.data());
  env.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
  if (capture)
    posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&how, &defaults);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF);
  std::string program = "/bin/sh", flag = "-c", text = command;
  char* words[] = {program.data(), flag.data(), text.data(), nullptr};
  std::unique_ptr<host_pipe> made(new host_pipe);
  int failed = ::posix_spawn(&made->impl_->pid, "/bin/sh", &files, &how, words, env.data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&how);
  ::close(in[0]);
  if (capture)
    ::close(out[1]);
  if (failed != 0) {
    ::close(in[1]);
    if (capture)
      ::close(out[0]);
    made->impl_->pid = -1;
    return fault("/bin/sh", failed);
  }
  made->impl_->in_fd = in[1];
  made->impl_->buffer.set(in[1]);
  if (capture)
    made->impl_->reader =
      std::thread([to = &made->impl_->captured, fd = out[0]] { // otherwise both sides wait for each other
        std::array<char, 16384> bytes;
        for (;;) {
          auto count = ::read(fd, bytes.data(), bytes.size());
          if (count < 0 && errno == EINTR)
            continue;
          if (count <= 0)
            break;
          if (to->size() < most_captured)
            to->append(bytes.data(), static_cast<std::size_t>(count));
        }
        ::close(fd);
      });
  return made;
}

int host_pipe::finish() {
  auto& x = *impl_;
  if (x.in_fd >= 0) {
    x.in.flush();
    ::close(x.in_fd);
    x.in_fd = -1;
  }
  if (x.pid > 0) {
    int status = 0;
    while (::waitpid(x.pid, &status, 0) < 0 && errno == EINTR)
      ;
    x.pid = -1;
    x.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  if (x.reader.joinable())
    x.reader.join();
  return x.code;
}

} // namespace troupe::shell
