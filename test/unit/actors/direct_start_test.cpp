#include "actors/host/direct_start.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace troupe {
namespace {

namespace fs = std::filesystem;
using words = std::vector<std::string>;

TEST(DirectStart, TakesOnlyTheWordsOfAPlainCommand) {
  struct {
    std::string command;
    std::optional<words> are;
  } cases[] = {
    {"python3 train.py", words{"python3", "train.py"}},
    {"  exec python3 train.py --lr=0.1  \n", words{"python3", "train.py", "--lr=0.1"}},
    {"python3 train.py 'two words' \"and more\"x ''",
     words{"python3", "train.py", "two words", "and morex", ""}},
    {"python3 train.py \"$LR\"", {}},
    {"python3 train.py $LR", {}},
    {"python3 train.py 'open", {}},
    {"python3 train.py && echo done", {}},
    {"python3 train.py | tee log", {}},
    {"python3 train.py > log", {}},
    {"python3 train.py *.csv", {}},
    {"python3 train.py ~/data", {}},
    {"python3 train.py # why", {}},
    {"LR=1 python3 train.py", {}},
    {"python3 prepare.py\npython3 train.py", {}},
    {"", {}},
  };
  for (const auto& c : cases)
    EXPECT_EQ(plain_words(c.command), c.are) << c.command;
}

TEST(DirectStart, IsAScriptOfTheWorkingDirectoryRunByAnInterpreterThatIsAProgram) {
  const auto folder = fs::temp_directory_path() / ("direct-start-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  fs::create_symlink("/proc/self/exe", folder / "python3");
  fs::create_symlink("/proc/self/exe", folder / "ruby");
  fs::create_symlink("/usr/bin/ldd", folder / "python4"); // ldd is a script that the shell runs
  struct {
    words entrypoint;
    std::string script; // empty: no script is started directly
  } cases[] = {
    {{"/bin/sh", "-c", "python3 digits/train.py --lr=1"}, "digits/train.py"},
    {{"python3", "./a/../train.py"}, "train.py"},
    {{"python3", "/run/determined/workdir/train.py"}, "train.py"},
    {{"python3", "../train.py"}, ""},
    {{"python3", "/opt/train.py"}, ""},
    {{"python3", "-m", "train"}, ""},
    {{"python3", "-u", "train.py"}, ""},
    {{"python3"}, ""},
    {{"python4", "train.py"}, ""},
    {{"python5", "train.py"}, ""},
    {{"ruby", "train.py"}, ""},
    {{"/bin/sh", "-c", "python3 train.py; true"}, ""},
    {{}, ""},
  };
  for (const auto& c : cases) {
    auto got = direct_start_of(c.entrypoint, "/nowhere:" + folder.string());
    EXPECT_EQ(got ? got->script : "", c.script) << (c.entrypoint.empty() ? "" : c.entrypoint.back());
    if (got) {
      EXPECT_EQ(got->program, (folder / "python3").string());
    }
  }
  fs::remove_all(folder);
}

TEST(DirectStart, NeedsNoShellForAProgramThatTheKernelRuns) {
  const auto folder = fs::temp_directory_path() / ("program-start-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  auto script = [&](const char* name, const char* text) {
    std::ofstream(folder / name) << text;
    fs::permissions(folder / name, fs::perms::owner_all);
  };
  script("with-interpreter", "#!/bin/sh\n");
  script("without-one", "echo a shell runs it\n");
  std::ofstream(folder / "not-executable") << "#!/bin/sh\n";
  const auto here = folder.string();
  struct {
    words entrypoint, runs; // empty: only a shell can run the entrypoint
  } cases[] = {
    {{"/bin/sh", "-c", "/bin/true"}, {"/bin/true"}},
    {{"/bin/sh", "-c", "exec sleep 1"}, {"sleep", "1"}},
    {{"/bin/sh", "-c", "./with-interpreter 'a b'"}, {"./with-interpreter", "a b"}},
    {{"sleep", "$HOME"}, {"sleep", "$HOME"}},
    {{"echo", "the program, as no shell was asked for"}, {"echo", "the program, as no shell was asked for"}},
    {{"/bin/sh", "-c", "echo the shell's own"}, {}},
    {{"/bin/sh", "-c", "true"}, {}},
    {{"/bin/sh", "-c", "cd /tmp"}, {}},
    {{"/bin/sh", "-c", "sleep 1; sleep 2"}, {}},
    {{"/bin/sh", "-c", "./without-one"}, {}},
    {{"./not-executable"}, {}},
    {{"no-such-program-at-all"}, {}},
    {{"/bin/sh", "-c", "model_def:Trial"}, {}},
    {{""}, {}},
    {{}, {}},
  };
  for (const auto& c : cases)
    EXPECT_EQ(program_start_of(c.entrypoint, "/nowhere:/usr/bin:/bin", here).value_or(words{}), c.runs)
      << (c.entrypoint.empty() ? "" : c.entrypoint.back());
  fs::remove_all(folder);
}

TEST(DirectStart, HasTheVariablesThatTheShellWouldLeave) {
  const words env = {"DET_WORKDIR=/run/determined/workdir",
                     "HOME=/",
                     "OLDPWD=/not/there",
                     "PATH=/usr/bin",
                     "PYTHONUSERBASE=/base",
                     "X=a=b",
                     "_=/usr/bin/env"};
  const words wanted = {"DET_WORKDIR=/run/determined/workdir",
                        "HOME=/run/determined/workdir",
                        "PATH=/base/bin:/usr/bin",
                        "PWD=/run/determined/workdir",
                        "PYTHONUSERBASE=/base",
                        "SHLVL=0",
                        "X=a=b"};
  EXPECT_EQ(direct_variables(env), wanted);
}

} // namespace
} // namespace troupe
