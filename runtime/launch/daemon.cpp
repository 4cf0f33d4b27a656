#include "runtime/launch/daemon.hpp"

#include "runtime/cli/session.hpp"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::launch {

void daemon_notice::ready(const std::string& greeting) {
  if (!pipe_)
    return;
  auto text = "+" + greeting;
  static_cast<void>(!::write(pipe_.get(), text.data(), text.size()));
  pipe_.reset();
}

void daemon_notice::failed(const error& why) {
  if (!pipe_)
    return;
  auto text = std::to_string(static_cast<int>(why.code)) + "-" + why.what;
  static_cast<void>(!::write(pipe_.get(), text.data(), text.size()));
  pipe_.reset();
}

result<forked> become_daemon(const std::filesystem::path& log) {
  std::error_code ignored;
  std::filesystem::create_directories(log.parent_path(), ignored);
  workers::owned_fd out{::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)};
  if (!out)
    return error{errc::io, "cannot write the log '" + log.string() + "': " + std::strerror(errno)};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return error{errc::io, std::string("pipe: ") + std::strerror(errno)};
  workers::owned_fd reading{ends[0]}, writing{ends[1]};
  auto child = ::fork();
  if (child < 0)
    return error{errc::io, std::string("fork: ") + std::strerror(errno)};
  if (child > 0) {
    writing.reset();
    ::waitpid(child, nullptr, 0);
    std::string said;
    char part[4096];
    for (ssize_t n; (n = ::read(reading.get(), part, sizeof part)) > 0;)
      said.append(part, static_cast<std::size_t>(n));
    forked outcome;
    outcome.parent = true;
    if (said.starts_with('+')) {
      std::printf("%s\nit runs in the background; its log is %s\n", said.c_str() + 1, log.c_str());
    } else {
      error why{errc::io, "it ended at once; see its log " + log.string()};
      int code = 0;
      if (auto [end, fault] = std::from_chars(said.data(), said.data() + said.size(), code);
          fault == std::errc{} && *end == '-')
        why = {static_cast<errc>(code), end + 1};
      outcome.exit_code = cli::exit_after(why);
    }
    return outcome;
  }
  ::setsid();
  if (::fork() != 0) // the second child can never take a terminal; the first is reaped at once
    ::_exit(0);
  workers::owned_fd nothing{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  ::dup2(nothing.get(), 0);
  ::dup2(out.get(), 1);
  ::dup2(out.get(), 2);
  forked outcome;
  outcome.notice = daemon_notice{std::move(writing)};
  return outcome;
}

} // namespace troupe::launch
