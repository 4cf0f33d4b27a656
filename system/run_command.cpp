#include "system/run_command.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace troupe {
namespace {

using clock = std::chrono::steady_clock;
constexpr std::size_t most_output = 1 << 20;

struct pipe_ends {
  int read = -1, write = -1;
  pipe_ends() {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) == 0) {
      read = fds[0];
      write = fds[1];
    }
  }
  ~pipe_ends() {
    close_write();
    if (read >= 0)
      ::close(read);
  }
  pipe_ends(const pipe_ends&) = delete;
  pipe_ends& operator=(const pipe_ends&) = delete;
  void close_write() {
    if (write >= 0)
      ::close(write);
    write = -1;
  }
};

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const auto& word : words)
    out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> out;
  for (char** one = environ; one && *one; ++one) {
    const std::string text = *one;
    if (!added.contains(text.substr(0, text.find('='))))
      out.push_back(text);
  }
  for (const auto& [name, content] : added)
    out.push_back(name + "=" + content);
  return out;
}

/// Runs between fork and exec, and so makes only calls that are safe there. The child sends the error number
/// of a failed exec through `fault`.
[[noreturn]] void become(char** argv, char** envp, int in, int out, int err, int fault) {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::dup2(in, 0);
  ::dup2(out, 1);
  ::dup2(err, 2);
  ::close_range(3, ~0u, CLOSE_RANGE_CLOEXEC); // a library may have opened one without it
  ::execvpe(argv[0], argv, envp);
  const int why = errno;
  static_cast<void>(!::write(fault, &why, sizeof why));
  ::_exit(127);
}

/// The error number that the child sent, or 0: the child has become the program.
int fault_of(int fd) {
  int why = 0;
  ssize_t n = 0;
  do
    n = ::read(fd, &why, sizeof why);
  while (n < 0 && errno == EINTR);
  return n == sizeof why ? why : 0;
}

/// Reads what has arrived; false at the end.
bool take(int fd, std::string& to) {
  char bytes[16384];
  const auto n = ::read(fd, bytes, sizeof bytes);
  if (n < 0)
    return errno == EINTR || errno == EAGAIN;
  to.append(bytes, static_cast<std::size_t>(n));
  return n > 0;
}

std::string last_line(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.pop_back();
  if (const auto at = text.rfind('\n'); at != text.npos)
    text.erase(0, at + 1);
  std::replace_if(
    text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 32; }, ' ');
  if (text.size() > 500)
    text.resize(500);
  return text;
}

} // namespace

result<command_output> run_command(const std::vector<std::string>& words,
                                   const std::map<std::string, std::string>& added,
                                   std::chrono::milliseconds limit, const std::atomic<bool>* stop) {
  if (words.empty() || words.front().empty())
    return error{errc::io, "the command is empty: it needs a program at least"};
  const auto name = words.front();
  auto argv = pointers(words);
  const auto variables = environment(added);
  auto envp = pointers(variables);
  pipe_ends out, err, fault;
  const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (in < 0 || out.read < 0 || err.read < 0 || fault.read < 0) {
    const int why = errno;
    if (in >= 0)
      ::close(in);
    return error{errc::io, name + " could not be started: " + std::strerror(why)};
  }
  const auto child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    // Where this process is killed meanwhile, nobody is left to end the command.
    ::signal(SIGALRM, SIG_DFL);
    ::alarm(static_cast<unsigned>(limit.count() / 1000 + 2));
    become(argv.data(), envp.data(), in, out.write, err.write, fault.write);
  }
  const int fork_fault = errno;
  ::close(in);
  if (child < 0)
    return error{errc::io, name + " could not be started: " + std::strerror(fork_fault)};
  ::setpgid(child, child);
  out.close_write();
  err.close_write();
  fault.close_write();
  const auto end_it = [&] {
    ::kill(-child, SIGKILL);
    ::kill(child, SIGKILL);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR)
      ;
  };
  if (const int why = fault_of(fault.read)) {
    end_it();
    return error{errc::io, name + " could not be started: " + std::strerror(why)};
  }
  for (const int fd : {out.read, err.read})
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
  const auto until = clock::now() + limit;
  command_output said;
  std::string complaints;
  bool out_open = true, err_open = true;
  int status = 0;
  for (bool ended = false;;) {
    if (!ended && ::waitpid(child, &status, WNOHANG) == child)
      ended = true;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - clock::now());
    if (!ended && stop && stop->load()) {
      end_it();
      return error{errc::unreachable, name + " was killed, as this process ends"};
    }
    if (!ended && left.count() <= 0) {
      end_it();
      return error{errc::timeout, name + " took longer than " + std::to_string((limit.count() + 999) / 1000) +
                                    " s and was killed"};
    }
    pollfd polled[2] = {{out_open ? out.read : -1, POLLIN, 0}, {err_open ? err.read : -1, POLLIN, 0}};
    const auto wait = ended ? 0 : std::min<long>(20, static_cast<long>(left.count()));
    const int ready = ::poll(polled, 2, static_cast<int>(wait));
    if (ready > 0) {
      if (polled[0].revents)
        out_open = take(out.read, said.out);
      if (polled[1].revents)
        err_open = take(err.read, complaints);
      if (complaints.size() > most_output)
        complaints.erase(0, complaints.size() / 2);
      if (said.out.size() > most_output) {
        end_it();
        return error{errc::io, name + " printed more than 1 MiB and was killed"};
      }
    }
    if (ended && ready <= 0)
      break; // everything that the command itself wrote has been read
  }
  said.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  said.last_line = last_line(std::move(complaints));
  return said;
}

result<int> start_detached(const std::vector<std::string>& words, const std::string& log) {
  if (words.empty())
    return error{errc::io, "the command is empty: it needs a program at least"};
  auto argv = pointers(words);
  pipe_ends told, fault;
  const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const int open_fault = errno;
  const auto close_both = [&] {
    if (in >= 0)
      ::close(in);
    if (out >= 0)
      ::close(out);
  };
  if (in < 0 || out < 0 || told.read < 0 || fault.read < 0) {
    close_both();
    return error{errc::io, words.front() + " could not be started with its log " + log + ": " +
                             std::strerror(open_fault)};
  }
  const auto middle = ::fork();
  if (middle == 0) {
    ::setsid();
    const auto child = ::fork(); // init reaps it, whichever of the two lives longer
    if (child == 0)
      become(argv.data(), environ, in, out, out, fault.write);
    static_cast<void>(!::write(told.write, &child, sizeof child));
    ::_exit(0);
  }
  close_both();
  told.close_write();
  fault.close_write();
  if (middle < 0)
    return error{errc::io, words.front() + " could not be started: " + std::strerror(errno)};
  int status = 0;
  while (::waitpid(middle, &status, 0) < 0 && errno == EINTR)
    ;
  int pid = -1;
  if (::read(told.read, &pid, sizeof pid) != sizeof pid || pid <= 0)
    return error{errc::io, words.front() + " could not be started"};
  if (const int why = fault_of(fault.read))
    return error{errc::io, words.front() + " could not be started: " + std::strerror(why)};
  return pid;
}

} // namespace troupe
