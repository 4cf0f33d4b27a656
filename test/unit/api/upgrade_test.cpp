// Tests a connection that a handler takes over: the handler answers 101, and then bytes go both ways.

#include "fakes.hpp"

#include <thread>

namespace troupe::api {
namespace {

/// Sends back what comes, and ends its own side after the client has ended.
void echo(const std::shared_ptr<http::byte_link>& link) {
  link->read([link](result<std::string> got) {
    if (!got || got->empty())
      return link->end_writing();
    link->write(std::move(*got), [link](result<void> sent) {
      if (sent)
        echo(link);
    });
  });
}

server_options with_route(http::taker taker) {
  route row;
  row.method = "GET";
  row.path = "/echo";
  row.right = {action::view, thing::door};
  row.run = [taker = std::move(taker)](const call_ptr& c, const reply& back) {
    response out;
    if (c->headers.upgrade == "echo") {
      out.headers.emplace_back("Upgrade", "echo");
      out.taker = taker;
    } else {
      out.status = 426;
    }
    back(std::move(out));
  };
  server_options how;
  how.more_routes.push_back(std::move(row));
  return how;
}

const std::string ask =
  "GET /echo HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo\r\n\r\n";

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }
auto until(std::string part) {
  return [part = std::move(part)](const std::string& got) { return has(got, part); };
}

TEST(Upgrade, GivesTheConnectionAwayWithWhatHadComeAlready) {
  live x{with_route(echo)};
  raw_client c{x.http->port()};
  c.send(ask + "first "); // the first bytes come in one piece with the request
  auto got = c.read_until(until("first "));
  EXPECT_TRUE(got.starts_with("HTTP/1.1 101 Switching Protocols\r\n")) << got;
  EXPECT_TRUE(has(got, "Upgrade: echo\r\n") && has(got, "Connection: Upgrade\r\n")) << got;
  EXPECT_FALSE(has(got, "Content-Length") || has(got, "chunked")) << got;
  c.forget();
  std::string much(300'000, 'x');
  std::thread sender([&] { c.send("second " + much + " end"); });
  got = c.read_until(until(" end"));
  sender.join();
  EXPECT_EQ(got, "second " + much + " end");
}

TEST(Upgrade, EachSideEndsByItself) {
  live x{with_route(echo)};
  raw_client c{x.http->port()};
  c.send(ask + "last words");
  c.end_writing();
  bool closed = false;
  auto got = c.read_until([](const std::string&) { return false; }, &closed);
  EXPECT_TRUE(closed);
  EXPECT_TRUE(got.ends_with("\r\n\r\nlast words")) << got;
}

TEST(Upgrade, IsNotDoneForWhoDidNotAsk) {
  live x{with_route(echo)};
  raw_client c{x.http->port()};
  EXPECT_EQ(c.ask("GET", "/echo").status, 426);
  EXPECT_EQ(c.ask("GET", "/echo", "", "", "Upgrade: echo\r\n").status, 426) << "Connection does not name it";
  EXPECT_EQ(c.ask("GET", "/health", "", "", "Connection: Upgrade\r\nUpgrade: echo\r\n").status, 200)
    << "a route that has nothing else to speak answers as ever";
  c.send("GET /echo HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
  EXPECT_TRUE(has(c.read_until(until("\r\n\r\n")), " 426 "));
}

TEST(Upgrade, TheTakerClosesAndTheClientNotices) {
  live x{with_route([](std::shared_ptr<http::byte_link> link) {
    link->write("bye", [link](result<void>) { link->close(); });
  })};
  raw_client c{x.http->port()};
  c.send(ask);
  bool closed = false;
  auto got = c.read_until([](const std::string&) { return false; }, &closed);
  EXPECT_TRUE(closed && got.ends_with("bye")) << got;
}

TEST(Upgrade, AConnectionThatNobodyKeepsIsClosedAndItsPlaceIsFree) {
  auto how = with_route([](const std::shared_ptr<http::byte_link>&) {});
  how.max_connections = 1;
  live x{how};
  for (int n = 0; n < 3; ++n) { // each connection waits until the place of the one before is free
    raw_client c{x.http->port()};
    c.send(ask);
    bool closed = false;
    auto got = c.read_until([](const std::string&) { return false; }, &closed);
    EXPECT_TRUE(closed && got.starts_with("HTTP/1.1 101 ")) << got;
  }
  raw_client after{x.http->port()};
  EXPECT_EQ(after.ask("GET", "/health").status, 200);
}

TEST(Upgrade, ALinkThatOutlivesItsServerAnswersThatItIsOver) {
  std::mutex mutex;
  std::shared_ptr<http::byte_link> kept;
  {
    live x{with_route([&](std::shared_ptr<http::byte_link> link) {
      std::lock_guard lock{mutex};
      kept = std::move(link);
    })};
    raw_client c{x.http->port()};
    c.send(ask);
    c.read_until(until("\r\n\r\n"));
    c.forget();
    x.http->stop(std::chrono::seconds{20}); // the server does not wait for a connection that was taken over
    bool closed = false;
    c.read_until([](const std::string&) { return false; }, &closed);
    EXPECT_TRUE(closed);
  }
  std::lock_guard lock{mutex};
  ASSERT_TRUE(kept);
  std::string said;
  kept->read([&](result<std::string> got) { said += got ? "read " : name(got.error().code); });
  kept->write(
    "x", [&](result<void> sent) { said += sent ? " written" : std::string(" ") + name(sent.error().code); });
  kept->end_writing();
  kept->close();
  EXPECT_EQ(said, "unreachable unreachable");
  kept.reset();
}

} // namespace
} // namespace troupe::api
