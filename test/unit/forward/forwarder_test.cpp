#include "toy_master.hpp"

#include <gtest/gtest.h>

namespace troupe::forward::test {
namespace {

using namespace std::chrono_literals;

/// Answers every request of a connection with the request itself.
void echo(wire& w, int) {
  for (std::string got; !(got = w.message()).empty();)
    w.send(answer(got));
}

class Forwarder : public ::testing::Test {
protected:
  void start(std::uint16_t master_port, const std::function<void(forward_options&)>& change = {}) {
    master_ = master_port;
    forward_options how;
    how.master = [this] { return std::optional{master_address{"127.0.0.1", master_.load(), {}}}; };
    how.hold = 5s;
    if (change)
      change(how);
    auto made = forwarder::start(how);
    ASSERT_TRUE(made) << made.error().what;
    it = std::move(*made);
  }
  std::string ask(const std::string& text) {
    auto w = dial(it->port());
    w.send(text);
    return w.message();
  }
  std::atomic<std::uint16_t> master_{0};
  std::unique_ptr<forwarder> it;
};

const std::string get = "GET /api/v1/me HTTP/1.1\r\nHost: x\r\n\r\n";
const std::string post = "POST /api/v1/users HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";
const std::string task_post =
  "POST /api/v1/trials/1/metrics HTTP/1.1\r\nHost: x\r\nGrpc-Metadata-x-allocation-token: Bearer t\r\n"
  "Content-Length: 2\r\n\r\n{}";

TEST_F(Forwarder, HandsRequestsAndAnswersOnOverOneConnectionEachSide) {
  toy_master master{echo};
  start(master.port());
  {
    auto w = dial(it->port());
    for (int n = 0; n < 3; ++n) {
      w.send("GET /api/v1/trials/12?x=a%2Fb HTTP/1.1\r\nHost: agent\r\nAuthorization: Bearer "
             "t\r\nConnection: keep-alive\r\n\r\n");
      auto got = w.message();
      EXPECT_TRUE(got.starts_with("HTTP/1.1 200 OK\r\n")) << got;
      EXPECT_NE(got.find("GET /api/v1/trials/12?x=a%2Fb HTTP/1.1\r\n"), got.npos) << got;
      EXPECT_NE(got.find("Authorization: Bearer t\r\n"), got.npos) << got;
      EXPECT_NE(got.find("Host: 127.0.0.1:" + std::to_string(master.port())), got.npos) << got;
    }
    w.send(task_post);
    EXPECT_TRUE(w.message().ends_with("\r\n\r\n{}"));
    EXPECT_EQ(master.connections, 1);
    w.send(post); // such a request is never sent over a connection that may be closing
    EXPECT_TRUE(w.message().ends_with("\r\n\r\n{}"));
    EXPECT_EQ(master.connections, 2);
  }
  it.reset();
}

/// Accepts an upgrade to "echo", and refuses every other protocol.
void upgraded_echo(wire& w, int) {
  const auto head = w.read_until("\r\n\r\n");
  if (head.find("Connection: Upgrade\r\n") == head.npos || head.find("Upgrade: echo\r\n") == head.npos)
    return w.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno");
  w.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello\n");
  for (std::string line; !(line = w.read_until("\n")).empty();)
    w.send(line);
}

TEST_F(Forwarder, AnUpgradedConnectionIsATunnel) {
  toy_master master{upgraded_echo};
  start(master.port());
  const std::string ask =
    "GET /proxy/x HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo\r\n\r\n";
  {
    auto w = dial(it->port());
    w.send(ask + "early\n"); // the first bytes come in one piece with the request
    const auto head = w.read_until("\r\n\r\n");
    EXPECT_TRUE(head.starts_with("HTTP/1.1 101 ")) << head;
    EXPECT_NE(head.find("Upgrade: echo\r\n"), head.npos) << head;
    EXPECT_EQ(w.read_until("\n"), "hello\n") << "what the master said at once";
    EXPECT_EQ(w.read_until("\n"), "early\n");
    const auto long_line = std::string(300'000, 'x') + "\n";
    std::thread sender([&] { w.send(long_line); });
    EXPECT_EQ(w.read_until("\n"), long_line);
    sender.join();
    w.end_writing();
    EXPECT_TRUE(w.closed()) << "the master ends after the client";
  }
  auto other = dial(it->port());
  other.send("GET /proxy/x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n");
  EXPECT_TRUE(other.message().starts_with("HTTP/1.1 400 ")) << "the master's refusal";
  it.reset();
}

TEST_F(Forwarder, ATunnelEndsWithTheMastersSide) {
  toy_master master{[](wire& w, int) {
    static_cast<void>(w.read_until("\r\n\r\n"));
    w.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nbye");
  }};
  start(master.port(), [](forward_options& o) { o.max_connections = 1; });
  for (int n = 0; n < 3; ++n) { // each connection waits until the place of the one before is free
    auto w = dial(it->port());
    w.send("GET /x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
    static_cast<void>(w.read_until("\r\n\r\n"));
    EXPECT_EQ(w.read(3), "bye");
    EXPECT_TRUE(w.closed());
  }
  it.reset();
}

TEST_F(Forwarder, RequestsWaitForAMasterThatComesBack) {
  int fd = listen_on(0);
  const auto port = port_of(fd);
  ::close(fd);
  start(port);
  auto first = dial(it->port()), second = dial(it->port());
  first.send(get);
  second.send(post); // Nothing of this request was sent to a master, so it may wait too.
  {
    toy_master master{echo, port};
    EXPECT_TRUE(first.message().starts_with("HTTP/1.1 200"));
    EXPECT_TRUE(second.message().starts_with("HTTP/1.1 200"));
    it.reset();
  }
}

TEST_F(Forwarder, AMasterThatStaysAwayIsAnsweredWith503InTheContractsForm) {
  start(1, [](forward_options& o) { o.hold = 200ms; });
  for (const auto& text : {get, post, task_post}) {
    auto got = ask(text);
    EXPECT_TRUE(got.starts_with("HTTP/1.1 503 ")) << got;
    EXPECT_NE(got.find(R"({"error":{"code":14,"reason":"Unavailable","error":")"), got.npos) << got;
  }
}

TEST_F(Forwarder, ARequestWhoseConnectionBreaksIsSentAgainOnlyWhereThatIsHarmless) {
  // The first connection of each request breaks when the request has arrived.
  for (const auto& [text, status, tries] :
       {std::tuple{get, "200", 2}, {task_post, "200", 2}, {post, "502", 1}}) {
    toy_master master{[](wire& w, int n) {
      if (n == 1)
        static_cast<void>(w.message());
      else
        echo(w, n);
    }};
    start(master.port());
    auto got = ask(text);
    EXPECT_TRUE(got.starts_with(std::string("HTTP/1.1 ") + status)) << got;
    EXPECT_EQ(master.connections, tries) << text;
    it.reset();
  }
}

TEST_F(Forwarder, AKeptConnectionThatTheMasterClosedCostsTheClientNothing) {
  // the master answers one request and closes
  toy_master master{[](wire& w, int) { w.send(answer(w.message())); }};
  start(master.port());
  {
    auto w = dial(it->port());
    for (int n = 0; n < 5; ++n) {
      w.send(task_post);
      EXPECT_TRUE(w.message().starts_with("HTTP/1.1 200"));
    }
  }
  it.reset();
}

TEST_F(Forwarder, StreamsPassPieceByPiece) {
  std::mutex step;
  step.lock();
  toy_master master{[&](wire& w, int) {
    w.message();
    w.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n");
    std::lock_guard wait(step); // waits until the client has the first line
    w.send("4\r\ntwo\n\r\n0\r\n\r\n");
  }};
  start(master.port());
  {
    auto w = dial(it->port());
    w.send(get);
    EXPECT_NE(w.read_until("one\n").find("Transfer-Encoding: chunked"), std::string::npos);
    step.unlock();
    EXPECT_NE(w.read_until("0\r\n\r\n").find("two\n"), std::string::npos);
  }
  it.reset();
}

TEST_F(Forwarder, LargeAnswersAndRequestsPassWhole) {
  const std::string large(5'000'000, 'x');
  toy_master master{[&](wire& w, int) {
    for (std::string got; !(got = w.message()).empty();)
      w.send(answer(std::to_string(got.size() - got.find("\r\n\r\n") - 4) + large));
  }};
  start(master.port());
  auto got =
    ask("PUT /x HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(large.size()) + "\r\n\r\n" + large);
  EXPECT_TRUE(got.ends_with("5000000" + large)) << got.size();
  it.reset();
}

TEST_F(Forwarder, BoundsWhatAClientMayDo) {
  toy_master master{echo};
  start(master.port(), [](forward_options& o) {
    o.head_time = o.body_time = 100ms;
    o.body_bytes = 1000;
  });
  for (const auto& [what, text, answer] : {
         std::tuple{"half a head, then silence", std::string("GET / HTTP/1.1\r\nHo"), ""},
         {"half a body, then silence", "POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n123", ""},
         {"a body that is too large", "POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n", "HTTP/1.1 413 "},
         {"chunks that are too large",
          "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" + std::string(2000, 'x') +
            "\r\n0\r\n\r\n",
          "HTTP/1.1 413 "},
         {"no HTTP", std::string("\x16\x03\x01 hello\r\n\r\n"), "HTTP/1.1 400 "},
         {"a head bomb", "GET / HTTP/1.1\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n", "HTTP/1.1 400 "},
         {"broken chunks", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", ""},
       }) {
    auto w = dial(it->port());
    w.send(text);
    auto got = w.read_until("\r\n\r\n");
    EXPECT_TRUE(got.starts_with(answer) && got.empty() == std::string(answer).empty()) << what << ": " << got;
  }
  it.reset();
}

TEST_F(Forwarder, ALongPollWhoseClientIsGoneEndsAtTheMasterToo) {
  std::atomic<bool> ended{false};
  toy_master master{[&](wire& w, int) {
    w.message();
    ended = w.closed();
  }};
  start(master.port());
  {
    auto w = dial(it->port());
    w.send(get);
    for (int n = 0; master.connections == 0 && n < 10'000; ++n)
      std::this_thread::yield();
  }
  for (auto until = std::chrono::steady_clock::now() + 10s;
       !ended && std::chrono::steady_clock::now() < until;)
    std::this_thread::yield();
  EXPECT_TRUE(ended);
}

TEST_F(Forwarder, MoreClientsThanItTakesWaitUntilOneEnds) {
  toy_master master{echo};
  start(master.port(), [](forward_options& o) { o.max_connections = 2; });
  std::vector<wire> all;
  for (int n = 0; n < 6; ++n) {
    all.push_back(dial(it->port()));
    all.back().send(get);
  }
  for (auto& w : all)
    // Where more than half of the connections are in use, every answer ends its connection.
    EXPECT_TRUE(w.message().starts_with("HTTP/1.1 200"));
  all.clear();
  it.reset();
}

TEST_F(Forwarder, TakesTheSamePortAgain) {
  toy_master master{echo};
  start(master.port());
  const auto port = it->port();
  auto open = dial(port);
  auto taken = forwarder::start({port, [] { return std::nullopt; }});
  EXPECT_FALSE(taken);
  it.reset();
  start(master.port(), [&](forward_options& o) { o.port = port; });
  EXPECT_EQ(it->port(), port);
}

} // namespace
} // namespace troupe::forward::test
