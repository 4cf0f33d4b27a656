#include <utility> // before Asio: its coroutine header forgets it

#include "runtime/forward/forwarder.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <sys/socket.h>
#include <thread>

namespace troupe::forward {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = net::ip::tcp;
using boost::system::error_code;
using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
template <class T>
using task = net::awaitable<T>;
using request = http::request<http::string_body>;

constexpr std::uint32_t head_bytes = 32u << 10, answer_head_bytes = 64u << 10;
constexpr std::size_t whole_answer = 1u << 20, piece_bytes = 64u << 10, drained_bytes = 256u << 10;
constexpr milliseconds connect_time{5'000}, first_pause{20}, longest_pause{500};

auto into(error_code& bad) { return net::redirect_error(net::use_awaitable, bad); }

using plain_stream = beast::tcp_stream;
using tls_stream = beast::ssl_stream<beast::tcp_stream>;

/// What all connections share; touched by the one thread only. Sessions end inside `io`, which is therefore
/// the last member: they still touch the others while it goes.
struct shared {
  explicit shared(forward_options o) : how(std::move(o)) {}
  forward_options how;
  std::size_t open = 0, body_bytes = 0;
  bool stopping = false;
  std::function<void()> accept_more;
  std::map<std::string, std::unique_ptr<net::ssl::context>> trust; ///< TLS contexts by CA file

  net::ssl::context* context_of(const std::string& ca_file) {
    auto& one = trust[ca_file];
    if (!one) {
      auto fresh = std::make_unique<net::ssl::context>(net::ssl::context::tls_client);
      error_code bad;
      fresh->load_verify_file(ca_file, bad);
      if (bad)
        return nullptr;
      SSL_CTX_set_min_proto_version(fresh->native_handle(), TLS1_2_VERSION);
      fresh->set_verify_mode(net::ssl::verify_peer);
      one = std::move(fresh);
    }
    return one.get();
  }

  net::io_context io{1};
};

bool harmless_to_repeat(const request& ask) {
  switch (ask.method()) {
  case http::verb::get:
  case http::verb::head:
  case http::verb::put:
  case http::verb::delete_:
  case http::verb::options:
    return true;
  default:
    return ask.find("Grpc-Metadata-x-allocation-token") != ask.end();
  }
}

template <class Fields>
void drop_hop_fields(Fields& fields) {
  for (const char* name :
       {"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "TE", "Upgrade", "Expect"})
    fields.erase(name);
}

class session : public std::enable_shared_from_this<session> {
public:
  session(shared& all, tcp::socket socket) : all_(all), client_(std::move(socket)), pause_(all.io) {
    ++all_.open;
  }
  ~session() {
    --all_.open;
    if (!all_.stopping)
      all_.accept_more();
  }

  task<void> run() {
    client_.socket().set_option(tcp::no_delay(true));
    while (co_await one_request())
      ;
    error_code bad;
    client_.socket().shutdown(tcp::socket::shutdown_send, bad);
    // A close with unread bytes would take the answer back: what still comes is read, for a moment.
    std::array<char, 4096> rest;
    client_.expires_after(milliseconds{500});
    for (std::size_t drained = 0; !bad && drained < drained_bytes;)
      drained += co_await client_.async_read_some(net::buffer(rest), into(bad));
  }

private:
  enum class outcome { answered, broken, unsent, client_gone };

  /// False where the connection ends after it.
  task<bool> one_request() {
    error_code bad;
    http::request_parser<http::string_body> parser;
    parser.header_limit(head_bytes);
    parser.body_limit(all_.how.body_bytes);
    if (buffer_.size() == 0) {
      client_.expires_after(all_.how.idle_time);
      auto got = co_await client_.async_read_some(buffer_.prepare(4096), into(bad));
      if (bad)
        co_return false;
      buffer_.commit(got);
    }
    client_.expires_after(all_.how.head_time);
    co_await http::async_read_header(client_, buffer_, parser, into(bad));
    if (bad == http::error::body_limit)
      co_return co_await refuse(parser.get(), http::status::payload_too_large, 8, "ResourceExhausted",
                                "the request is too large");
    if (bad) {
      if (bad == beast::error::timeout || bad == http::error::end_of_stream ||
          bad.category() == net::error::get_system_category())
        co_return false;
      co_return co_await refuse(parser.get(), http::status::bad_request, 3, "InvalidArgument",
                                "this is not an HTTP/1.1 request: " + bad.message());
    }
    version_ = parser.get().version();
    // One that cannot stay within its bounds is refused before its body is read.
    const auto length = parser.content_length();
    const std::size_t reserved = length             ? static_cast<std::size_t>(*length)
                                 : parser.chunked() ? all_.how.body_bytes
                                                    : 0;
    if (all_.body_bytes + reserved > all_.how.body_memory)
      co_return co_await refuse(parser.get(), http::status::service_unavailable, 14, "Unavailable",
                                "too many large requests at once; try again");
    all_.body_bytes += reserved;
    struct giving_back {
      std::size_t& from;
      std::size_t bytes;
      ~giving_back() { from -= bytes; }
    } guard{all_.body_bytes, reserved};
    if (parser.get()[http::field::expect] == "100-continue" && !parser.is_done()) {
      http::response<http::empty_body> go{http::status::continue_, 11};
      client_.expires_after(all_.how.body_time);
      co_await http::async_write(client_, go, into(bad));
    }
    while (!bad && !parser.is_done()) {
      client_.expires_after(all_.how.body_time);
      co_await http::async_read_some(client_, buffer_, parser, into(bad));
      if (bad == http::error::need_buffer)
        bad = {};
    }
    if (bad == http::error::body_limit)
      co_return co_await refuse(parser.get(), http::status::payload_too_large, 8, "ResourceExhausted",
                                "the request is too large");
    if (bad)
      co_return false;
    auto ask = parser.release();
    const bool keep = ask.keep_alive() && 2 * all_.open <= all_.how.max_connections;
    if (beast::iequals(ask[http::field::connection], "upgrade"))
      co_return co_await refuse(ask, http::status::not_implemented, 12, "Unimplemented",
                                "connections are not upgraded here");
    watch();
    const bool more = co_await deliver(std::move(ask), keep);
    unwatch();
    co_return more;
  }

  /// Brings the request to the master and its answer back.
  task<bool> deliver(request ask, bool keep) {
    drop_hop_fields(ask);
    ask.keep_alive(true);
    ask.prepare_payload();
    const auto give_up_at = clock::now() + all_.how.hold;
    const bool repeatable = harmless_to_repeat(ask);
    for (auto wait = first_pause;; wait = std::min(2 * wait, longest_pause)) {
      auto went = outcome::unsent;
      // A kept connection may have been closed at the other end meanwhile, so it takes only what may be sent
      // twice.
      const bool reused = connected() && repeatable;
      if (!reused)
        hang_up();
      if (reused || co_await dial()) {
        if (plain_)
          went = co_await exchange(*plain_, ask, keep);
        else
          went = co_await exchange(*tls_, ask, keep);
      }
      if (went == outcome::answered)
        co_return keep;
      hang_up();
      if (went == outcome::client_gone || gone_)
        co_return false;
      if (went == outcome::broken && !repeatable)
        co_return co_await refuse(
          ask, http::status::bad_gateway, 14, "Unavailable",
          "the connection to the master broke before its answer; whether it did what was asked is not known",
          keep);
      if (reused)
        wait = milliseconds{0};
      if (clock::now() + wait >= give_up_at || all_.stopping)
        co_return co_await refuse(ask, http::status::service_unavailable, 14, "Unavailable",
                                  "the master cannot be reached from this agent; try again", keep);
      if (wait.count() > 0) {
        error_code ignored;
        pause_.expires_after(wait);
        co_await pause_.async_wait(into(ignored));
      }
      if (gone_)
        co_return false;
      if (reused)
        wait = first_pause;
    }
  }

  bool connected() const { return plain_ || tls_; }

  void hang_up() {
    if (plain_)
      plain_->close();
    if (tls_)
      beast::get_lowest_layer(*tls_).close();
    plain_.reset();
    tls_.reset();
    answer_buffer_.clear();
  }

  task<bool> dial() {
    auto where = all_.how.master();
    if (!where || where->port == 0)
      co_return false;
    error_code bad;
    std::vector<tcp::endpoint> ends;
    if (auto address = net::ip::make_address(where->host, bad); !bad) {
      ends.push_back({address, where->port});
    } else {
      auto found =
        co_await tcp::resolver{all_.io}.async_resolve(where->host, std::to_string(where->port), into(bad));
      if (bad)
        co_return false;
      for (const auto& one : found)
        ends.push_back(one.endpoint());
    }
    const auto shown = where->host.find(':') == std::string::npos ? where->host : "[" + where->host + "]";
    host_ = shown + ":" + std::to_string(where->port);
    if (where->ca_file.empty()) {
      plain_.emplace(all_.io);
    } else {
      auto* context = all_.context_of(where->ca_file.string());
      if (!context)
        co_return false;
      tls_.emplace(all_.io, *context);
      SSL_set_tlsext_host_name(tls_->native_handle(), where->host.c_str());
      tls_->set_verify_callback(net::ssl::host_name_verification(where->host), bad);
    }
    auto& lowest = plain_ ? *plain_ : beast::get_lowest_layer(*tls_);
    lowest.expires_after(connect_time);
    co_await lowest.async_connect(ends, into(bad));
    if (!bad) {
      lowest.socket().set_option(tcp::no_delay(true), bad);
      lowest.socket().set_option(net::socket_base::keep_alive(true), bad);
    }
    if (!bad && tls_) {
      lowest.expires_after(connect_time);
      co_await tls_->async_handshake(net::ssl::stream_base::client, into(bad));
    }
    lowest.expires_never();
    if (bad || gone_)
      hang_up();
    co_return connected();
  }

  template <class Stream>
  task<outcome> exchange(Stream& up, request& ask, bool& keep) {
    auto& lowest = beast::get_lowest_layer(up);
    error_code bad;
    ask.set(http::field::host, host_);
    lowest.expires_after(all_.how.body_time + all_.how.hold);
    co_await http::async_write(up, ask, into(bad));
    lowest.expires_never(); // a long poll is silent as long as it likes
    if (bad)
      co_return gone_ ? outcome::client_gone : outcome::broken;
    http::response_parser<http::empty_body> head;
    head.header_limit(answer_head_bytes);
    head.body_limit(std::numeric_limits<std::uint64_t>::max());
    if (ask.method() == http::verb::head)
      head.skip(true);
    do {
      co_await http::async_read_header(up, answer_buffer_, head, into(bad));
    } while (!bad && head.get().result() == http::status::continue_);
    if (bad)
      co_return gone_ ? outcome::client_gone : outcome::broken;
    const bool reusable = !head.need_eof() && head.get().keep_alive();
    const auto length = head.content_length();
    const bool bodiless = head.is_done();
    bool fine = false;
    if (bodiless || (length && *length <= whole_answer))
      fine = co_await relay_whole(up, head, keep);
    else
      fine = co_await relay_pieces(up, head, keep);
    if (!reusable || !fine)
      hang_up();
    co_return fine ? outcome::answered : outcome::client_gone; // after the head nothing can be said any more
  }

  template <class Stream>
  task<bool> relay_whole(Stream& up, http::response_parser<http::empty_body>& head, bool keep) {
    error_code bad;
    http::response_parser<http::string_body> parser{std::move(head)};
    parser.body_limit(whole_answer);
    while (!bad && !parser.is_done())
      co_await http::async_read_some(up, answer_buffer_, parser, into(bad));
    if (bad)
      co_return false;
    auto answer = parser.release();
    drop_hop_fields(answer);
    answer.version(version_);
    answer.keep_alive(keep);
    http::serializer<false, http::string_body> writer{answer};
    client_.expires_after(all_.how.body_time);
    co_await http::async_write(client_, writer, into(bad));
    co_return !bad;
  }

  /// Each piece goes on as soon as it is here: a line of a stream waits for no other.
  template <class Stream>
  task<bool> relay_pieces(Stream& up, http::response_parser<http::empty_body>& head, bool& keep) {
    error_code bad;
    http::response_parser<http::buffer_body> parser{std::move(head)};
    parser.body_limit(std::numeric_limits<std::uint64_t>::max());
    auto& answer = parser.get();
    drop_hop_fields(answer);
    answer.version(version_);
    if (!parser.content_length() && version_ == 11)
      answer.chunked(true);
    else if (!parser.content_length())
      keep = false;
    answer.keep_alive(keep);
    http::serializer<false, http::buffer_body, http::fields> writer{answer};
    std::array<char, piece_bytes> piece;
    client_.expires_after(all_.how.body_time);
    co_await http::async_write_header(client_, writer, into(bad));
    while (!bad && !writer.is_done()) {
      if (!parser.is_done()) {
        answer.body().data = piece.data();
        answer.body().size = piece.size();
        co_await http::async_read_some(up, answer_buffer_, parser, into(bad));
        if (bad == http::error::need_buffer)
          bad = {};
        if (bad)
          co_return false;
        answer.body().size = piece.size() - answer.body().size;
        answer.body().data = piece.data();
        answer.body().more = !parser.is_done();
        if (answer.body().size == 0 && answer.body().more)
          continue; // only framing has come
      } else {
        answer.body().data = nullptr;
        answer.body().size = 0;
        answer.body().more = false;
      }
      client_.expires_after(all_.how.body_time);
      co_await http::async_write(client_, writer, into(bad));
      if (bad == http::error::need_buffer)
        bad = {};
    }
    co_return !bad;
  }

  /// The error body of the contract. Ends the connection unless `keep`: what is left of the request is not
  /// read.
  template <class Request>
  task<bool> refuse(const Request& ask, http::status status, int code, const char* reason, std::string text,
                    bool keep = false) {
    http::response<http::string_body> answer{status, version_};
    std::replace(text.begin(), text.end(), '"', '\'');
    answer.set(http::field::content_type, "application/json");
    answer.body() = R"({"error":{"code":)" + std::to_string(code) + R"(,"reason":")" + reason +
                    R"(","error":")" + text + "\"}}";
    answer.keep_alive(keep);
    answer.prepare_payload();
    if (ask.method() == http::verb::head)
      answer.body().clear();
    error_code bad;
    client_.expires_after(all_.how.body_time);
    co_await http::async_write(client_, answer, into(bad));
    co_return keep && !bad;
  }

  /// Whether the client hangs up while the master is asked: then nobody needs the answer.
  void watch() {
    client_.expires_never();
    client_.socket().async_wait(
      tcp::socket::wait_read, [self = shared_from_this(), n = ++watched_](const error_code& bad) {
        if (bad || n != self->watched_)
          return;
        char byte;
        auto got = ::recv(self->client_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)))
          return;
        self->gone_ = true;
        self->pause_.cancel();
        if (self->plain_)
          self->plain_->close();
        if (self->tls_)
          beast::get_lowest_layer(*self->tls_).close();
      });
  }
  void unwatch() {
    ++watched_;
    error_code ignored;
    client_.socket().cancel(ignored);
  }

  shared& all_;
  beast::tcp_stream client_;
  beast::flat_buffer buffer_, answer_buffer_;
  std::optional<plain_stream> plain_;
  std::optional<tls_stream> tls_;
  net::steady_timer pause_;
  std::string host_; ///< of the master, as `Host` names it
  unsigned version_ = 11;
  int watched_ = 0;
  bool gone_ = false;
};

} // namespace

