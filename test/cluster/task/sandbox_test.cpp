// What a task sees of the host, and what the host sees of a task.

#include "stage.hpp"

#include <filesystem>
#include <poll.h>
#include <sys/socket.h>

namespace troupe::test {
namespace {

class TaskSandbox : public EitherIsolation {};
INSTANTIATE_TEST_SUITE_P(Each, TaskSandbox, both_isolations, isolation_name);

/// Names of everything in the host's /run/determined, which a runtime makes where it may and leaves empty.
std::string host_run() {
  std::error_code fault;
  std::string all;
  for (std::filesystem::recursive_directory_iterator it("/run/determined", fault), end; it != end;
       it.increment(fault))
    all += it->path().string() + "\n";
  return all;
}

TEST_P(TaskSandbox, TwoTasksAtOnceHaveTheirOwnRunAndTemporaryFolders) {
  auto before = host_run();
  const char* script =
    "R=$TROUPE_RUN_DIR; T=${TMPDIR:-/tmp}; echo $TROUPE_TASK_ID >$R/who; echo $TROUPE_TASK_ID >$T/who;"
    "until [ -e /dev/shm/$PEER.go ]; do sleep 0.01; done; cat $R/who $T/who; ls $R $T | wc -w";
  auto go = "troupe-test-" + std::to_string(::getpid());
  auto with_peer = [&](task_spec& spec) { spec.ranks[0].env.push_back("PEER=" + go); };
  auto one = s.run(script, with_peer), two = s.run(script, with_peer);
  s.await<task_started>(one);
  s.await<task_started>(two);
  EXPECT_EQ(host_run(), before);
  std::ofstream("/dev/shm/" + go + ".go") << "go";
  for (const auto& id : {one, two}) {
    s.await<task_exited>(id);
    auto text = s.text(id);
    EXPECT_TRUE(text.starts_with(id + "\n" + id + "\n")) << text;
  }
  std::filesystem::remove("/dev/shm/" + go + ".go"); // /dev/shm is the host's, so both saw it
  EXPECT_EQ(host_run(), before);
}

TEST_P(TaskSandbox, NamespacesHideOnlyWhatIsPrivate) {
  if (!namespaces())
    GTEST_SKIP() << "there is nothing to hide behind";
  auto id = s.run(
    "id -u; echo /run/determined $TROUPE_RUN_DIR; ls -A /tmp | wc -l; test -e /run/determined && echo run;"
    "ls /run | grep -v '^determined$' | wc -l; ls /proc | grep -c '^[0-9]*$'; stat -c %a /tmp; cat "
    "/etc/hostname >/dev/null && echo etc;"
    "readlink /proc/self/exe >/dev/null && echo proc");
  s.await<task_exited>(id);
  std::size_t entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/run"))
    entries += entry.path().filename() != "determined";
  auto text = s.text(id);
  auto expected = std::to_string(::getuid()) + "\n/run/determined /run/determined\n0\nrun\n" +
                  std::to_string(entries) + "\n";
  EXPECT_TRUE(text.starts_with(expected)) << text;
  EXPECT_TRUE(text.ends_with("1777\netc\nproc\n")) << text;
}

TEST_P(TaskSandbox, SeesAbsoluteHostPathsBelowTmpThatItIsGiven) {
  auto data = s.folder() / "data", work = s.folder() / "work", other = s.folder() / "other";
  for (const auto& path : {data, work, other})
    std::filesystem::create_directories(path);
  std::ofstream(data / "in") << "from the host\n";
  auto id = s.run("pwd; cat " + (data / "in").string() + "; echo to the host >" + (data / "out").string() +
                    "; touch here; test -e " + other.string() + " || echo hidden",
                  [&](task_spec& spec) {
                    spec.ranks[0].cwd = work;
                    spec.keep.push_back(data);
                  });
  EXPECT_EQ(s.await<task_exited>(id).ranks.at(0).value, 0);
  EXPECT_EQ(s.text(id), work.string() + "\nfrom the host\n" + (namespaces() ? "hidden\n" : ""));
  EXPECT_TRUE(std::filesystem::exists(data / "out"));
  EXPECT_TRUE(std::filesystem::exists(work / "here"));
}

TEST_P(TaskSandbox, RefusesToKeepWhatIsNotThere) {
  if (!namespaces())
    GTEST_SKIP() << "nothing is hidden, so nothing has to be kept";
  auto id =
    s.run("echo never", [](task_spec& spec) { spec.keep.push_back("/tmp/no-such-folder-of-troupe"); });
  auto exited = s.await<task_exited>(id);
  EXPECT_EQ(exited.why, end_reason::failed);
  EXPECT_NE(exited.detail.find("/tmp/no-such-folder-of-troupe"), std::string::npos) << exited.detail;
  EXPECT_TRUE(exited.ranks.empty());
}

/// A folder of the host with a file, outside of /tmp, that goes with the test.
class host_folder {
public:
  host_folder() {
    char pattern[] = "/var/tmp/troupe-host-XXXXXX";
    path_ = ::mkdtemp(pattern);
    std::ofstream(path_ / "in") << "from the host\n";
  }
  ~host_folder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
};

TEST_P(TaskSandbox, ShowsFoldersOfTheHostAtOtherPlacesAndMakesNoneOnTheHost) {
  if (!namespaces())
    GTEST_SKIP() << "without them each folder is seen where it is";
  host_folder host;
  const std::string there[] = {"/troupe-new-place/deep", "/usr/share/troupe-new-place", "/srv",
                               "/tmp/new/place"};
  for (const auto& at : there) {
    const bool known = std::filesystem::exists(at);
    auto id = s.run("cat " + at + "/in; echo to the host >" + at + "/out; ls -A " + at + "/.. | wc -l; pwd",
                    [&](task_spec& spec) {
                      spec.ranks[0].cwd = at;
                      spec.mounts = {{host.path(), at}};
                    });
    EXPECT_EQ(s.await<task_exited>(id).ranks.at(0).value, 0) << s.text(id);
    const auto text = s.text(id);
    EXPECT_TRUE(text.starts_with("from the host\n") && text.ends_with("\n" + at + "\n")) << text;
    EXPECT_TRUE(std::filesystem::remove(host.path() / "out")) << at;
    EXPECT_EQ(std::filesystem::exists(at), known) << at;
  }
}

TEST_P(TaskSandbox, MountsThatAreReadOnlyAreSoWithAllBelowThemAndSeveralStandInEachOther) {
  if (!namespaces())
    GTEST_SKIP() << "without them each folder is seen where it is";
  host_folder host, other;
  std::filesystem::create_directories(host.path() / "below");
  auto id = s.run("cat in below/in; touch here 2>/dev/null || echo read only; touch below/here && echo open; "
                  "ls -A / | wc -l",
                  [&](task_spec& spec) {
                    spec.ranks[0].cwd = "/troupe-place";
                    spec.mounts = {{host.path(), "/troupe-place", true},
                                   {other.path(), "/troupe-place/below", false, "rslave"}};
                  });
  EXPECT_EQ(s.await<task_exited>(id).ranks.at(0).value, 0) << s.text(id);
  std::size_t entries = 1; // the new place
  for (const auto& entry : std::filesystem::directory_iterator("/"))
    entries += !entry.path().empty();
  EXPECT_EQ(s.text(id), "from the host\nfrom the host\nread only\nopen\n" + std::to_string(entries) + "\n");
  EXPECT_FALSE(std::filesystem::exists(host.path() / "here"));
  EXPECT_TRUE(std::filesystem::exists(other.path() / "here"));
}

TEST_P(TaskSandbox, AMountThatCannotBeSaysWhyInItsLogAndStartsNothing) {
  host_folder host;
  std::filesystem::create_directory_symlink(host.path(), host.path() / "link");
  struct {
    mount_spec wish;
    std::string says;
  } cases[] = {{{"/no/such/place", "/srv"}, "/no/such/place: No such file or directory"},
               {{(host.path() / "link").string(), "/srv"}, "symbolic links"},
               {{host.path(), "/etc/hostname/x"}, "is a file"},
               {{host.path(), "/etc/hostname"}, "there is a file"},
               {{(host.path() / "in").string(), "/srv"}, "there is a folder"},
               {{host.path(), "/srv", false, "sideways"}, "'sideways' is not a propagation"}};
  for (const auto& one : cases) {
    auto id = s.run("echo never", [&](task_spec& spec) { spec.mounts = {one.wish}; });
    auto exited = s.await<task_exited>(id);
    EXPECT_EQ(exited.why, end_reason::failed) << one.says;
    EXPECT_TRUE(exited.ranks.empty());
    const auto expected = namespaces() ? one.says : std::string("no namespaces");
    EXPECT_NE(exited.detail.find(expected), std::string::npos) << exited.detail;
    EXPECT_EQ(s.text(id, log_stream::notice), "troupe: " + exited.detail + "\n");
  }
}

TEST_P(TaskSandbox, WithoutNamespacesAFolderThatIsSeenWhereItIsNeedsNoMount) {
  host_folder host;
  auto id = s.run("cat " + (host.path() / "in").string(), [&](task_spec& spec) {
    spec.mounts = {{host.path(), host.path()}};
  });
  EXPECT_EQ(s.await<task_exited>(id).ranks.at(0).value, 0);
  EXPECT_EQ(s.text(id), "from the host\n");
}

TEST_P(TaskSandbox, SharedMemoryOfItsOwnHasTheSizeThatWasAskedFor) {
  const auto name = "troupe-shm-" + std::to_string(::getpid());
  std::ofstream("/dev/shm/" + name) << "of the host";
  auto id = s.run("test -e /dev/shm/" + name +
                    " && echo shared; df -k /dev/shm | awk 'END {print $2}'; "
                    "head -c 3000000 /dev/zero >/dev/shm/f 2>/dev/null || echo full",
                  [](task_spec& spec) { spec.shm_bytes = 2 << 20; });
  s.await<task_exited>(id);
  std::filesystem::remove("/dev/shm/" + name);
  if (namespaces()) {
    EXPECT_EQ(s.text(id), "2048\nfull\n");
  } else {
    EXPECT_NE(s.text(id, log_stream::notice).find("resources.shm_size has no effect here"),
              std::string::npos);
    EXPECT_TRUE(s.text(id).starts_with("shared\n")) << s.text(id);
    std::filesystem::remove("/dev/shm/f");
  }
}

TEST_P(TaskSandbox, LinesForItsLogStandFirstAndARefusalStartsNothing) {
  auto id = s.run("echo said", [](task_spec& spec) { spec.notes = {"one", "two"}; });
  s.await<task_exited>(id);
  EXPECT_EQ(s.text(id, log_stream::notice), "troupe: one\ntroupe: two\n");
  EXPECT_EQ(s.text(id), "said\n");
  id = s.run("echo never", [](task_spec& spec) { spec.refusal = "it is not to be"; });
  auto exited = s.await<task_exited>(id);
  EXPECT_EQ(exited.why, end_reason::failed);
  EXPECT_EQ(exited.detail, "it is not to be");
  EXPECT_EQ(s.text(id, log_stream::notice), "troupe: it is not to be\n");
  EXPECT_EQ(s.text(id), "");
}

TEST_P(TaskSandbox, RunsAsTheAccountThatItIsGivenAlsoWhereTheHostDoesNotKnowIt) {
  const std::uint32_t uid = 23456, gid = 23457;
  auto id = s.run("id -u; id -g; id -G; stat -L -c %u /proc/self; kill -0 1 2>/dev/null || echo alone; "
                  "grep -c . /etc/shadow 2>/dev/null || echo no secrets",
                  [&](task_spec& spec) {
                    spec.account = account_spec{uid, gid};
                  });
  auto exited = s.await<task_exited>(id);
  if (::geteuid() != 0) { // the agent looks before; here it shows as any command that cannot be started
    EXPECT_NE(exited.detail.find("becoming the task's account: uid 23456"), std::string::npos)
      << exited.detail;
    return;
  }
  EXPECT_EQ(s.text(id), "23456\n23457\n23457\n23456\nalone\nno secrets\n");
  EXPECT_EQ(exited.ranks.at(0).value, 0);
  id = s.run("sleep 100 & trap '' TERM; echo up; wait", [&](task_spec& spec) {
    spec.account = account_spec{uid, gid};
  });
  s.await<task_started>(id);
  ASSERT_TRUE(s.runtime->kill(id));
  s.await<task_exited>(id);
  EXPECT_TRUE(processes_of(id).empty()) << "root ends what another account runs";
}

TEST_P(TaskSandbox, ItsFolderIsClosedToOtherAccountsWhereWhatItSeesIsMounted) {
  const auto id = s.run("ls /run/determined >/dev/null && echo there");
  s.await<task_exited>(id);
  EXPECT_EQ(s.text(id), "there\n");
  const auto mode = std::filesystem::status(s.options.root / id).permissions();
  EXPECT_EQ(static_cast<int>(mode), namespaces() ? 0700 : 0755);
}

TEST_P(TaskSandbox, AListOfAccountsFromItsFolderCoversThatOfTheHost) {
  if (!namespaces())
    GTEST_SKIP() << "nothing can be covered";
  auto folder = s.runtime->prepare("with.accounts");
  ASSERT_TRUE(folder) << folder.error().what;
  std::filesystem::create_directories(*folder / "run" / "etc");
  std::ofstream(*folder / "run" / "etc" / "passwd")
    << "someone:x:" << ::getuid() << ":" << ::getgid() << "::/:/bin/sh\n";
  task_spec spec{
    .id = "with.accounts",
    .ranks = {{{"sh", "-c", "id -un; echo x >>/etc/passwd || echo kept"}, {"PATH=/bin:/usr/bin"}, "/"}},
    .limits = {},
    .keep = {}};
  spec.mounts = {{"run/etc/passwd", "/etc/passwd", true, "private"}};
  ASSERT_TRUE(s.runtime->launch(spec));
  const auto exited = s.await<task_exited>("with.accounts");
  const auto text = s.text("with.accounts");
  EXPECT_TRUE(text.starts_with("someone\n") && text.ends_with("kept\n")) << text << exited.detail;
}

TEST_P(TaskSandbox, FindsPreparedFilesInItsRunFolderWithASpareAndWithoutOne) {
  for (int spares : {0, 1}) {
    s.options.spares = spares;
    s.open();
    if (spares && namespaces()) {
      ASSERT_TRUE(eventually([&] { return s.runtime->spares_ready() == 1; }));
    }
    auto id = "prepared." + std::to_string(spares);
    auto folder = s.runtime->prepare(id);
    ASSERT_TRUE(folder) << folder.error().what;
    auto stage = *folder;
    EXPECT_FALSE(s.runtime->prepare(id)); // it is promised
    std::filesystem::create_directories(stage / "run" / "info");
    std::ofstream(stage / "run" / "info" / "trial.json") << "{}\n";
    std::ofstream(stage / "launch") << "beside";
    task_spec spec{
      .id = id,
      .ranks = {{{"sh", "-c", "cat $TROUPE_RUN_DIR/info/trial.json"}, {"PATH=/bin:/usr/bin"}, "/"}},
      .limits = {},
      .keep = {}};
    ASSERT_TRUE(s.runtime->launch(spec));
    s.await<task_exited>(id);
    EXPECT_EQ(s.text(id), "{}\n");
    EXPECT_TRUE(std::filesystem::exists(s.runtime->folder(id) / "launch"));
    EXPECT_FALSE(std::filesystem::exists(stage));
  }
}

TEST_P(TaskSandbox, WhatWasPreparedForALaunchThatNeverCameIsRemoved) {
  for (int spares : {0, 1}) {
    s.options.spares = spares;
    s.open();
    if (spares && namespaces()) {
      ASSERT_TRUE(eventually([&] { return s.runtime->spares_ready() == 1; }));
    }
    auto discarded = s.runtime->prepare("never.1");
    ASSERT_TRUE(discarded);
    s.runtime->discard("never.1");
    EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(*discarded); }));
    auto left = s.runtime->prepare("never.2");
    ASSERT_TRUE(left);
    s.open(); // its agent died
    EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(*left); }));
  }
}

