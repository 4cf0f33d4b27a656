#include "workers/harness_link.hpp"

#include <msgpack.hpp>
#include <zmq.hpp>

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;

/// Keeps the messages that the link passes on, and waits for them with a deadline.
class inbox {
public:
  void take(std::vector<task_message> batch) {
    std::lock_guard guard(mutex_);
    for (auto& x : batch)
      messages_.push_back(std::move(x));
    news_.notify_all();
  }
  std::vector<task_message> wait_for(std::size_t count, std::chrono::milliseconds limit = 10s) {
    std::unique_lock guard(mutex_);
    news_.wait_for(guard, limit, [&] { return messages_.size() >= count; });
    return messages_;
  }

private:
  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<task_message> messages_;
};

std::string ping_body() { return {"\x91\xa4ping", 6}; }

std::string report_body(std::size_t bytes) {
  msgpack::sbuffer buffer;
  msgpack::packer<msgpack::sbuffer> out(buffer);
  out.pack_array(3).pack("reports").pack(1).pack_array(1).pack_array(4).pack("training").pack(1);
  out.pack_map(1).pack("x").pack(std::string(bytes, 'y')).pack(5);
  return {buffer.data(), buffer.size()};
}

struct HarnessLink : testing::Test {
  void open(harness_link_options options = {}) {
    auto opened =
      open_harness_link(options, [this](std::vector<task_message> batch) { got.take(std::move(batch)); });
    ASSERT_TRUE(opened) << opened.error().what;
    link = std::move(*opened);
  }
  zmq::socket_t dealer() {
    zmq::socket_t socket(context, zmq::socket_type::dealer);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::rcvtimeo, 10'000);
    socket.connect(link->endpoint());
    return socket;
  }
  static void say(zmq::socket_t& socket, const std::string& body) {
    socket.send(zmq::buffer(body), zmq::send_flags::none);
  }
  int raw() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(link->endpoint().substr(link->endpoint().rfind(':') + 1))));
    int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  void expect_it_serves() {
    auto socket = dealer();
    say(socket, ping_body());
    auto before = got.wait_for(1);
    for (const auto& x : got.wait_for(before.size()))
      if (std::holds_alternative<ping>(x.frame))
        return;
    FAIL() << "no ping arrived";
  }

  inbox got;
  zmq::context_t context;
  std::unique_ptr<harness_link> link;
};

TEST_F(HarnessLink, CarriesFramesBothWays) {
  open();
  auto socket = dealer();
  say(socket, ping_body());
  auto messages = got.wait_for(1);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<ping>(messages[0].frame));
  EXPECT_TRUE(link->send(messages[0].peer, pong{3, "pause"}));
  zmq::message_t answer;
  ASSERT_TRUE(socket.recv(answer));
  EXPECT_EQ(answer.to_string(), encode(pong{3, "pause"}));
}

TEST_F(HarnessLink, SaysThatAPeerIsGone) {
  open();
  EXPECT_TRUE(link->send("nobody", again{}));
  auto messages = got.wait_for(1);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].peer, "nobody");
  EXPECT_TRUE(std::holds_alternative<peer_gone>(messages[0].frame));
}

TEST_F(HarnessLink, EndsOnlyTheConnectionThatSendsAHugeMessageOrGarbage) {
  open();
  auto huge = dealer();
  say(huge, std::string(100 << 20, 'x'));
  auto fd = raw();
  const char garbage[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  EXPECT_GT(::send(fd, garbage, sizeof garbage, MSG_NOSIGNAL), 0);
  char byte = 0;
  timeval limit{10, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ssize_t end = 0;
  while ((end = ::recv(fd, &byte, 1, 0)) > 0) // the greeting of the link comes first
    ;
  EXPECT_TRUE(end == 0 || errno == ECONNRESET) << "the connection is ended";
  ::close(fd);
  expect_it_serves();
  for (const auto& x : got.wait_for(1))
    EXPECT_TRUE(std::holds_alternative<ping>(x.frame));
}

TEST_F(HarnessLink, HandsOverABodyOfSeveralPartsAsMalformed) {
  open();
  auto socket = dealer();
  socket.send(zmq::str_buffer("a"), zmq::send_flags::sndmore);
  socket.send(zmq::str_buffer("b"), zmq::send_flags::sndmore);
  socket.send(zmq::str_buffer("c"), zmq::send_flags::none);
  say(socket, ping_body());
  auto messages = got.wait_for(2);
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<malformed>(messages[0].frame));
  EXPECT_TRUE(std::holds_alternative<ping>(messages[1].frame));
}

TEST_F(HarnessLink, StopsReadingWhileItsCreditIsUsedUpAndGoesOnWhenItIsReleased) {
  open({.credit_bytes = 100'000});
  auto socket = dealer();
  for (int i = 0; i < 20; ++i)
    say(socket, report_body(60'000));
  auto held = got.wait_for(2);
  EXPECT_EQ(held.size(), 2u);
  EXPECT_EQ(got.wait_for(3, 100ms).size(), 2u) << "nothing more is read";
  for (std::size_t released = 0; released < 20; ++released) {
    auto messages = got.wait_for(released + 1);
    ASSERT_GT(messages.size(), released);
    ASSERT_LE(messages.size(), released + 2) << "never more than the credit and one frame";
    link->release(weight(messages[released].frame));
  }
}

TEST_F(HarnessLink, RefusesATakenPortAndAnAddressOfAnotherHost) {
  open();
  auto none = [](std::vector<task_message>) {};
  EXPECT_EQ(open_harness_link({.endpoint = link->endpoint()}, none).error().code, errc::conflict);
  EXPECT_EQ(open_harness_link({.endpoint = "tcp://0.0.0.0:*"}, none).error().code, errc::invalid);
  EXPECT_EQ(open_harness_link({.endpoint = "tcp://127.0.0.1:port"}, none).error().code, errc::invalid);
  auto endpoint = link->endpoint();
  link.reset();
  open({.endpoint = endpoint});
  expect_it_serves();
}

} // namespace
} // namespace troupe::workers
