#include "runtime/api/connection.hpp"

#include "runtime/api/errors.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

#include <limits>

namespace troupe::api {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using std::chrono::milliseconds;
template <class T>
using task = net::awaitable<T>;

constexpr std::uint32_t head_bytes = 16u << 10;
constexpr std::size_t small_body = 1u << 20, max_slow_calls = 64, drained_bytes = 256u << 10;

auto into(error_code& bad) { return net::redirect_error(net::use_awaitable, bad); }

/// Bytes taken from the memory that all large bodies share.
class reservation {
public:
  reservation(server_core& core, std::size_t bytes) : core_(core) {
    if (core.body_bytes.fetch_add(bytes) + bytes <= core.options.body_memory)
      bytes_ = bytes;
    else
      core.body_bytes -= bytes, refused_ = true;
  }
  reservation(const reservation&) = delete;
  ~reservation() { core_.body_bytes -= bytes_; }
  bool refused() const { return refused_; }

private:
  server_core& core_;
  std::size_t bytes_ = 0;
  bool refused_ = false;
};

/// Where an answer arrives, from any thread.
struct mailbox {
  explicit mailbox(net::any_io_executor on) : timer(std::move(on)) {}
  std::mutex mutex;
  std::optional<response> got;
  bool waiting = false;
  net::steady_timer timer;
};

template <class Stream>
class connection {
public:
  connection(server_core& core, Stream stream) : core_(core), stream_(std::move(stream)) {}

  task<void> run() {
    entry_ = std::make_shared<open_connection>();
    entry_->on = stream_.get_executor();
    entry_->close = [this] { beast::get_lowest_layer(stream_).close(); };
    {
      std::lock_guard lock{core_.mutex};
      core_.connections.insert(entry_);
    }
    error_code bad;
    if constexpr (is_tls) {
      lowest().expires_after(core_.options.head_time);
      co_await stream_.async_handshake(net::ssl::stream_base::server, into(bad));
    }
    for (bool more = !bad; more && !core_.stopping;)
      more = co_await one_request();
    if (!bad)
      co_await finish();
  }

  ~connection() {
    if (!entry_)
      return;
    entry_->close = {};
    std::lock_guard lock{core_.mutex};
    core_.connections.erase(entry_);
  }

private:
  static constexpr bool is_tls = !std::is_same_v<Stream, beast::tcp_stream>;
  beast::tcp_stream& lowest() { return beast::get_lowest_layer(stream_); }

  /// False where the connection ends after it.
  task<bool> one_request() {
    error_code bad;
    http::request_parser<http::empty_body> head;
    head.header_limit(head_bytes);
    head.body_limit(std::numeric_limits<std::uint64_t>::max()); // bounded below, by the route
    if (buffer_.size() == 0) { // waits for the first byte longer than for the rest of the head
      entry_->idle = true;
      lowest().expires_after(requests_ == 0 ? core_.options.head_time : core_.options.idle_time);
      auto room = buffer_.prepare(4096);
      auto got = co_await stream_.async_read_some(room, into(bad));
      entry_->idle = false;
      if (bad)
        co_return false;
      buffer_.commit(got);
    }
    lowest().expires_after(core_.options.head_time);
    co_await http::async_read_header(stream_, buffer_, head, into(bad));
    ++requests_;
    if (bad == beast::error::timeout || bad == http::error::end_of_stream || (bad && !is_parse_fault(bad)))
      co_return false;
    version_ = 11;
    keep_alive_ = false;
    head_only_ = false;
    if (bad) {
      auto why = failure({errc::invalid, "this is not an HTTP/1.1 request: " + bad.message()});
      co_await send(why);
      co_return false;
    }
    const auto& h = head.get();
    version_ = h.version();
    keep_alive_ = h.keep_alive();
    head_only_ = h.method() == http::verb::head;
    auto let_in = core_.api.admit(head_of(h));
    if (auto* refused = std::get_if<response>(&let_in)) {
      const bool drained = co_await drain(head);
      keep_alive_ = keep_alive_ && drained;
      co_await send(*refused);
      co_return keep_alive_;
    }
    const bool more = co_await admitted(head, std::get<admission>(let_in));
    co_return more;
  }

