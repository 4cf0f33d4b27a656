// Tests that a command ends at its time limit even where the process that runs it was killed.

#include "system/random.hpp"
#include "system/run_command.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace troupe {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct note {
  fs::path path = fs::temp_directory_path() / ("command-" + random_hex(8));
  ~note() { fs::remove(path); }
  /// The pid that the command has written; 0: it has not yet.
  pid_t pid() const {
    const auto text = text_of(path);
    return text.ends_with("\n") ? static_cast<pid_t>(std::stol(text)) : 0;
  }
};

template <class Holds>
bool comes(Holds holds) {
  for (int i = 0; i < 3000 && !holds(); ++i)
    std::this_thread::sleep_for(10ms);
  return holds();
}

TEST(RunCommand, ACommandWhoseCallerWasKilledEndsAtItsLimit) {
  const note file;
  const std::vector<std::string> words{"sh", "-c", "echo $$ > " + file.path.string() + "; exec sleep 1000"};
  const auto caller = ::fork();
  if (caller == 0) {
    static_cast<void>(run_command(words, {}, 1s));
    ::_exit(0);
  }
  ASSERT_GT(caller, 0);
  ASSERT_TRUE(comes([&] { return file.pid() != 0; }));
  ASSERT_EQ(::kill(caller, SIGKILL), 0);
  ASSERT_EQ(::waitpid(caller, nullptr, 0), caller);
  const auto command = file.pid();
  // Nobody reaps it here: it is gone, or waits to be reaped by whoever has taken it over.
  const auto is_dead = [&] {
    const auto stat = text_of("/proc/" + std::to_string(command) + "/stat");
    return stat.find("(sleep)") == stat.npos || stat.find(") Z ") != stat.npos;
  };
  EXPECT_TRUE(comes(is_dead));
  if (!is_dead())
    ::kill(command, SIGKILL);
}

TEST(RunCommand, SaysWhatTheCommandPrintedAndHowItEnded) {
  const auto said = run_command({"sh", "-c", "echo $WORD; echo why >&2; exit 3"}, {{"WORD", "hello"}}, 60s);
  ASSERT_TRUE(said) << said.error().what;
  EXPECT_EQ(said->exit_code, 3);
  EXPECT_EQ(said->out, "hello\n");
  EXPECT_EQ(said->last_line, "why");
  EXPECT_EQ(run_command({"sleep", "1000"}, {}, 200ms).error().code, errc::timeout);
  EXPECT_EQ(run_command({"no-such-program"}, {}, 1s).error().code, errc::io);
}

} // namespace
} // namespace troupe
