#include "runtime/proxy/bridge.hpp"
#include "runtime/proxy/frames.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>

namespace troupe::proxy {
namespace {

/// A connection whose other side is the test.
class fake_link final : public http::byte_link {
public:
  void read(std::function<void(result<std::string>)> done) override {
    reading = std::move(done);
    deliver();
  }
  void write(std::string bytes, std::function<void(result<void>)> done) override {
    written += bytes;
    if (slow)
      writing = std::move(done);
    else
      done({});
  }
  void end_writing() override { ended = true; }
  void close() override { closed = true; }
  void abort() override { closed = aborted = true; }

  void say(std::string bytes) {
    came.push_back(std::move(bytes));
    deliver();
  }
  void deliver() {
    if (!reading || came.empty())
      return;
    auto bytes = std::move(came.front());
    came.erase(came.begin());
    std::exchange(reading, nullptr)(std::move(bytes));
  }
  std::function<void(result<std::string>)> reading;
  std::function<void(result<void>)> writing;
  std::vector<std::string> came;
  std::string written;
  bool ended = false, closed = false, aborted = false, slow = false;
};

struct pair {
  std::shared_ptr<fake_link> viewer = std::make_shared<fake_link>(), service = std::make_shared<fake_link>();
  std::shared_ptr<junctions> table = std::make_shared<junctions>();
  bridge_ends ends(std::string early = {}) { return {viewer, service, std::move(early), {}, table}; }
};

TEST(Bridge, AStrangerSaysSomethingSoonOrGoes) {
  using namespace std::chrono_literals;
  for (const bool frames : {false, true})
    for (const bool speaks : {false, true}) {
      pair x;
      auto ends = x.ends();
      ends.first_byte = 10s;
      frames ? join_frames(std::move(ends)) : join_bytes(std::move(ends));
      // the bridge waits for the first byte of the viewer, not of the service
      x.service->say("SSH-2.0-OpenSSH\r\n");
      if (speaks)
        x.viewer->say(frames ? std::string("\x82\x81mask", 6) + char('S' ^ 'm') : "S");
      const auto due =
        x.table->sweep(std::chrono::steady_clock::now() + 9s) - std::chrono::steady_clock::now();
      EXPECT_FALSE(x.viewer->closed);
      EXPECT_LE(due, speaks ? 1h : 10s);
      EXPECT_GT(due, speaks ? 59min : 8s); // `due` is the time until the next sweep
      x.table->sweep(std::chrono::steady_clock::now() + 11s);
      EXPECT_EQ(x.viewer->closed, !speaks) << frames;
      x.table->sweep(std::chrono::steady_clock::now() + 1h + 1s);
      EXPECT_TRUE(x.viewer->closed);
    }
}

TEST(Junctions, ASecretIsGoodOnceAndForItsConnectionAlone) {
  junctions table;
  int arrived = 0;
  auto one = table.expect("a", [&](const result<service_end>& x) { arrived += x ? 1 : 0; });
  auto other = table.expect("b", [&](const result<service_end>&) { FAIL(); });
  ASSERT_TRUE(one && other);
  EXPECT_FALSE(table.is_expected(one->connection, other->secret));
  EXPECT_FALSE(table.bring(one->connection, other->secret, link_ptr(std::make_shared<fake_link>())));
  EXPECT_FALSE(table.bring(other->connection, one->secret, link_ptr(std::make_shared<fake_link>())));
  EXPECT_FALSE(table.bring(one->connection, "", link_ptr(std::make_shared<fake_link>())));
  EXPECT_EQ(arrived, 0);
  EXPECT_TRUE(table.bring(one->connection, one->secret, link_ptr(std::make_shared<fake_link>())));
  EXPECT_FALSE(table.bring(one->connection, one->secret, link_ptr(std::make_shared<fake_link>()))) << "used";
  EXPECT_EQ(arrived, 1);
}

TEST(Junctions, BoundsConnectionsOfAServiceAndOfAll) {
  junctions table{{2, 3, 1, std::chrono::seconds{15}}};
  std::vector<junctions::ticket> held;
  const auto open = [&](const char* service, std::size_t most = 0) {
    auto got = table.expect(
      service, [](const result<service_end>&) {}, most);
    if (!got)
      return false;
    held.push_back(std::move(*got));
    return true;
  };
  EXPECT_TRUE(open("a"));
  EXPECT_TRUE(open("a"));
  EXPECT_FALSE(open("a")) << "two of one service";
  EXPECT_TRUE(open("b", 1));
  EXPECT_FALSE(open("c")) << "three of all";
  EXPECT_EQ(table.use_of("a").connections, 2u);
  held.erase(held.begin());
  EXPECT_FALSE(open("b", 1)) << "one of this service";
  EXPECT_TRUE(open("a"));
  held.clear();
  EXPECT_EQ(table.use_of("a").connections, 0u);
  EXPECT_FALSE(table.busy());
}

TEST(Junctions, KeepsAConnectionForTheNextRequestForAWhile) {
  junctions table;
  auto link = std::make_shared<fake_link>();
  auto got = table.expect("a", [](const result<service_end>&) {});
  table.keep("a", {link_ptr(link), std::move(got->held)});
  EXPECT_FALSE(table.take("b"));
  auto kept = table.take("a");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->end.link, link);
  EXPECT_FALSE(table.take("a"));
  table.keep("a", std::move(*kept));
  table.sweep(std::chrono::steady_clock::now() + std::chrono::minutes{1});
  EXPECT_FALSE(table.take("a"));
  EXPECT_FALSE(table.busy());
}

TEST(Junctions, ASocketThatRestsClosesWhenItsTimeIsOver) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const workers::owned_fd mine{ends[0]};
  junctions table;
  auto got = table.expect("a", [](const result<service_end>&) {});
  table.keep("a", {service_end(workers::owned_fd{ends[1]}), std::move(got->held)});
  auto kept = table.take("a");
  ASSERT_TRUE(kept && !kept->end.link && kept->end.socket);
  table.keep("a", std::move(*kept));
  kept.reset();
  table.sweep(std::chrono::steady_clock::now() + std::chrono::minutes{1});
  char one = 0;
  EXPECT_EQ(::read(mine.get(), &one, 1), 0) << "an end";
}