  task<bool> admitted(http::request_parser<http::empty_body>& head, admission& let_in) {
    error_code bad;
    const auto limit = let_in.body_bytes();
    const auto length = head.content_length();
    if (length && *length > limit) {
      auto why = over_bound(limit);
      co_await refuse(why);
      co_return false;
    }
    const bool chunked = head.chunked();
    const std::size_t most = length ? static_cast<std::size_t>(*length) : chunked ? limit : 0;
    reservation memory{core_, most > small_body ? most : 0};
    if (memory.refused()) {
      auto why = failure(http_of(errc::unreachable), "too many large requests at once; try again");
      co_await refuse(why);
      co_return false;
    }
    if (beast::iequals(head.get()[http::field::expect], "100-continue")) {
      lowest().expires_after(core_.options.write_time);
      co_await net::async_write(stream_, net::buffer("HTTP/1.1 100 Continue\r\n\r\n", 25), into(bad));
      if (bad)
        co_return false;
    }
    http::request_parser<http::string_body> body{std::move(head)};
    body.body_limit(limit);
    const auto began = std::chrono::steady_clock::now();
    for (std::size_t read = buffer_.size(); !bad && !body.is_done();) {
      lowest().expires_at(began + core_.options.body_time +
                          std::chrono::seconds{read / std::max<std::size_t>(core_.options.body_rate, 1)});
      read += co_await http::async_read_some(stream_, buffer_, body, into(bad));
    }
    if (bad && is_parse_fault(bad)) {
      auto why = bad == http::error::body_limit
                   ? over_bound(limit)
                   : failure({errc::invalid, "malformed body: " + bad.message()});
      co_await refuse(why);
    }
    if (bad)
      co_return false;
    auto answer = co_await handled(let_in, body.get().body());
    co_await send(answer);
    co_return keep_alive_;
  }

  static response over_bound(std::size_t limit) {
    return failure(too_large, "the body is over the bound of this path: " + std::to_string(limit) + " bytes");
  }

  task<void> refuse(response& why) {
    keep_alive_ = false; // the rest of the body stands in the way of the next request
    co_await send(why);
  }

  // No temporary with a destructor stands in an expression with co_await: GCC 12 destroys some of them twice.
  task<response> handled(admission& let_in, std::string& body) {
    auto box = std::make_shared<mailbox>(stream_.get_executor());
    std::optional<reply> back{std::in_place,
                              [to = std::weak_ptr<mailbox>(box), core = core_.weak_from_this()](response x) {
                                const auto alive = core.lock(); // the box's timer must not outlive the server
                                const auto at = to.lock();
                                if (!alive || !at)
                                  return;
                                std::lock_guard lock{at->mutex};
                                at->got = std::move(x);
                                if (at->waiting)
                                  net::post(at->timer.get_executor(), [at] { at->timer.cancel(); });
                              }};
    const auto patience = let_in.patience();
    if (!let_in.slow())
      core_.api.run(std::move(let_in), std::move(body), *back);
    else if (core_.slow_calls >= max_slow_calls)
      co_return failure({errc::busy, "too many requests of this kind wait already; try again"});
    else {
      ++core_.slow_calls;
      net::post(core_.slow_thread(),
                [core = &core_, in = std::move(let_in), text = std::move(body), to = *back]() mutable {
                  core->api.run(std::move(in), std::move(text), to);
                  --core->slow_calls;
                });
    }
    back.reset(); // the handler holds its own copies now
    {
      std::lock_guard lock{box->mutex};
      if (box->got)
        co_return std::move(*box->got);
      box->waiting = true;
      box->timer.expires_after(patience);
    }
    error_code canceled;
    co_await box->timer.async_wait(into(canceled));
    std::lock_guard lock{box->mutex};
    if (box->got)
      co_return std::move(*box->got);
    co_return failure({errc::timeout, "no answer in time: what was asked for may or may not happen"});
  }

