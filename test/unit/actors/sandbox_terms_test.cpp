// Tests what a configuration says about the sandbox, and what a host makes of it.

#include "actors/allocation/sandbox_terms.hpp"

#include "actors/host/task_environment.hpp"
#include "actors/host/task_sandbox.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace troupe {
namespace {

namespace fs = std::filesystem;

std::string shown(const result<sandbox_terms>& x) { return x ? to_json(to_value(*x)) : x.error().what; }

TEST(SandboxTerms, AreReadFromTheConfigurationOfAnyKind) {
  const struct {
    const char* config;
    const char* expected;
  } cases[] = {
    {R"({})", "null"},
    {R"({"bind_mounts": [], "resources": {"shm_size": null}, "work_dir": null})", "null"},
    {R"({"work_dir": "/home/$DET_USER", "resources": {"shm_size": 4096}})",
     R"({"mounts":[],"shm_bytes":4096,"startup_hook":"","work_dir":"/home/$DET_USER"})"},
    {R"({"resources": {"shm_size": "1.5g"}})",
     R"({"mounts":[],"shm_bytes":1610612736,"startup_hook":"","work_dir":""})"},
    {R"({"bind_mounts": [{"host_path": "/a", "container_path": "b"},
                         {"host_path": "/c", "container_path": "/d", "read_only": true, "propagation": "rslave"}]})",
     R"({"mounts":[{"container_path":"b","host_path":"/a","propagation":"rprivate","read_only":false},)"
     R"({"container_path":"/d","host_path":"/c","propagation":"rslave","read_only":true}],"shm_bytes":0,"startup_hook":"","work_dir":""})"},
    {R"({"work_dir": "home"})", "work_dir: expected an absolute path, got 'home'"},
    {R"({"work_dir": 7})", "work_dir: expected a text, got 7"},
    {R"({"resources": {"shm_size": "much"}})",
     "resources.shm_size: expected a memory size as 512 MiB or 1.5G, got \"much\""},
    {R"({"resources": {"shm_size": -1}})", "resources.shm_size: is below 0"},
    {R"({"bind_mounts": {}})", "bind_mounts: expected a list, got {}"},
    {R"({"bind_mounts": [{"host_path": "a", "container_path": "/b"}]})",
     "bind_mounts[0].host_path: expected an absolute path, got 'a'"},
    {R"({"bind_mounts": [{"host_path": "/a"}]})", "bind_mounts[0].container_path: names no path"},
    {R"({"bind_mounts": [{"host_path": "/a", "container_path": "/b", "propagation": "wide"}]})",
     "bind_mounts[0].propagation: 'wide' is not private, rprivate, slave, rslave, shared or rshared"},
    {R"({"bind_mounts": [{"host_path": "/a", "container_path": "/b", "read_only": "yes"}]})",
     "bind_mounts[0].read_only: expected true or false, got \"yes\""},
    {R"({"bind_mounts": [7]})", "bind_mounts[0].host_path: expected an absolute path, got ''"},
  };
  for (const auto& one : cases)
    EXPECT_EQ(shown(sandbox_terms_of(parse_json(one.config).value())), one.expected) << one.config;
}

TEST(SandboxTerms, OfAConfigurationWinOverThoseOfThePool) {
  sandbox_terms terms;
  terms.work_dir = "/mine";
  add_defaults(terms, {"/pool", "hook", task_account{1, 2, "a", "b"}});
  EXPECT_EQ(terms.work_dir, "/mine");
  EXPECT_EQ(terms.startup_hook, "hook");
  EXPECT_EQ(terms.account->uid, 1);
  terms.work_dir = "";
  add_defaults(terms, {"/pool", "", {}});
  EXPECT_EQ(terms.work_dir, "/pool");
  EXPECT_FALSE(terms.account);
}

class TermsOnAHost : public ::testing::Test {
protected:
  TermsOnAHost() {
    char pattern[] = "/var/tmp/troupe-terms-XXXXXX";
    root = fs::canonical(::mkdtemp(pattern));
    fs::create_directories(root / "data/deep");
    fs::create_directories(root / "secret/below");
    fs::create_directory_symlink(root / "secret/below", root / "data/out");
    fs::create_directory_symlink(root / "data/deep", root / "data/in");
    launch.owner = "eva";
    launch.entrypoint = {"true"};
    around.python = "/opt/troupe";
    around.platform = [](const std::string&) { return std::vector<std::string>(); };
    around.forbidden = {"/proc", "/sys", (root / "secret").string()};
    around.account = {0, 0, "root"};
  }
  ~TermsOnAHost() override { fs::remove_all(root); }