struct forwarder::inside {
  explicit inside(forward_options how) : all(std::move(how)), acceptor(all.io), again(all.io) {}
  shared all;
  tcp::acceptor acceptor;
  net::steady_timer again; ///< of accepting, where no descriptor is left
  bool accepting = false;
  std::uint16_t port = 0;
  std::thread thread;

  void accept() {
    if (accepting || all.stopping || all.open >= all.how.max_connections)
      return;
    accepting = true;
    acceptor.async_accept([this](const error_code& bad, tcp::socket socket) {
      accepting = false;
      if (all.stopping)
        return;
      if (bad) {
        again.expires_after(milliseconds{100});
        again.async_wait([this](const error_code& canceled) {
          if (!canceled)
            accept();
        });
        return;
      }
      auto one = std::make_shared<session>(all, std::move(socket));
      net::co_spawn(
        all.io, [one]() -> task<void> { co_await one->run(); }, net::detached);
      accept();
    });
  }
};

result<std::unique_ptr<forwarder>> forwarder::start(forward_options how) {
  const auto port = how.port;
  auto x = std::make_unique<inside>(std::move(how));
  x->all.accept_more = [in = x.get()] { in->accept(); };
  error_code bad;
  tcp::endpoint at{net::ip::address_v4::loopback(), port};
  x->acceptor.open(at.protocol(), bad);
  if (!bad)
    x->acceptor.set_option(net::socket_base::reuse_address(true), bad);
  if (!bad)
    x->acceptor.bind(at, bad);
  if (!bad)
    x->acceptor.listen(net::socket_base::max_listen_connections, bad);
  if (bad)
    return error{errc::conflict, "cannot listen on 127.0.0.1:" + std::to_string(port) +
                                   " for this agent's tasks: " + bad.message()};
  x->port = x->acceptor.local_endpoint(bad).port();
  x->accept();
  x->thread = std::thread([in = x.get()] { in->all.io.run(); });
  return std::unique_ptr<forwarder>(new forwarder(std::move(x)));
}

forwarder::forwarder(std::unique_ptr<inside> x) : inside_(std::move(x)) {}
forwarder::~forwarder() { stop(); }
std::uint16_t forwarder::port() const { return inside_->port; }

void forwarder::stop() {
  auto& x = *inside_;
  if (!x.thread.joinable())
    return;
  net::post(x.all.io, [&x] { x.all.stopping = true; });
  x.all.io.stop();
  x.thread.join();
  x.all.stopping = true; // for the sessions that end with the io_context
}

} // namespace troupe::forward
