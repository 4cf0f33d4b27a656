#pragma once
// One HTTP/1.1 connection on the side that answers, for the server and the agents' forwarder. It reads a
// request's head and body and sends an answer, each within limits of size and time; or the connection is
// taken over and is then no longer HTTP. The owner of the session decides what is answered, and makes answers
// that grow while they are sent. Everything runs on the stream's executor.

#include <utility> // must stand before Asio, whose coroutine header forgets it

#include "runtime/http/byte_link.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <mutex>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <poll.h>
#include <string_view>
#include <sys/socket.h>
#include <vector>

namespace troupe::http {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace wire = beast::http;
using boost::system::error_code;
using steady = std::chrono::steady_clock;
using std::chrono::milliseconds;
template <class T>
using task = net::awaitable<T>;

inline auto into(error_code& bad) { return net::redirect_error(net::use_awaitable, bad); }

struct session_limits {
  std::uint32_t head_bytes = 16u << 10;
  milliseconds head_time{30'000}; ///< limit for the head of a request, from its first byte
  milliseconds idle_time{75'000}; ///< limit of the silence between two requests
  /// Time for a whole body, plus a second for each `body_rate` bytes; without a rate: time for each piece.
  milliseconds body_time{30'000};
  /// Time in which each piece of an answer must be taken; for the whole answer, a second for each `body_rate`
  /// bytes is added.
  milliseconds write_time{30'000};
  std::size_t body_rate = 0; ///< bytes per second; 0: no rate
  /// Limit of the bytes of an unwanted body that are read so that the answer arrives.
  std::size_t drained_bytes = 256u << 10;
  /// Limit of the bytes that are read after the answer for the same reason, for at most two seconds.
  std::size_t lingered_bytes = 512u << 20;
};

/// How reading a head or a body ended.
enum class heard {
  whole,
  malformed, ///< `fault` says why; the connection has to end after the answer
  too_large, ///< the body exceeds its limit; the connection has to end after the answer
  gone,      ///< the client has gone, or was too slow
};

/// Sends what arrives on one stream to the other until the end, which is passed on. `waiting`: bytes of
/// `from` that were already read. `write_time`: time in which a piece must be taken. False if one of the
/// streams failed.
template <class From, class To>
task<bool> pump(From& from, beast::flat_buffer& waiting, To& to, milliseconds write_time) {
  error_code bad;
  // A connection that is silent, or sends little, holds little memory.
  constexpr std::size_t small = 2048, large = 65536;
  std::vector<char> piece(small);
  std::size_t filled = 0;
  while (!bad) {
    auto ready = net::const_buffer(waiting.data());
    if (ready.size() == 0) {
      beast::get_lowest_layer(from).expires_never();
      const auto got = co_await from.async_read_some(net::buffer(piece), into(bad));
      if (bad)
        break;
      ready = net::buffer(piece.data(), got);
      filled = got;
    }
    beast::get_lowest_layer(to).expires_after(write_time);
    error_code not_taken;
    co_await net::async_write(to, ready, into(not_taken));
    if (not_taken)
      co_return false;
    waiting.clear();
    if (const auto next = filled == piece.size() ? large
                          : filled < small       ? small
                                                 : piece.size();
        next != piece.size())
      piece = std::vector<char>(next);
  }
  error_code ignored;
  beast::get_lowest_layer(to).socket().shutdown(net::ip::tcp::socket::shutdown_send, ignored);
  co_return bad == net::error::eof || bad == net::ssl::error::stream_truncated;
}

/// `true`: the other side of the TCP connection reads a break (a reset) where the stream is closed from now
/// on, also where the kernel closes it because this process was killed. `false`: it reads an end, as usual.
template <class Stream>
void close_as_break(Stream& stream, bool is_break) {
  error_code ignored;
  beast::get_lowest_layer(stream).socket().set_option(net::socket_base::linger(is_break, 0), ignored);
}

/// A silent TCP connection whose other host has lost its power or its network breaks after a minute; without
/// this it would look idle for hours. Where bytes were on their way it is the kernel that gives up, after a
/// quarter of an hour: TCP_USER_TIMEOUT would be shorter, but it also cuts who reads nothing for that time.
inline void notice_dead_host(int socket) {
  const auto set = [socket](int level, int name, int to) {
    ::setsockopt(socket, level, name, &to, sizeof to);
  };
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 15);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
}

/// Pumps in both directions until both have ended, or one has failed: then both streams are closed, and the
/// other sides read an end.
template <class A, class B>
task<void> join(A& a, beast::flat_buffer& of_a, B& b, beast::flat_buffer& of_b,
                milliseconds write_time = milliseconds{30'000}) {
  const auto on = co_await net::this_coro::executor;
  net::steady_timer over(on);
  bool back_runs = true;
  const auto in_order = [&] {
    close_as_break(a, false);
    close_as_break(b, false);
  };
  const auto closed = [&] {
    in_order();
    beast::get_lowest_layer(a).close();
    beast::get_lowest_layer(b).close();
  };
  auto back = pump(b, of_b, a, write_time);
  net::co_spawn(on, std::move(back), [&](std::exception_ptr, bool whole) {
    back_runs = false;
    if (!whole)
      closed();
    over.cancel();
  });
  const bool whole = co_await pump(a, of_a, b, write_time);
  if (!whole)
    closed();
  while (back_runs) {
    error_code canceled;
    over.expires_at(steady::time_point::max());
    co_await over.async_wait(into(canceled));
  }
  in_order();
}

template <class Stream>
class session {
public:
  using request = wire::request<wire::string_body>;
  static constexpr bool is_tls = !std::is_same_v<Stream, beast::tcp_stream>;

  session(Stream stream, session_limits limits) : stream_(std::move(stream)), limits_(limits) {}
  ~session() {
    if (!lent_)
      return;
    std::lock_guard lock{lent_->mutex};
    lent_->at = nullptr;
    lent_->on.reset();
  }
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  Stream& stream() { return stream_; }
  beast::tcp_stream& lowest() { return beast::get_lowest_layer(stream_); }
  beast::flat_buffer& unread() { return buffer_; }
  void close() {
    lowest().close();
    if (lent_ && !std::exchange(lent_->ended, true))
      over_.cancel();
  }
  bool idle() const { return idle_; } ///< whether the session waits between two requests

  /// False if the client does not speak TLS. Does nothing on a stream without TLS.
  task<bool> shake_hands() {
    error_code bad;
    if constexpr (is_tls) {
      lowest().expires_after(limits_.head_time);
      co_await stream_.async_handshake(net::ssl::stream_base::server, into(bad));
    }
    co_return !bad;
  }

  // ---- a request

  /// Waits for the next request and reads its head.
  task<heard> read_head() {
    error_code bad;
    body_.reset();
    head_.emplace();
    head_->header_limit(limits_.head_bytes);
    head_->body_limit(std::numeric_limits<std::uint64_t>::max()); // limited in read_body
    if (buffer_.size() == 0) { // the first byte may take longer than the rest of the head
      idle_ = true;
      lowest().expires_after(requests_ == 0 ? limits_.head_time : limits_.idle_time);
      auto room = buffer_.prepare(4096);
      const auto got = co_await stream_.async_read_some(room, into(bad));
      idle_ = false;
      if (bad)
        co_return heard::gone;
      buffer_.commit(got);
    }
    lowest().expires_after(limits_.head_time);
    co_await wire::async_read_header(stream_, buffer_, *head_, into(bad));
    ++requests_;
    version_ = 11;
    keep_alive_ = head_only_ = false;
    if (bad)
      co_return judged(bad, "this is not an HTTP/1.1 request: ");
    const auto& h = head_->get();
    version_ = h.version();
    keep_alive_ = h.keep_alive();
    head_only_ = h.method() == wire::verb::head;
    if (const auto coding = h[wire::field::transfer_encoding];
        h.count(wire::field::transfer_encoding) > 1 ||
        (!coding.empty() && !beast::iequals(coding, "chunked"))) {
      keep_alive_ = false; // nobody can know where this body ends
      fault_ = "of transfer encodings only 'chunked' is known here";
      co_return heard::malformed;
    }
    co_return heard::whole;
  }

  /// The head of the request that was read last.
  const wire::request_header<>& head() const { return body_ ? body_->get().base() : head_->get().base(); }
  std::optional<std::uint64_t> content_length() const {
    const auto length = head_->content_length();
    return length ? std::optional<std::uint64_t>(*length) : std::nullopt;
  }
  bool chunked() const { return head_->chunked(); }
  /// The fault in the first line of a chunked body, as far as that line arrived with the head; to be called
  /// before the body is read.
  error_code first_chunk_fault() const {
    error_code bad;
    if (!chunked())
      return bad;
    wire::request_parser<wire::buffer_body> alike; // a parser of its own: the request's parser must not move
    alike.body_limit(std::numeric_limits<std::uint64_t>::max());
    constexpr std::string_view head = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    alike.put(net::const_buffer(head.data(), head.size()), bad);
    if (!bad)
      alike.put(net::const_buffer(buffer_.cdata()), bad);
    return bad == wire::error::need_more ? error_code() : bad;
  }
  /// Whether the client offers to speak another protocol on this connection.
  bool wants_upgrade() const {
    return version_ >= 11 && wire::token_list{head()[wire::field::connection]}.exists("upgrade") &&
           !head()[wire::field::upgrade].empty();
  }
  const std::string& fault() const { return fault_; } ///< fault of the last `malformed`

  /// Tells a client that waits for permission to send its body, and reads at most `limit` bytes of the body.
  task<heard> read_body(std::size_t limit) {
    error_code bad;
    if (content_length().value_or(0) > limit)
      co_return heard::too_large;
    if (!head_->is_done() && beast::iequals(head()[wire::field::expect], "100-continue")) {
      lowest().expires_after(limits_.write_time);
      co_await net::async_write(stream_, net::buffer("HTTP/1.1 100 Continue\r\n\r\n", 25), into(bad));
      if (bad)
        co_return heard::gone;
    }
    body_.emplace(std::move(*head_));
    body_->body_limit(limit);
    const auto began = steady::now();
    for (std::size_t read = buffer_.size(); !bad && !body_->is_done();) {
      lowest().expires_at(limits_.body_rate ? began + limits_.body_time + allowance(read)
                                            : steady::now() + limits_.body_time);
      read += co_await wire::async_read_some(stream_, buffer_, *body_, into(bad));
      if (bad == wire::error::need_buffer)
        bad = {};
    }
    if (bad == wire::error::body_limit)
      co_return heard::too_large;
    if (bad)
      co_return judged(bad, "malformed body: ");
    co_return heard::whole;
  }
  /// To be called in place of `read_body` by a caller that reads the body piece by piece from `stream()` and
  /// `unread()`; `head` is not available afterwards.
  std::unique_ptr<wire::request_parser<wire::buffer_body>> take_body() {
    auto out = std::make_unique<wire::request_parser<wire::buffer_body>>(std::move(*head_));
    out->body_limit(std::numeric_limits<std::uint64_t>::max());
    return out;
  }
  /// The whole request; to be called once, after `read_body`.
  request take_request() { return body_->release(); }

  /// To be called in place of `read_body` if the request is refused: reads the body if it is small. Otherwise
  /// the connection has to end after the answer.
  task<void> skip_body() {
    error_code bad = net::error::message_size;
    if (content_length().value_or(0) <= limits_.drained_bytes && !chunked() &&
        head()[wire::field::expect].empty()) {
      bad = {};
      body_.emplace(std::move(*head_));
      body_->body_limit(limits_.drained_bytes);
      lowest().expires_after(limits_.head_time);
      while (!bad && !body_->is_done())
        co_await wire::async_read_some(stream_, buffer_, *body_, into(bad));
    }
    keep_alive_ = keep_alive_ && !bad;
  }

  // ---- an answer

  unsigned version() const { return version_; }
  bool head_only() const { return head_only_; } ///< whether the answer has no body
  bool keep_alive() const { return keep_alive_; }
  void end_after_answer() { keep_alive_ = false; }

  /// Sends a whole answer, after setting its version and connection. A client that takes only a byte from
  /// time to time is dropped as well.
  template <class Body>
  task<void> send(wire::response<Body>& answer) {
    error_code bad;
    answer.version(version_);
    answer.keep_alive(keep_alive_);
    wire::response_serializer<Body> out{answer};
    const auto began = steady::now();
    for (std::size_t sent = 0; !bad && !out.is_done();) {
      const auto now = steady::now();
      const auto whole =
        limits_.body_rate ? began + limits_.write_time + allowance(sent) : now + limits_.write_time;
      lowest().expires_at(std::min(whole, now + limits_.write_time));
      if (head_only_) {
        co_await wire::async_write_header(stream_, out, into(bad));
        break;
      }
      sent += co_await wire::async_write_some(stream_, out, into(bad));
    }
    keep_alive_ = keep_alive_ && !bad;
  }

  /// Sends bytes of an answer that is made while it is sent; false if the client has gone or is too slow.
  template <class Buffers>
  task<bool> send_piece(const Buffers& bytes) {
    error_code bad;
    lowest().expires_after(limits_.write_time);
    co_await net::async_write(stream_, bytes, into(bad));
    co_return !bad;
  }

  /// Ends the connection so that the client can still read the last answer: a close with unread bytes would
  /// reset the connection. `linger`: whether to wait a moment for the client's own end.
  task<void> finish(bool linger) {
    error_code bad;
    lowest().expires_after(milliseconds{2000});
    if constexpr (is_tls)
      co_await stream_.async_shutdown(into(bad));
    lowest().socket().shutdown(net::ip::tcp::socket::shutdown_send, bad);
    for (std::size_t read = 0; linger && !bad && read < limits_.lingered_bytes;) {
      buffer_.clear();
      auto room = buffer_.prepare(16384);
      read += co_await lowest().async_read_some(room, into(bad));
    }
  }

  // ---- while an answer is made

  /// `left` is called once if the client goes before `unwatch`. `hears_on`: a client that only sends no more
  /// counts as still there, because it may read the answer. That it has gone altogether shows when something
  /// is written, or by a reset: the kernel asks for a sign of life every 15 s, and gets a reset once the
  /// client's host has forgotten the connection (Linux: after 60 s). Over TLS, whatever arrives counts as the
  /// client's going, because nobody can tell what it is without reading it.
  void watch(std::function<void()> left, bool hears_on = false) {
    lowest().expires_never();
    left_ = std::move(left);
    hears_on_ = hears_on;
    if (std::exchange(watching_, true))
      return;
    lowest().socket().async_wait(
      net::ip::tcp::socket::wait_read, [this, alive = std::weak_ptr<int>(alive_)](const error_code& bad) {
        if (alive.expired())
          return;
        watching_ = false;
        if (bad)
          return;
        char one = 0;
        const auto got = ::recv(lowest().socket().native_handle(), &one, 1, MSG_PEEK | MSG_DONTWAIT);
        if (got == 0 && hears_on_ && !is_tls)
          watch_for_reset();
        else if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK) || is_tls)
          leave();
      });
  }
  void unwatch() { left_ = nullptr; }
  bool gone() const { return gone_; }

  // ---- taking over

  /// Answers 101 with these headers and hands the connection to `to`; returns when the link has ended, and
  /// the connection with it.
  task<void> lend(wire::response<wire::empty_body>& answer, const taker& to) {
    error_code bad;
    const bool switched = co_await switch_protocols(answer);
    if (!switched)
      co_return;
    close_as_break(lowest(), true); // the end of this server must not look like an end of the other link
    lent_ = std::make_shared<lent>(*this);
    head_.reset();
    body_.reset();
    buffer_.shrink_to_fit();
    to(std::make_shared<lent_link>(lent_));
    while (!lent_->ended || lent_->running > 0) {
      over_.expires_at(steady::time_point::max());
      co_await over_.async_wait(into(bad));
    }
  }

  /// Answers 101 and hands the socket itself to `to`: nothing remains here. Only for connections without TLS;
  /// a connection on which more than the request has arrived is closed.
  task<void> give(wire::response<wire::empty_body>& answer, const socket_taker& to) {
    static_assert(!is_tls);
    const bool switched = co_await switch_protocols(answer);
    if (!switched || buffer_.size() > 0)
      co_return;
    error_code bad;
    auto socket = stream_.release_socket();
    workers::owned_fd fd{socket.release(bad)};
    if (!bad)
      to(std::move(fd));
  }

private:
  void leave() {
    gone_ = true;
    if (left_)
      std::exchange(left_, nullptr)();
  }
  void watch_for_reset() {
    watching_ = true;
    const int socket = lowest().socket().native_handle();
    notice_dead_host(socket);
    lowest().socket().async_wait(net::ip::tcp::socket::wait_error,
                                 [this, socket, alive = std::weak_ptr<int>(alive_)](const error_code& bad) {
                                   if (alive.expired())
                                     return;
                                   watching_ = false;
                                   pollfd now{socket, 0, 0}; // urgent bytes end the wait as well
                                   if (!bad && ::poll(&now, 1, 0) > 0 && (now.revents & (POLLERR | POLLHUP)))
                                     leave();
                                 });
  }

  task<bool> switch_protocols(wire::response<wire::empty_body>& answer) {
    error_code bad;
    keep_alive_ = false;
    unwatch();
    notice_dead_host(lowest().socket().native_handle());
    answer.version(11);
    answer.result(wire::status::switching_protocols);
    answer.set(wire::field::connection, "Upgrade");
    wire::response_serializer<wire::empty_body> out{answer};
    lowest().expires_after(limits_.write_time);
    co_await wire::async_write_header(stream_, out, into(bad));
    co_return !bad;
  }

  /// The state shared by the session and the link that the taker holds, which may live longer than the
  /// server.
  struct lent {
    explicit lent(session& of) : on(of.stream_.get_executor()), at(&of) {}
    std::mutex mutex;
    std::optional<net::any_io_executor> on; ///< none once the session has ended; guarded by mutex
    session* at;                            ///< only the executor uses this and the members below
    bool ended = false;
    int running = 0; ///< number of reads and writes under way

    void stepped() {
      if (at)
        at->over_.cancel();
    }
    void end() {
      ended = true;
      if (at)
        at->close();
      stepped();
    }
  };

  class lent_link final : public byte_link {
  public:
    explicit lent_link(std::shared_ptr<lent> x) : x_(std::move(x)) {}
    ~lent_link() override { close(); }

    void read(std::function<void(result<std::string>)> done) override {
      auto work = [x = x_, done] {
        ++x->running;
        net::co_spawn(x->at->stream_.get_executor(), x->at->read_lent(x, done), net::detached);
      };
      if (!run(std::move(work)))
        done(error{errc::unreachable, "the connection has ended"});
    }
    void write(std::string bytes, std::function<void(result<void>)> done) override {
      auto work = [x = x_, bytes = std::move(bytes), done]() mutable {
        ++x->running;
        net::co_spawn(x->at->stream_.get_executor(), x->at->write_lent(x, std::move(bytes), done),
                      net::detached);
      };
      if (!run(std::move(work)))
        done(error{errc::unreachable, "the connection has ended"});
    }
    void be_patient(milliseconds write_time) override {
      run([x = x_, write_time] { x->at->limits_.write_time = write_time; });
    }
    void end_writing() override {
      run([x = x_] {
        error_code ignored;
        x->at->lowest().socket().shutdown(net::ip::tcp::socket::shutdown_send, ignored);
      });
    }
    void close() override {
      run([x = x_] {
        close_as_break(x->at->lowest(), false);
        x->end();
      });
    }
    void abort() override {
      run([x = x_] {
        close_as_break(x->at->lowest(), true);
        x->end();
      });
    }

  private:
    /// Runs `work` on the connection's executor, unless the connection has ended; false if it is known that
    /// it has.
    template <class Work>
    bool run(Work work) {
      std::lock_guard lock{x_->mutex};
      if (!x_->on)
        return false;
      net::post(*x_->on, [x = x_, work = std::move(work)]() mutable {
        if (x->at && !x->ended)
          work();
      });
      return true;
    }
    std::shared_ptr<lent> x_;
  };

  // The session waits until the reads and writes below have ended; `x` lives longer than both.
  task<void> read_lent(std::shared_ptr<lent> x, std::function<void(result<std::string>)> done) {
    error_code bad;
    std::string bytes;
    std::size_t got = 0;
    if (buffer_.size() > 0) { // bytes that arrived with the request
      bytes.resize(std::min<std::size_t>(buffer_.size(), 65536));
      got = net::buffer_copy(net::buffer(bytes), buffer_.data());
      buffer_.consume(got);
    } else {
      lowest().expires_never();
      if constexpr (is_tls) {
        bytes.resize(16384);
      } else { // a connection that waits holds no memory
        co_await lowest().socket().async_wait(net::ip::tcp::socket::wait_read, into(bad));
        error_code ignored;
        if (!bad)
          bytes.resize(std::clamp<std::size_t>(lowest().socket().available(ignored), 1, 65536));
      }
      if (!bad)
        got = co_await stream_.async_read_some(net::buffer(bytes), into(bad));
    }
    --x->running;
    x->stepped();
    if (x->ended)
      co_return;
    bytes.resize(bad ? 0 : got);
    if (bad && bad != net::error::eof && bad != net::ssl::error::stream_truncated)
      done(error{errc::unreachable, bad.message()});
    else
      done(std::move(bytes));
  }

  task<void> write_lent(std::shared_ptr<lent> x, std::string bytes, std::function<void(result<void>)> done) {
    error_code bad;
    lowest().expires_after(limits_.write_time);
    co_await net::async_write(stream_, net::buffer(bytes), into(bad));
    --x->running;
    x->stepped();
    if (!x->ended)
      done(bad ? result<void>(error{errc::unreachable, bad.message()}) : result<void>());
  }

  std::chrono::seconds allowance(std::size_t bytes) const {
    return std::chrono::seconds{bytes / limits_.body_rate};
  }

  /// Distinguishes bytes that are not HTTP from a client that has gone.
  heard judged(const error_code& bad, const char* what) {
    const bool fault = bad.category() == wire::make_error_code(wire::error::bad_method).category() &&
                       bad != wire::error::end_of_stream && bad != wire::error::partial_message;
    if (!fault)
      return heard::gone;
    fault_ = what + bad.message();
    keep_alive_ = false;
    return heard::malformed;
  }

  Stream stream_;
  session_limits limits_;
  beast::flat_buffer buffer_{64u << 10};
  std::optional<wire::request_parser<wire::empty_body>> head_;
  std::optional<wire::request_parser<wire::string_body>> body_;
  std::string fault_;
  std::size_t requests_ = 0;
  unsigned version_ = 11;
  bool keep_alive_ = false, head_only_ = false, idle_ = false, watching_ = false, hears_on_ = false,
       gone_ = false;
  std::function<void()> left_;
  std::shared_ptr<lent> lent_;
  /// Waits for a change of the connection that was taken over; each change cancels the wait.
  net::steady_timer over_{stream_.get_executor()};
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

} // namespace troupe::http