  workers::task_spec spec() { return task_spec_of({{12}, {3}}, launch, around); }
  /// Returns the mounts as "from>at", with an r where they are read-only, or the refusal.
  std::string mounts() {
    const auto got = spec();
    std::string all = got.refusal;
    for (const auto& one : got.mounts)
      all += (all.empty() ? "" : " ") + one.from + ">" + one.at + (one.read_only ? " r" : "");
    for (std::size_t at; (at = all.find(root.string())) != all.npos;)
      all.replace(at, root.string().size(), "ROOT");
    return all;
  }
  std::string variable(const std::string& name) {
    const auto got = spec();
    for (const auto& one : got.ranks.at(0).env)
      if (one.starts_with(name + "="))
        return one.substr(name.size() + 1);
    return "none";
  }

  fs::path root;
  task_launch launch;
  task_surroundings around;
};

TEST_F(TermsOnAHost, TheWorkingDirectoryKnowsBothNames) {
  EXPECT_EQ(spec().ranks[0].cwd, "/run/determined/workdir");
  EXPECT_EQ(variable("DET_WORKDIR"), "/run/determined/workdir");
  launch.sandbox.work_dir = "/home/$AGENT_USER/$DET_USER/$DET_USER";
  EXPECT_EQ(spec().ranks[0].cwd, "/home/root/eva/eva");
  launch.sandbox.account = task_account{7, 8, "ada", "lab"};
  EXPECT_EQ(spec().ranks[0].cwd, "/home/ada/eva/eva");
  EXPECT_EQ(variable("DET_WORKDIR"), "/home/ada/eva/eva");
}

TEST_F(TermsOnAHost, MountsAreOfTheHostsRealPlaces) {
  const auto at = [&](const std::string& path) { return (root / path).string(); };
  const struct {
    bind_mount wish;
    std::string expected;
  } cases[] = {
    {{at("data"), "/d/", true}, "ROOT/data>/d r"},
    {{at("data"), "x/../y"}, "ROOT/data>/run/determined/workdir/y"},
    {{at("data/in"), "/d"}, "ROOT/data/deep>/d"},
    {{"/", "/d"},
     "bind_mounts: '/' is the whole host, /proc and the agent's data with it: name the folders that are "
     "wanted"},
    {{"/var/..", "/d"},
     "bind_mounts: '/var/..' is the whole host, /proc and the agent's data with it: name the folders that "
     "are wanted"},
    {{at("data/none"), "/d"},
     "bind_mounts: 'ROOT/data/none' of this host cannot be mounted: No such file or directory"},
    {{at("data/out"), "/d"},
     "bind_mounts: 'ROOT/data/out' lies below ROOT/secret, which no task gets: name another folder"},
    {{at("secret"), "/d"},
     "bind_mounts: 'ROOT/secret' lies below ROOT/secret, which no task gets: name another folder"},
    {{"/proc/1", "/d"}, "bind_mounts: '/proc/1' lies below /proc, which no task gets: name another folder"},
    {{"/sys", "/d"}, "bind_mounts: '/sys' lies below /sys, which no task gets: name another folder"},
    {{at("data"), "/"}, "bind_mounts: nothing can be mounted at '/' itself"},
    {{at("data"), "/run/determined/"}, "bind_mounts: nothing can be mounted at '/run/determined' itself"},
    {{at("data"), "/a/../proc/sys"}, "bind_mounts: nothing can be mounted at '/proc/sys', below /proc"},
  };
  for (const auto& one : cases) {
    launch.sandbox.mounts = {one.wish};
    EXPECT_EQ(mounts(), one.expected);
  }
  launch.sandbox = {};
  launch.sandbox.work_dir = "/w";
  launch.sandbox.mounts = {{at("data"), "."}, {at("data/deep"), "b"}};
  EXPECT_EQ(mounts(), "ROOT/data>/w ROOT/data/deep>/w/b");
}

