// Tests sockets that were handed over, as links and spliced to each other.

#include "runtime/http/socket_link.hpp"
#include "runtime/http/splice.hpp"

#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

#include <thread>

namespace troupe::http {
namespace {

/// The two ends of a TCP connection over loopback, as splicing is made for TCP.
struct ends_of {
  ends_of() {
    net::ip::tcp::acceptor door(io, {net::ip::address_v4::loopback(), 0});
    net::ip::tcp::socket a(io);
    a.connect(door.local_endpoint());
    auto b = door.accept();
    mine = workers::owned_fd{a.release()};
    theirs = workers::owned_fd{b.release()};
  }
  net::io_context io;
  workers::owned_fd mine, theirs;
};

std::string read_all(int fd) {
  std::string all;
  char piece[65536];
  for (ssize_t n = 0; (n = ::read(fd, piece, sizeof piece)) > 0;)
    all.append(piece, static_cast<std::size_t>(n));
  return all;
}
/// Writes until all bytes are sent or the other side has gone.
void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0)
      return;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string large_text() {
  std::string all;
  for (int i = 0; all.size() < (3u << 20); ++i)
    all += std::to_string(i);
  return all;
}

struct spliced_case {
  std::uint64_t asked;
  bool whole;
};

TEST(Splicer, MovesSoManyBytesAndNoMore) {
  const auto text = large_text();
  for (const auto& c :
       {spliced_case{text.size(), true}, {text.size() - 1000, true}, {1, true}, {text.size() + 1, false}}) {
    ends_of source, sink;
    std::thread writer([&] {
      write_all(source.mine.get(), text);
      source.mine.reset();
    });
    std::string arrived;
    std::thread reader([&] { arrived = read_all(sink.mine.get()); });
    net::io_context io;
    error_code bad;
    {
      auto from = on_executor(io.get_executor(), std::move(source.theirs), bad);
      auto to = on_executor(io.get_executor(), std::move(sink.theirs), bad);
      splicer moves{from.socket(), to.socket(), milliseconds{60'000}};
      ASSERT_TRUE(moves.ready());
      net::co_spawn(io, moves.run(c.asked, bad), net::detached);
      io.run();
    }
    writer.join();
    reader.join();
    EXPECT_EQ(!bad, c.whole) << bad.message();
    EXPECT_EQ(arrived, text.substr(0, c.asked)) << c.asked;
  }
}

TEST(Splicer, EndsWhereNobodyTakesTheBytes) {
  for (const bool goes : {true, false}) {
    ends_of source, sink;
    net::io_context io;
    error_code bad;
    auto from = on_executor(io.get_executor(), std::move(source.theirs), bad);
    auto to = on_executor(io.get_executor(), std::move(sink.theirs), bad);
    if (goes)
      sink.mine.reset(); // splicing to a closed socket must not raise SIGPIPE
    std::atomic<bool> over{false};
    std::thread writer([&] {
      const std::string piece(65536, 'x');
      while (!over && ::send(source.mine.get(), piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL) != 0)
        std::this_thread::yield();
    });
    splicer moves{from.socket(), to.socket(), milliseconds{200}};
    net::co_spawn(io, moves.run(1ull << 30, bad), net::detached);
    io.run();
    over = true;
    writer.join();
    EXPECT_TRUE(bad) << goes;
  }
}

TEST(SocketLink, PassesBytesBothWaysAndTheEndOfEach) {
  ends_of ends;
  net::io_context io;
  error_code bad;
  auto link = std::make_shared<socket_link>(on_executor(io.get_executor(), std::move(ends.theirs), bad));
  ASSERT_FALSE(bad);
  const auto text = large_text();
  std::string read, arrived;
  bool written = false, ended = false;
  std::thread other([&] {
    write_all(ends.mine.get(), "hello");
    ::shutdown(ends.mine.get(), SHUT_WR);
    arrived = read_all(ends.mine.get());
  });
  std::function<void(result<std::string>)> heard = [&](result<std::string> got) {
    ASSERT_TRUE(got) << got.error().what;
    ended = got->empty();
    read += *got;
    if (!ended)
      link->read(heard);
  };
  link->read(heard);
  link->write(text, [&](const result<void>& done) {
    written = bool(done);
    link->end_writing();
  });
  io.run();
  other.join();
  EXPECT_EQ(read, "hello");
  EXPECT_TRUE(written && ended);
  EXPECT_EQ(arrived.size(), text.size());
  EXPECT_EQ(arrived, text);
}

TEST(SocketLink, AnswersNothingAfterItWasClosedAndTheOtherSideSeesABreak) {
  ends_of ends;
  net::io_context io;
  error_code bad;
  auto link = std::make_shared<socket_link>(on_executor(io.get_executor(), std::move(ends.theirs), bad));
  int answers = 0;
  link->read([&](const result<std::string>&) { ++answers; });
  link->abort();
  link->read([&](const result<std::string>&) { ++answers; });
  io.run();
  EXPECT_EQ(answers, 0);
  char one = 0;
  EXPECT_EQ(::read(ends.mine.get(), &one, 1), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST(SocketLink, OfWhatIsNoSocketThereIsNone) {
  net::io_context io;
  error_code bad;
  auto none = on_executor(io.get_executor(), workers::owned_fd{::open("/dev/null", O_RDONLY)}, bad);
  EXPECT_TRUE(bad);
}

TEST(SocketLink, LeavesItsExecutorForAnotherOne) {
  ends_of ends;
  error_code bad;
  workers::owned_fd kept;
  {
    net::io_context first;
    auto stream = on_executor(first.get_executor(), std::move(ends.theirs), bad);
    kept = off_executor(stream);
  }
  ASSERT_TRUE(kept);
  net::io_context second;
  auto stream = on_executor(second.get_executor(), std::move(kept), bad);
  ASSERT_FALSE(bad);
  net::write(stream.socket(), net::buffer("still here", 10), bad);
  EXPECT_FALSE(bad);
  stream.close();
  EXPECT_EQ(read_all(ends.mine.get()), "still here");
}

} // namespace
} // namespace troupe::http