  /// Reads what is left of a refused request's body, where it is little; else the connection has to end.
  task<bool> drain(http::request_parser<http::empty_body>& head) {
    error_code bad;
    if (head.content_length().value_or(0) > drained_bytes || head.chunked() ||
        !head.get()[http::field::expect].empty())
      co_return false;
    http::request_parser<http::string_body> body{std::move(head)};
    body.body_limit(drained_bytes);
    lowest().expires_after(core_.options.head_time);
    while (!bad && !body.is_done())
      co_await http::async_read_some(stream_, buffer_, body, into(bad));
    co_return !bad;
  }

  template <class Message>
  void fill(Message& m, const response& x) {
    m.version(version_);
    m.result(x.status);
    m.set(http::field::content_type, x.content_type);
    m.set(http::field::server, "troupe");
    for (const auto& [key, text] : x.headers)
      m.insert(key, text);
    m.keep_alive(keep_alive_);
  }

  task<void> send(response& x) {
    error_code bad;
    if (x.stream) {
      co_await send_stream(x);
      co_return;
    }
    http::response<http::string_body> m;
    fill(m, x);
    m.content_length(x.body.size());
    if (!head_only_)
      m.body() = std::move(x.body);
    http::response_serializer<http::string_body> out{m};
    const auto began = std::chrono::steady_clock::now();
    for (std::size_t sent = 0;
         !bad && !out.is_done();) { // a reader that takes a byte now and then is dropped, too
      const auto whole = began + core_.options.write_time +
                         std::chrono::seconds{sent / std::max<std::size_t>(core_.options.body_rate, 1)};
      lowest().expires_at(std::min(whole, std::chrono::steady_clock::now() + core_.options.write_time));
      if (head_only_) {
        co_await http::async_write_header(stream_, out, into(bad));
        break;
      }
      sent += co_await http::async_write_some(stream_, out, into(bad));
    }
    keep_alive_ = keep_alive_ && !bad;
  }

  task<void> send_stream(response& x) {
    error_code bad;
    const bool chunked = version_ >= 11;
    keep_alive_ = keep_alive_ && chunked;
    http::response<http::empty_body> m;
    fill(m, x);
    if (chunked)
      m.chunked(true);
    http::response_serializer<http::empty_body> out{m};
    lowest().expires_after(core_.options.write_time);
    co_await http::async_write_header(stream_, out, into(bad));
    bool whole = head_only_;
    while (!bad && !whole && !core_.stopping) {
      const auto seen = core_.clock.version();
      auto piece = x.stream->next(core_.options.now());
      if (!piece)
        break;
      whole = piece->last;
      if (!piece->bytes.empty()) {
        lowest().expires_after(core_.options.write_time);
        if (chunked) {
          auto framed = http::make_chunk(net::buffer(piece->bytes));
          co_await net::async_write(stream_, framed, into(bad));
        } else
          co_await net::async_write(stream_, net::buffer(piece->bytes), into(bad));
      } else if (!whole) {
        const bool here = co_await doze(seen, piece->pause);
        if (!here)
          bad = net::error::eof;
      }
    }
    if (!bad && (whole || core_.stopping) && chunked && !head_only_) {
      auto end = http::make_chunk_last();
      co_await net::async_write(stream_, end, into(bad));
    }
    keep_alive_ = keep_alive_ && !bad && whole;
    if (!whole && !core_.stopping)
      lowest().close(); // without the last chunk: the reader sees that something is missing
  }

