#pragma once
// A second process for tests: this executable again, running one test that is disabled otherwise.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::storage {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class scratch {
public:
  scratch() {
    auto name = (std::filesystem::temp_directory_path() / "troupe-storage-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~scratch() {
    std::error_code fault;
    std::filesystem::remove_all(path_, fault);
  }
  scratch(const scratch&) = delete;
  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
};

/// Runs `arguments` with its output on a pipe that `line` reads.
class child {
public:
  explicit child(std::vector<std::string> arguments) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    std::vector<char*> argv;
    for (auto& a : arguments)
      argv.push_back(a.data());
    argv.push_back(nullptr);
    if (::posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ) != 0)
      pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    output_ = ends[0];
  }
  ~child() {
    if (pid_ > 0)
      end(SIGKILL);
    ::close(output_);
  }
  child(const child&) = delete;

  /// The test `name` (written with its DISABLED_) of this executable.
  static std::vector<std::string> of_test(const std::string& name) {
    return {std::filesystem::read_symlink("/proc/self/exe"), "--gtest_also_run_disabled_tests",
            "--gtest_filter=" + name};
  }

  bool ended() const {
    siginfo_t info{};
    return pid_ > 0 && ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_;
  }

  /// The next line of its output; none at the deadline or at its end.
  std::optional<std::string> line(steady_clock::time_point deadline) {
    for (;;) {
      if (auto at = text_.find('\n'); at != std::string::npos) {
        auto one = text_.substr(0, at);
        text_.erase(0, at + 1);
        return one;
      }
      auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()).count();
      pollfd wait{output_, POLLIN, 0};
      if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) <= 0)
        return std::nullopt;
      char buffer[65536];
      auto size = ::read(output_, buffer, sizeof buffer);
      if (size <= 0)
        return std::nullopt;
      text_.append(buffer, static_cast<std::size_t>(size));
    }
  }

  int pid() const { return pid_; }
  bool started() const { return pid_ > 0; }

  /// Sends `signal` where it is not 0, then waits; the status as of waitpid.
  int end(int signal = 0) {
    if (signal)
      ::kill(pid_, signal);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

private:
  pid_t pid_ = -1;
  int output_ = -1;
  std::string text_;
};

} // namespace troupe::storage