TEST_P(TaskSandbox, ATaskWhosePreparedSandboxDiesIsLost) {
  s.options.spares = 1;
  s.open();
  if (!namespaces())
    GTEST_SKIP() << "there are no spares";
  ASSERT_TRUE(eventually([&] { return s.runtime->spares_ready() == 1; }));
  auto folder = s.runtime->prepare("dying.1");
  ASSERT_TRUE(folder);
  int helper = 0;
  std::ifstream(*folder / "helper") >> helper;
  ASSERT_GT(helper, 0);
  ::kill(helper, SIGKILL);
  task_spec spec{
    .id = "dying.1", .ranks = {{{"true"}, {"PATH=/bin:/usr/bin"}, "/"}}, .limits = {}, .keep = {}};
  ASSERT_TRUE(s.runtime->launch(spec));
  s.await<task_lost>("dying.1");
}

TEST_P(TaskSandbox, StartsColdAndSaysWhyWhereTheZygoteRefusesAndEnds) {
  if (!namespaces())
    GTEST_SKIP() << "nothing is forked there";
  const std::string refusal = "no importing torch: it is not the day";
  for (bool before_it_asks : {true, false}) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    owned_fd zygote{ends[0]}, its_own{ends[1]};
    auto refuse = [&] {
      EXPECT_EQ(::send(zygote.get(), refusal.data(), refusal.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(refusal.size()));
      zygote.reset();
    };
    if (before_it_asks)
      refuse();
    auto id = s.run(
      "echo cold",
      [](task_spec& spec) {
        spec.ranks[0].direct_argv = {"/bin/sh", "script"};
      },
      std::move(its_own));
    if (!before_it_asks) { // what it asks for stays unread, so its next read is a reset
      pollfd asked{zygote.get(), POLLIN, 0};
      ASSERT_EQ(::poll(&asked, 1, 20'000), 1);
      refuse();
    }
    EXPECT_EQ(s.await<task_exited>(id).ranks.at(0).value, 0);
    EXPECT_EQ(s.text(id), "cold\n");
    EXPECT_EQ(s.text(id, log_stream::notice),
              "troupe: started without the zygote: " + refusal.substr(3) + "\n")
      << before_it_asks;
  }
}

TEST_P(TaskSandbox, TellsThePidOfRankZeroInTheNumberingOfTheHost) {
  auto id = s.run("exec sleep 1000");
  auto started = s.await<task_started>(id);
  EXPECT_TRUE(eventually([&] {
    std::ifstream file("/proc/" + std::to_string(started.pid) + "/cmdline", std::ios::binary);
    std::string command{std::istreambuf_iterator<char>(file), {}};
    return command == std::string("sleep\0"
                                  "1000\0",
                                  11);
  }));
}

TEST_P(TaskSandbox, ProcessNumbersOfATaskAreNotThoseOfEachOther) {
  if (!namespaces())
    GTEST_SKIP() << "the numbers are the host's";
  // The first number of a child is low where it began before the rank was said to have started.
  auto id = s.run("until n=$(sh -c 'echo $$'); [ $n -gt 1000 ]; do :; done; echo $n");
  auto other = s.run("until n=$(sh -c 'echo $$'); [ $n -gt 1000 ]; do :; done; echo $n");
  s.await<task_exited>(id);
  s.await<task_exited>(other);
  EXPECT_LT(std::stoi(s.text(id)), 32'768) << "as hosts with the smallest limit have it";
  EXPECT_GT(std::stoi(s.text(other)), 1000);
}

/// The process that makes the sandboxes of the runtime on `root`; 0: there is none.
int nursery_of(const std::filesystem::path& root) {
  std::error_code fault;
  for (std::filesystem::directory_iterator it("/proc", fault), end; it != end; it.increment(fault)) {
    std::ifstream file(it->path() / "cmdline", std::ios::binary);
    const std::string words{std::istreambuf_iterator<char>(file), {}};
    if (words.find('\0' + std::string("--nursery") + '\0' + root.string() + '\0') != std::string::npos)
      return std::atoi(it->path().filename().c_str());
  }
  return 0;
}

TEST_P(TaskSandbox, GoesOnWhenTheNurseryDies) {
  if (!namespaces())
    GTEST_SKIP() << "each is started by itself";
  s.open();
  const auto runs = s.run("exec sleep 1000");
  const auto pid = s.await<task_started>(runs).pid;
  const int nursery = nursery_of(s.options.root);
  ASSERT_GT(nursery, 0);
  ASSERT_EQ(::kill(nursery, SIGKILL), 0);
  for (int n = 0; n < 3; ++n) { // one may be told to it before its death is known
    const auto next = s.run("echo next");
    ASSERT_TRUE(eventually([&] { return s.has_ended(next); }));
    if (s.heard<task_lost>(next))
      continue;
    EXPECT_EQ(s.text(next), "next\n");
  }
  const auto last = s.run("echo last");
  s.await<task_exited>(last);
  EXPECT_EQ(s.text(last), "last\n");
  EXPECT_NE(process_state(pid), 0);
  ASSERT_TRUE(s.runtime->kill(runs));
  s.await<task_exited>(runs);
}

TEST_P(TaskSandbox, ReplacesANurseryThatHangs) {
  if (!namespaces())
    GTEST_SKIP() << "each is started by itself";
  s.options.kill_patience = std::chrono::milliseconds(100);
  s.open();
  const auto before = s.run("echo before");
  s.await<task_exited>(before);
  const int nursery = nursery_of(s.options.root);
  ASSERT_GT(nursery, 0);
  ASSERT_EQ(::kill(nursery, SIGSTOP), 0);
  const auto waits = s.run("echo never");
  s.await<task_lost>(waits);
  const auto next = s.run("echo next");
  s.await<task_exited>(next);
  EXPECT_EQ(s.text(next), "next\n");
  EXPECT_TRUE(eventually([&] { return nursery_of(s.options.root) != nursery; }));
}

TEST_P(TaskSandbox, WorksBelowAPathLongerThanASocketAddress) {
  s.options.root = s.folder() / std::string(120, 'a') / std::string(120, 'b');
  s.open();
  auto id = s.run("echo far down");
  s.await<task_exited>(id);
  EXPECT_EQ(s.text(id), "far down\n");
}

TEST_P(TaskSandbox, NamesWhatKeepsItFromStarting) {
  s.options.program = "/no/such/troupe-task";
  auto made = process_runtime::start(s.options, [](const task_event&) {});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().what.find("/no/such/troupe-task"), std::string::npos);
  s.options.program = task_program();
  s.options.root = "/proc/no-folder-can-be-made-here";
  made = process_runtime::start(s.options, [](const task_event&) {});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().what.find("/proc/no-folder"), std::string::npos);
}

} // namespace
} // namespace troupe::test
