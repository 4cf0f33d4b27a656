#include "runtime/client/find_server.hpp"
#include "runtime/client/sse.hpp"

#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace troupe;
using namespace troupe::client;

namespace {

class FindServer : public testing::Test {
protected:
  void SetUp() override {
    auto pattern = (fs::temp_directory_path() / "troupe-find-XXXXXX").string();
    top = ::mkdtemp(pattern.data());
    set["HOME"] = top / "home";
    set["XDG_STATE_HOME"] = top / "state";
  }
  void TearDown() override { fs::remove_all(top); }

  environment env() {
    return [this](const char* name) { return set.contains(name) ? set[name] : std::string(); };
  }
  void lock(const fs::path& dir, const lock_content& content) {
    fs::create_directories(dir);
    int fd = ::open((dir / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_TRUE(write_lock(fd, content));
    ::close(fd);
  }
  std::string found(const std::string& master = "") {
    auto got = find_server(master, env());
    return got ? got->url : name(got.error().code) + std::string(": ") + got.error().what;
  }

  fs::path top;
  std::map<std::string, std::string> set;
};

const char* nothing = "unreachable: no cluster is running; start one: troupe up";

} // namespace

TEST_F(FindServer, TakesTheFlagThenTheEnvironmentThenTheLastUp) {
  EXPECT_EQ(found(), nothing);
  lock(top / "data", lock_of_this_process("http://127.0.0.1:1234"));
  EXPECT_EQ(found(), nothing);
  ASSERT_TRUE(remember_data_dir(top / "data", env()));
  EXPECT_EQ(found(), "http://127.0.0.1:1234");
  lock(top / "other", lock_of_this_process("http://127.0.0.1:5678"));
  set["TROUPE_DATA_DIR"] = top / "other";
  EXPECT_EQ(found(), "http://127.0.0.1:5678");
  set["TROUPE_MASTER"] = "head:99";
  EXPECT_EQ(found(), "http://head:99");
  EXPECT_EQ(found("https://x"), "https://x:443");
  set["TROUPE_MASTER"] = "http://:1";
  EXPECT_EQ(found(), "invalid: TROUPE_MASTER 'http://:1': the host is missing");
}

TEST_F(FindServer, KnowsTheNodeOfThisHostByItsAddress) {
  const auto pid_at = [&](const char* url) {
    auto node = node_of_this_host(url, env());
    return node ? node->pid : 0;
  };
  set["TROUPE_DATA_DIR"] = top / "data";
  EXPECT_EQ(pid_at("http://127.0.0.1:1234"), 0);
  lock(top / "data", lock_of_this_process("http://127.0.0.1:1234"));
  set["TROUPE_MASTER"] = "http://127.0.0.1:1234";
  EXPECT_EQ(pid_at("http://127.0.0.1:1234"), ::getpid());
  EXPECT_EQ(pid_at("http://localhost:1234"), ::getpid());
  EXPECT_EQ(pid_at("http://127.0.0.1:12345"), 0);
  EXPECT_EQ(pid_at("http://head:1234"), 0);
  lock(top / "last", lock_of_this_process("http://127.0.0.1:5"));
  ASSERT_TRUE(remember_data_dir(top / "last", env()));
  EXPECT_EQ(pid_at("http://127.0.0.1:5"), ::getpid());
}

TEST_F(FindServer, IgnoresWhatTheDeadLeft) {
  ASSERT_TRUE(remember_data_dir(top / "data", env()));
  pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  lock_content dead = lock_of_this_process("http://127.0.0.1:1");
  dead.pid = child;
  // Another process has this pid now, so the start in the lock differs from its start. The start is counted
  // in ticks of 10 ms and may be the same for the child and this process, so it is made smaller.
  dead.start -= 1;
  lock(top / "data", dead);
  EXPECT_EQ(found(), nothing);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(found(), nothing);
  dead = lock_of_this_process("http://127.0.0.1:1");
  dead.boot = "an earlier boot";
  lock(top / "data", dead);
  EXPECT_EQ(found(), nothing);
  lock(top / "data", lock_of_this_process(""));
  EXPECT_EQ(found(), nothing) << "it does not listen yet";
  std::ofstream(top / "data/lock") << "garbage\xff\n\n";
  EXPECT_EQ(found(), nothing);
  fs::remove(top / "data/lock");
  EXPECT_EQ(found(), nothing);
}

TEST_F(FindServer, LocksReadBackAsTheyWereWritten) {
  auto mine = lock_of_this_process("http://127.0.0.1:8080");
  EXPECT_EQ(mine.pid, ::getpid());
  EXPECT_TRUE(alive(mine));
  auto again = parse_lock(to_text(mine));
  ASSERT_TRUE(again);
  EXPECT_EQ(to_text(*again), to_text(mine));
  auto longer = mine;
  longer.url += "/longer";
  lock(top / "d", longer);
  lock(top / "d", mine);
  EXPECT_EQ(read_lock(top / "d")->url, mine.url) << "nothing of the longer text is left";
}

TEST_F(FindServer, ReadsAddresses) {
  struct {
    const char *text, *url;
  } good[] = {{"localhost:8080", "http://localhost:8080"},
              {"head", "http://head:8080"},
              {"http://h:1/", "http://h:1"},
              {"https://h", "https://h:443"},
              {"[::1]:9", "http://[::1]:9"},
              {"[::1]", "http://[::1]:8080"}};
  for (const auto& c : good) {
    auto got = master_url(c.text);
    ASSERT_TRUE(got) << c.text;
    EXPECT_EQ(*got, c.url);
  }
  for (const char* bad :
       {"", "ftp://x", "h:0", "h:65536", "h:x", "h:1x", "h/path", "http://", ":80", "[::1", "a b:1", "u@h:1"})
    EXPECT_FALSE(master_url(bad)) << bad;
  EXPECT_EQ(*reachable_url("0.0.0.0:80"), "http://127.0.0.1:80");
  EXPECT_EQ(*reachable_url("[::]:80", true), "https://[::1]:80");
  EXPECT_EQ(*reachable_url("10.0.0.1:80"), "http://10.0.0.1:80");
}

TEST(ServerSentEvents, ComeWholeWhateverTheParts) {
  std::string stream =
    ": alive\n\nid: 7\nevent: run_started\ndata: {\"a\":\ndata: 1}\n\nid: 8\r\ndata:x\r\n\r\n"
    "event: nothing\n\ndata: last\n";
  for (std::size_t size : {1u, 2u, 3u, 7u, 1000u}) {
    sse_parser parser;
    std::vector<sse_event> got;
    for (std::size_t at = 0; at < stream.size(); at += size)
      for (auto& e : parser.feed(std::string_view(stream).substr(at, size)))
        got.push_back(e);
    ASSERT_EQ(got.size(), 2) << size;
    EXPECT_EQ(got[0].id + got[0].type + got[0].data, "7run_started{\"a\":\n1}");
    EXPECT_EQ(got[1].id + got[1].type + got[1].data, "8messagex");
  }
  sse_parser small(100);
  EXPECT_TRUE(small.feed("data: " + std::string(1000, 'x') + "\n\n").empty()) << "over the limit";
  EXPECT_EQ(small.feed("data: y\n\n").size(), 1);
}
