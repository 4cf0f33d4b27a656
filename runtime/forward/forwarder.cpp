#include "runtime/forward/forwarder.hpp"

#include "model/back_off.hpp"
#include "runtime/http/master_dial.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <thread>

namespace troupe::forward {
namespace {

namespace net = http::net;
namespace beast = http::beast;
namespace wire = http::wire;
using tcp = net::ip::tcp;
using http::error_code;
using http::heard;
using http::into;
using http::milliseconds;
using http::task;
using clock = std::chrono::steady_clock;
using request = wire::request<wire::string_body>;

constexpr std::uint32_t head_bytes = 32u << 10, answer_head_bytes = 64u << 10;
constexpr std::size_t whole_answer = 1u << 20, piece_bytes = 64u << 10;
constexpr milliseconds connect_time{5'000}, first_pause{20}, longest_pause{500};

/// The state that all connections share; only the one thread uses it. `io` is the last member because
/// sessions end inside it: they still use the other members while it is destroyed.
struct shared {
  explicit shared(forward_options o) : how(std::move(o)) {}
  forward_options how;
  std::size_t open = 0, body_bytes = 0;
  bool stopping = false;
  std::function<void()> accept_more;
  http::trust_store trust;
  net::io_context io{1};
};

bool harmless_to_repeat(const request& ask) {
  switch (ask.method()) {
  case wire::verb::get:
  case wire::verb::head:
  case wire::verb::put:
  case wire::verb::delete_:
  case wire::verb::options:
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

http::session_limits limits_of(const forward_options& how) {
  http::session_limits l;
  l.head_bytes = head_bytes;
  l.head_time = how.head_time;
  l.idle_time = how.idle_time;
  l.body_time = l.write_time = how.body_time;
  return l;
}

class session : public std::enable_shared_from_this<session> {
public:
  session(shared& all, tcp::socket socket)
      : all_(all), http_(beast::tcp_stream(std::move(socket)), limits_of(all.how)), pause_(all.io) {
    ++all_.open;
  }
  ~session() {
    --all_.open;
    if (!all_.stopping)
      all_.accept_more();
  }

  task<void> run() {
    http_.lowest().socket().set_option(tcp::no_delay(true));
    for (bool more = true; more;)
      more = co_await one_request();
    if (!tunnelled_)
      co_await http_.finish(!all_.stopping);
  }

private:
  enum class outcome { answered, broken, unsent, client_gone };
  using client_stream = http::session<beast::tcp_stream>;

  /// Handles one request. False if the connection ends after it.
  task<bool> one_request() {
    auto got = co_await http_.read_head();
    if (got == heard::gone)
      co_return false;
    if (got == heard::malformed) {
      co_await refuse(wire::status::bad_request, 3, "InvalidArgument", http_.fault().c_str());
      co_return false;
    }
    // A request that will exceed its limits is refused before its body is read.
    const auto most = all_.how.body_bytes;
    const auto length = http_.content_length();
    const std::size_t reserved = length ? static_cast<std::size_t>(std::min<std::uint64_t>(*length, most))
                                 : http_.chunked() ? most
                                                   : 0;
    if (all_.body_bytes + reserved > all_.how.body_memory) {
      http_.end_after_answer();
      co_await refuse(wire::status::service_unavailable, 14, "Unavailable",
                      "too many large requests at once; try again");
      co_return false;
    }
    all_.body_bytes += reserved;
    struct giving_back {
      std::size_t& from;
      std::size_t bytes;
      ~giving_back() { from -= bytes; }
    } guard{all_.body_bytes, reserved};
    got = co_await http_.read_body(most);
    if (got != heard::whole) {
      http_.end_after_answer();
      if (got == heard::too_large)
        co_await refuse(wire::status::payload_too_large, 8, "ResourceExhausted", "the request is too large");
      co_return false;
    }
    const bool upgrade = http_.wants_upgrade();
    if (2 * all_.open > all_.how.max_connections)
      http_.end_after_answer();
    http_.watch([self = weak_from_this()] {
      if (auto one = self.lock())
        one->client_left();
    });
    auto ask = http_.take_request();
    co_await deliver(ask, upgrade);
    http_.unwatch();
    co_return http_.keep_alive() && !tunnelled_;
  }

  /// Called when the client has gone: nobody needs the answer.
  void client_left() {
    pause_.cancel();
    up_.close();
  }

  /// Brings the request to the master and its answer back.
  task<void> deliver(request& ask, bool upgrade) {
    const std::string protocol(ask[wire::field::upgrade]);
    drop_hop_fields(ask);
    if (upgrade) {
      ask.set(wire::field::connection, "Upgrade");
      ask.set(wire::field::upgrade, protocol);
    } else {
      ask.keep_alive(true);
    }
    ask.prepare_payload();
    const auto give_up_at = clock::now() + all_.how.hold;
    const bool repeatable = harmless_to_repeat(ask);
    for (int failures = 0;;) {
      auto went = outcome::unsent;
      // A kept connection may have been closed by the master in the meantime, so that only a request that may
      // be sent twice uses it.
      const bool reused = connected() && repeatable && !upgrade;
      if (!reused)
        hang_up();
      bool dialled = reused;
      if (!dialled)
        dialled = co_await dial();
      if (dialled) {
        if (up_.plain)
          went = co_await exchange(*up_.plain, ask, upgrade);
        else
          went = co_await exchange(*up_.tls, ask, upgrade);
      }
      if (went == outcome::answered)
        co_return;
      hang_up();
      if (went == outcome::client_gone || http_.gone()) {
        http_.end_after_answer();
        co_return;
      }
      if (went == outcome::broken && !repeatable) {
        co_await refuse(
          wire::status::bad_gateway, 14, "Unavailable",
          "the connection to the master broke before its answer; whether it did what was asked is not known");
        co_return;
      }
      const auto wait = reused ? milliseconds{0} : back_off(++failures, first_pause, longest_pause);
      if (clock::now() + wait >= give_up_at || all_.stopping) {
        co_await refuse(wire::status::service_unavailable, 14, "Unavailable",
                        "the master cannot be reached from this agent; try again");
        co_return;
      }
      if (wait.count() > 0) {
        error_code ignored;
        pause_.expires_after(wait);
        co_await pause_.async_wait(into(ignored));
      }
      if (http_.gone()) {
        http_.end_after_answer();
        co_return;
      }
    }
  }

  bool connected() const { return up_.connected(); }

  void hang_up() {
    up_.hang_up();
    answer_buffer_.clear();
  }

  task<bool> dial() {
    auto where = all_.how.master();
    if (!where || where->port == 0)
      co_return false;
    co_await up_.dial(all_.io, all_.trust, *where, connect_time);
    if (http_.gone())
      hang_up();
    co_return connected();
  }

  template <class Stream>
  task<outcome> exchange(Stream& up, request& ask, bool upgrade) {
    auto& lowest = beast::get_lowest_layer(up);
    error_code bad;
    ask.set(wire::field::host, up_.host);
    lowest.expires_after(all_.how.body_time + all_.how.hold);
    co_await wire::async_write(up, ask, into(bad));
    lowest.expires_never(); // a long poll may be silent for any time
    if (bad)
      co_return http_.gone() ? outcome::client_gone : outcome::broken;
    wire::response_parser<wire::empty_body> head;
    head.header_limit(answer_head_bytes);
    head.body_limit(std::numeric_limits<std::uint64_t>::max());
    if (ask.method() == wire::verb::head)
      head.skip(true);
    do {
      co_await wire::async_read_header(up, answer_buffer_, head, into(bad));
    } while (!bad && head.get().result() == wire::status::continue_);
    if (bad)
      co_return http_.gone() ? outcome::client_gone : outcome::broken;
    if (upgrade && head.get().result() == wire::status::switching_protocols) {
      co_await tunnel(up, head);
      co_return outcome::answered;
    }
    const bool reusable = !head.need_eof() && head.get().keep_alive() && !upgrade;
    const auto length = head.content_length();
    const bool bodiless = head.is_done();
    bool fine = false;
    if (bodiless || (length && *length <= whole_answer))
      fine = co_await relay_whole(up, head);
    else
      fine = co_await relay_pieces(up, head);
    if (!reusable || !fine)
      hang_up();
    if (!fine)
      http_.end_after_answer();
    // Once the head is sent, the answer cannot become an error.
    co_return fine ? outcome::answered : outcome::client_gone;
  }

  /// From here on bytes are passed on in both directions as they arrive, until both sides have ended or one
  /// has failed.
  template <class Stream>
  task<void> tunnel(Stream& up, wire::response_parser<wire::empty_body>& head) {
    tunnelled_ = true;
    http_.unwatch();
    auto answer = head.release();
    wire::response_serializer<wire::empty_body> out{answer};
    error_code bad;
    http_.lowest().expires_after(all_.how.body_time);
    co_await wire::async_write_header(http_.stream(), out, into(bad));
    if (!bad)
      co_await http::join(http_.stream(), http_.unread(), up, answer_buffer_);
    hang_up();
  }

  template <class Stream>
  task<bool> relay_whole(Stream& up, wire::response_parser<wire::empty_body>& head) {
    error_code bad;
    wire::response_parser<wire::string_body> parser{std::move(head)};
    parser.body_limit(whole_answer);
    while (!bad && !parser.is_done())
      co_await wire::async_read_some(up, answer_buffer_, parser, into(bad));
    if (bad)
      co_return false;
    auto answer = parser.release();
    drop_hop_fields(answer);
    const bool kept = http_.keep_alive();
    co_await http_.send(answer);
    co_return http_.keep_alive() == kept;
  }

  /// Passes each piece on as soon as it arrives: a line of a stream does not wait for the next one.
  template <class Stream>
  task<bool> relay_pieces(Stream& up, wire::response_parser<wire::empty_body>& head) {
    error_code bad;
    wire::response_parser<wire::buffer_body> parser{std::move(head)};
    parser.body_limit(std::numeric_limits<std::uint64_t>::max());
    auto& answer = parser.get();
    drop_hop_fields(answer);
    answer.version(http_.version());
    if (!parser.content_length() && http_.version() == 11)
      answer.chunked(true);
    else if (!parser.content_length())
      http_.end_after_answer();
    answer.keep_alive(http_.keep_alive());
    wire::serializer<false, wire::buffer_body, wire::fields> writer{answer};
    std::array<char, piece_bytes> piece;
    auto& client = http_.stream();
    client.expires_after(all_.how.body_time);
    co_await wire::async_write_header(client, writer, into(bad));
    while (!bad && !writer.is_done()) {
      if (!parser.is_done()) {
        answer.body().data = piece.data();
        answer.body().size = piece.size();
        co_await wire::async_read_some(up, answer_buffer_, parser, into(bad));
        if (bad == wire::error::need_buffer)
          bad = {};
        if (bad)
          co_return false;
        answer.body().size = piece.size() - answer.body().size;
        answer.body().data = piece.data();
        answer.body().more = !parser.is_done();
        if (answer.body().size == 0 && answer.body().more)
          continue; // only framing has arrived
      } else {
        answer.body().data = nullptr;
        answer.body().size = 0;
        answer.body().more = false;
      }
      client.expires_after(all_.how.body_time);
      co_await wire::async_write(client, writer, into(bad));
      if (bad == wire::error::need_buffer)
        bad = {};
    }
    co_return !bad;
  }

  /// Sends an error with the body that the API's contract has.
  task<void> refuse(wire::status status, int code, const char* reason, const char* what) {
    wire::response<wire::string_body> answer{status, 11};
    std::string text(what);
    std::replace(text.begin(), text.end(), '"', '\'');
    answer.set(wire::field::content_type, "application/json");
    answer.body() = R"({"error":{"code":)" + std::to_string(code) + R"(,"reason":")" + reason +
                    R"(","error":")" + text + "\"}}";
    answer.prepare_payload();
    if (http_.head_only())
      answer.body().clear();
    co_await http_.send(answer);
  }

  shared& all_;
  client_stream http_;
  beast::flat_buffer answer_buffer_;
  http::master_connection up_;
  net::steady_timer pause_;
  bool tunnelled_ = false;
};

} // namespace

struct forwarder::inside {
  explicit inside(forward_options how) : all(std::move(how)), acceptor(all.io), again(all.io) {}
  shared all;
  tcp::acceptor acceptor;
  /// Waits to accept again after no descriptor was left.
  net::steady_timer again;
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
  x.all.stopping = true; // for the sessions that end together with the io_context
}

} // namespace troupe::forward