  /// Until a commit after `seen`, `pause`, the end of the server (true), or of the client (false).
  task<bool> doze(std::uint64_t seen, std::optional<duration> pause) {
    auto who = std::make_shared<sleeper>(stream_.get_executor());
    if (!core_.clock.enter(who, seen))
      co_return true;
    struct awake {
      alarm_clock& clock;
      const std::shared_ptr<sleeper>& who;
      ~awake() { clock.leave(who); }
    } guard{core_.clock, who};
    if (core_.stopping)
      co_return true;
    watch_client(who);
    who->timer.expires_at(pause ? std::chrono::steady_clock::now() + *pause
                                : std::chrono::steady_clock::time_point::max());
    error_code canceled;
    co_await who->timer.async_wait(into(canceled));
    co_return !gone_;
  }

  /// A client that goes while nothing is sent to it is noticed by its socket becoming readable without bytes.
  void watch_client(const std::shared_ptr<sleeper>& who) {
    lowest().expires_never();
    sleeping_ = who;
    if (std::exchange(watching_, true))
      return;
    lowest().socket().async_wait(
      tcp::socket::wait_read, [this, alive = std::weak_ptr<int>(alive_)](const error_code& bad) {
        if (bad || alive.expired())
          return;
        watching_ = false;
        char one = 0;
        auto got = ::recv(lowest().socket().native_handle(), &one, 1, MSG_PEEK | MSG_DONTWAIT);
        gone_ = gone_ || got == 0 || (got < 0 && errno != EAGAIN) || is_tls;
        if (auto sleeping = sleeping_.lock(); sleeping && gone_)
          sleeping->timer.cancel();
      });
  }

  task<void> finish() {
    error_code bad;
    lowest().expires_after(milliseconds{2000});
    if constexpr (is_tls)
      co_await stream_.async_shutdown(into(bad));
    lowest().socket().shutdown(tcp::socket::shutdown_send, bad);
    // A close with unread bytes would be a reset, and the client might lose the answer that it has not read
    // yet.
    for (std::size_t read = 0; !bad && !core_.stopping && read < drained_bytes;) {
      buffer_.clear();
      auto room = buffer_.prepare(16384);
      read += co_await lowest().async_read_some(room, into(bad));
    }
  }

  static bool is_parse_fault(const error_code& bad) {
    return bad.category() == http::make_error_code(http::error::bad_method).category() &&
           bad != http::error::end_of_stream && bad != http::error::partial_message;
  }

  template <class Head>
  static request_head head_of(const Head& h) {
    const auto text = [&](auto field) { return std::string(h[field]); };
    request_head out;
    out.method = std::string(h.method_string());
    out.target = std::string(h.target());
    out.headers = {text(http::field::authorization),
                   text(http::field::cookie),
                   text("Grpc-Metadata-x-user-token"),
                   text("Grpc-Metadata-x-allocation-token"),
                   text(http::field::accept),
                   text(http::field::content_type),
                   text("Last-Event-ID")};
    return out;
  }

  server_core& core_;
  Stream stream_;
  std::shared_ptr<open_connection> entry_;
  beast::flat_buffer buffer_{64u << 10};
  std::size_t requests_ = 0;
  unsigned version_ = 11;
  bool keep_alive_ = false, head_only_ = false, watching_ = false, gone_ = false;
  std::weak_ptr<sleeper> sleeping_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

template <class Stream>
void start(server_core& core, Stream stream, std::function<void()> over) {
  auto on = stream.get_executor();
  auto one = std::make_shared<connection<Stream>>(core, std::move(stream));
  auto work = one->run(); // the frame belongs to the completion below, as does the connection
  net::co_spawn(on, std::move(work), [one, over = std::move(over)](std::exception_ptr) mutable {
    one.reset(); // its socket closes before the place is given to another
    over();
  });
}

} // namespace

void serve(server_core& core, tcp::socket socket, std::function<void()> over) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  beast::tcp_stream stream{std::move(socket)};
  if (core.tls)
    start(core, beast::ssl_stream<beast::tcp_stream>{std::move(stream), *core.tls}, std::move(over));
  else
    start(core, std::move(stream), std::move(over));
}

} // namespace troupe::api