TEST_F(TermsOnAHost, OnlyRootsAgentBecomesAnotherAccount) {
  launch.sandbox.account = task_account{23456, 23457, "troupe-nobody-knows", "nor-this"};
  auto got = spec();
  EXPECT_EQ(got.refusal, "");
  ASSERT_TRUE(got.account);
  EXPECT_EQ(got.account->uid, 23456u);
  EXPECT_EQ(got.account->gid, 23457u);
  EXPECT_EQ(mounts(), "etc/passwd>/etc/passwd r etc/group>/etc/group r");
  EXPECT_EQ(variable("USER"), "troupe-nobody-knows");
  EXPECT_EQ(variable("HOME"), "/run/determined/workdir");
  const auto files = account_files({{12}, {3}}, launch, around);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_TRUE(files[0].text.starts_with("troupe-nobody-knows:x:23456:23457::/run/determined/workdir:/bin/"))
    << files[0].text;
  EXPECT_NE(files[0].text.find("\nroot:"), std::string::npos) << "those of the host follow";
  EXPECT_TRUE(files[1].text.starts_with("nor-this:x:23457:\n")) << files[1].text;
  around.account = {65534, 65534, "nobody"};
  got = spec();
  EXPECT_FALSE(got.account);
  EXPECT_EQ(got.refusal,
            "it is to run as troupe-nobody-knows (uid 23456, gid 23457), and this agent runs as nobody (uid "
            "65534), which cannot become another account: run the agent as root, or take the "
            "agentUserGroup from the user or workspace");
  launch.sandbox.account = task_account{65534, 65534, "nobody", "nogroup"};
  got = spec();
  EXPECT_EQ(got.refusal, "") << "its own";
  EXPECT_FALSE(got.account);
}

TEST_F(TermsOnAHost, AnAccountThatNoListCouldHoldIsRefused) {
  for (const auto& bad :
       {task_account{-1, 1, "a", "b"}, task_account{1, 4294967295, "a", "b"}, task_account{1, 1, "a:b", "c"},
        task_account{1, 1, "a", "b\nroot"}, task_account{1, 1, "", "b"}}) {
    launch.sandbox.account = bad;
    EXPECT_NE(spec().refusal.find("which no account can be"), std::string::npos) << bad.user << bad.uid;
  }
}

TEST_F(TermsOnAHost, AnAccountOfTheHostKeepsItsHomeAndNeedsNoLists) {
  launch.sandbox.account = task_account{65534, 65534, "nobody", "nogroup"};
  for (const auto& file : account_files({{12}, {3}}, launch, around))
    EXPECT_NE(file.path, "etc/group") << "the host knows it";
  launch.env["HOME"] = "/mine";
  EXPECT_EQ(variable("HOME"), "/mine") << "what the configuration says wins";
  launch.sandbox.shm_bytes = 5;
  EXPECT_EQ(spec().shm_bytes, 5u);
}

TEST_F(TermsOnAHost, LoginsAreNotRefusedByListsOfTheHost) {
  const allocation_id shell{task_id::of(task_kind::shell, 1, 2), {1}};
  const auto names = [&] {
    std::string all;
    for (const auto& file : account_files(shell, launch, around))
      all += (all.empty() ? "" : " ") + file.path;
    return all;
  };
  EXPECT_TRUE(names() == "sshd/empty" || names() == "etc/shadow sshd/empty") << names();
  const auto spec = task_spec_of(shell, launch, around);
  EXPECT_EQ(spec.mounts.back().from, "run/sshd");
  EXPECT_EQ(spec.mounts.back().at, "/run/sshd");
  EXPECT_TRUE(account_files({{12}, {3}}, launch, around).empty()) << "a trial needs none";
  around.account = {65534, 65534, "nobody"}; // the shell of this account is nologin on every Debian
  EXPECT_EQ(names(), "etc/passwd etc/group etc/shadow");
  const auto files = account_files(shell, launch, around);
  EXPECT_EQ(files[2].text, "nobody:*:::::::\n") << "systemd's list calls it locked";
  EXPECT_EQ(files[2].mode, 0600);
  EXPECT_TRUE(files[0].text.starts_with("nobody:x:65534:65534::")) << files[0].text;
  EXPECT_EQ(files[1].text.find("tty:"), std::string::npos) << "a terminal of its own group is enough";
  EXPECT_NE(files[1].text.find("root:"), std::string::npos);
}

} // namespace
} // namespace troupe