TEST(Bridge, PassesBytesAndHalfCloses) {
  pair x;
  join_bytes(x.ends("early "));
  x.viewer->say("to the service");
  x.service->say("back");
  EXPECT_EQ(x.service->written, "to the service");
  EXPECT_EQ(x.viewer->written, "early back");
  x.viewer->say("");
  EXPECT_TRUE(x.service->ended);
  x.service->say(" and more");
  EXPECT_EQ(x.viewer->written, "early back and more");
  EXPECT_FALSE(x.viewer->closed);
  x.service->say("");
  EXPECT_TRUE(x.viewer->closed && x.service->closed);
  EXPECT_FALSE(x.service->aborted);
}

TEST(Bridge, ReadsNothingWhileTheOtherSideTakesNothing) {
  pair x;
  x.viewer->slow = true;
  join_bytes(x.ends());
  x.service->say("first");
  x.service->say("second");
  EXPECT_EQ(x.viewer->written, "first");
  EXPECT_FALSE(x.service->reading);
  std::exchange(x.viewer->writing, nullptr)({});
  EXPECT_EQ(x.viewer->written, "firstsecond");
}

TEST(Bridge, EndsBothWhereOneBreaksOrNothingPasses) {
  pair x;
  join_bytes(x.ends());
  std::exchange(x.viewer->reading, nullptr)(error{errc::unreachable, "reset"});
  EXPECT_TRUE(x.viewer->closed && x.service->aborted);
  pair idle;
  join_bytes(idle.ends());
  idle.table->sweep(std::chrono::steady_clock::now() + std::chrono::minutes{59});
  EXPECT_FALSE(idle.viewer->closed);
  idle.table->sweep(std::chrono::steady_clock::now() + std::chrono::minutes{61});
  EXPECT_TRUE(idle.viewer->closed && idle.service->aborted);
}

TEST(Bridge, EndsOnceItsViewerMayNoLongerBeThere) {
  for (const bool frames : {false, true}) {
    pair x;
    auto stays = std::make_shared<bool>(true);
    auto ends = x.ends();
    ends.stays = [stays] { return *stays; };
    frames ? join_frames(std::move(ends)) : join_bytes(std::move(ends));
    x.table->sweep(std::chrono::steady_clock::now());
    EXPECT_FALSE(x.viewer->closed);
    *stays = false;
    x.table->sweep(std::chrono::steady_clock::now());
    EXPECT_TRUE(x.viewer->closed && x.service->aborted) << frames;
  }
}

std::string masked(int first, const std::string& payload) {
  return std::string{static_cast<char>(first), static_cast<char>(0x80 | payload.size()), 0, 0, 0, 0} +
         payload;
}

TEST(Bridge, CarriesBytesInFramesAndClosesWithTheService) {
  pair x;
  join_frames(x.ends());
  x.viewer->say(masked(0x82, "hello") + masked(0x89, "p"));
  EXPECT_EQ(x.service->written, "hello");
  EXPECT_EQ(x.viewer->written, frame_of(frame_kind::pong, "p"));
  x.viewer->written.clear();
  x.service->say("answer");
  x.service->say("");
  EXPECT_EQ(x.viewer->written, frame_of(frame_kind::binary, "answer") + close_frame(1000, ""));
  EXPECT_TRUE(x.viewer->ended);
  EXPECT_FALSE(x.viewer->closed) << "it still has to read the close";
  x.viewer->say("");
  EXPECT_TRUE(x.viewer->closed);
}

TEST(Bridge, LetsTheServiceSayTheRestAfterTheViewersClose) {
  pair x;
  join_frames(x.ends());
  x.viewer->say(masked(0x88, ""));
  EXPECT_TRUE(x.service->ended);
  x.service->say("rest");
  x.service->say("");
  EXPECT_EQ(x.viewer->written, frame_of(frame_kind::binary, "rest") + close_frame(1000, ""));
}

TEST(Bridge, RefusesATextFrameWithACode) {
  pair x;
  join_frames(x.ends());
  x.viewer->say(masked(0x81, "text"));
  EXPECT_EQ(x.service->written, "");
  EXPECT_EQ(x.viewer->written.substr(2, 2), std::string("\x03\xeb")); // 0x03eb is close code 1003
  EXPECT_TRUE(x.service->aborted);
}

} // namespace
} // namespace troupe::proxy
