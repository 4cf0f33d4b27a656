#include "runtime/api/connection.hpp"

#include "runtime/api/errors.hpp"
#include "runtime/api/gzip.hpp"
#include "runtime/api/origin.hpp"
#include "runtime/api/proxied_exchange.hpp"
#include "runtime/http/session.hpp"

namespace troupe::api {
namespace {

using http::error_code;
using http::heard;
using http::into;
using http::task;
namespace beast = http::beast;
namespace wire = http::wire;

constexpr std::size_t small_body = 1u << 20, max_slow_calls = 64;

/// A reservation of bytes in the memory that all large bodies share.
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

/// A place where the answer to a request arrives, from any thread.
struct mailbox {
  explicit mailbox(net::any_io_executor on) : timer(std::move(on)) {}
  std::mutex mutex;
  std::optional<response> got;
  bool waiting = false;
  net::steady_timer timer;
};

http::session_limits limits_of(const server_options& how) {
  http::session_limits l;
  l.head_time = how.head_time;
  l.idle_time = how.idle_time;
  l.body_time = how.body_time;
  l.write_time = how.write_time;
  l.body_rate = std::max<std::size_t>(how.body_rate, 1);
  return l;
}

response over_bound(std::size_t limit) {
  if (limit == large_body) // only routes that take a context have this limit
    return failure({errc::invalid, "the files are larger than 96 MiB: at most " + std::to_string(limit) +
                                     " bytes are read of a body with files"});
  return failure(too_large, "the body is over the bound of this path: " + std::to_string(limit) + " bytes");
}

template <class Stream>
class connection {
public:
  connection(server_core& core, Stream stream, entrance at)
      : core_(core), at_(at), http_(std::move(stream), limits_of(core.options)) {}

  task<void> run() {
    entry_ = std::make_shared<open_connection>();
    entry_->on = http_.stream().get_executor();
    entry_->close = [this] { http_.close(); };
    entry_->idle = [this] { return http_.idle() || taken_; };
    {
      std::lock_guard lock{core_.mutex};
      core_.connections.insert(entry_);
    }
    const bool secured = co_await http_.shake_hands();
    if (!secured)
      co_return;
    error_code gone;
    if (const auto peer = beast::get_lowest_layer(http_.stream()).socket().remote_endpoint(gone); !gone)
      from_ = peer.address().to_string();
    for (bool more = true; more && !core_.stopping;)
      more = co_await one_request();
    if (!taken_)
      co_await http_.finish(!core_.stopping);
  }

  ~connection() {
    if (!entry_)
      return;
    entry_->close = {};
    entry_->idle = {};
    std::lock_guard lock{core_.mutex};
    core_.connections.erase(entry_);
  }

private:
  /// Handles one request. False where the connection ends after it.
  task<bool> one_request() {
    const auto got = co_await http_.read_head();
    if (got == heard::gone)
      co_return false;
    if (got == heard::malformed) {
      auto why = failure({errc::invalid, http_.fault()});
      co_await send(why);
      co_return false;
    }
    if (proxy::is_below_proxy(std::string_view(http_.head().target().data(), http_.head().target().size()))) {
      co_await proxied_request();
      co_return http_.keep_alive() && !taken_;
    }
    if (at_ == entrance::pages) {
      auto stranger =
        failure({errc::denied, "this address shows pages of tasks, and nothing of the cluster"});
      co_await http_.skip_body();
      co_await send(stranger);
      co_return http_.keep_alive();
    }
    auto let_in = core_.api.admit(head_of(http_.head()));
    const auto* granted = std::get_if<admission>(&let_in);
    zips_ = granted && !granted->at->holds_secret &&
            takes_gzip(std::string(http_.head()[wire::field::accept_encoding]));
    if (auto* refused = std::get_if<response>(&let_in)) {
      co_await http_.skip_body();
      co_await send(*refused);
    } else {
      co_await admitted(std::get<admission>(let_in));
    }
    co_return http_.keep_alive() && !taken_;
  }

  task<void> proxied_request() {
    const auto& h = http_.head();
    proxy_caller by;
    by.address = from_;
    by.tls = http_.is_tls;
    by.at_pages = at_ == entrance::pages;
    proxy::header_list all;
    for (const auto& field : h)
      all.emplace_back(std::string(field.name_string()), std::string(field.value()));
    const auto head = head_of(h);
    for (const char c : head.headers.upgrade)
      by.upgrade += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    auto decided = open_door(core_.api, head, all, by);
    if (auto* answer = std::get_if<response>(&decided)) {
      co_await http_.skip_body();
      co_await send(*answer);
      co_return;
    }
    if (const auto bad = http_.first_chunk_fault(); bad) { // checked before the service is called
      auto why = not_http(bad);
      co_await refuse(why);
      co_return;
    }
    proxied_exchange<Stream> exchange{core_, http_, std::get<proxied>(decided), taken_};
    const bool had_body = exchange.has_body();
    auto fault = co_await exchange.run();
    if (!fault)
      co_return;
    if (had_body)
      http_.end_after_answer();
    co_await send(*fault);
  }

  task<void> admitted(admission& let_in) {
    const auto limit = let_in.body_bytes();
    const auto length = http_.content_length();
    if (length && *length > limit) {
      auto why = over_bound(limit);
      co_await refuse(why);
      co_return;
    }
    const std::size_t most = length ? static_cast<std::size_t>(*length) : http_.chunked() ? limit : 0;
    reservation memory{core_, most > small_body ? most : 0};
    if (memory.refused()) {
      auto why = failure(http_of(errc::unreachable), "too many large requests at once; try again");
      co_await refuse(why);
      co_return;
    }
    const auto got = co_await http_.read_body(limit);
    if (got != heard::whole) {
      auto why = got == heard::too_large ? over_bound(limit) : failure({errc::invalid, http_.fault()});
      http_.end_after_answer();
      if (got != heard::gone)
        co_await send(why);
      co_return;
    }
    auto request = http_.take_request();
    const admission asked = let_in;
    auto answer = co_await handled(let_in, request.body());
    if (answer.stream)
      co_await send_stream(answer, asked);
    else
      co_await send(answer);
  }

  task<void> refuse(response& why) {
    http_.end_after_answer(); // the rest of the body precedes the next request
    co_await send(why);
  }

  // No temporary with a destructor stands in an expression with co_await: GCC 12 destroys some of them twice.
  task<response> handled(admission& let_in, std::string& body) {
    auto box = std::make_shared<mailbox>(http_.stream().get_executor());
    std::optional<reply> back{std::in_place,
                              [to = std::weak_ptr<mailbox>(box), core = core_.weak_from_this()](response x) {
                                // Keeps the server, so that the box's timer does not outlive it.
                                const auto alive = core.lock();
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
    back.reset(); // the handler holds its own copies of the reply
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

  template <class Message>
  void fill(Message& m, const response& x) {
    m.version(http_.version());
    m.result(x.status);
    if (!x.taker)
      m.set(wire::field::content_type, x.content_type);
    m.set(wire::field::server, "troupe");
    for (const auto& [key, text] : x.headers)
      m.insert(key, text);
    for_common_headers(target(), [&](const char* key, const char* text) { m.set(key, text); });
    m.keep_alive(http_.keep_alive());
  }

  std::string_view target() const { return {http_.head().target().data(), http_.head().target().size()}; }

  task<void> send(response& x) {
    if (x.taker) {
      taken_ = true;
      wire::response<wire::empty_body> switching;
      fill(switching, x);
      if constexpr (!http::session<Stream>::is_tls)
        if (x.socket_taker) {
          co_await http_.give(switching, x.socket_taker);
          co_return;
        }
      co_await http_.lend(switching, x.taker);
      co_return;
    }
    if (std::exchange(zips_, false) && x.status == 200)
      gzip_body(x);
    wire::response<wire::string_body> m;
    fill(m, x);
    if (x.status != 304) // the length of a 304 would be that of the answer it stands for
      m.content_length(x.body.size());
    if (!http_.head_only())
      m.body() = std::move(x.body);
    co_await http_.send(m);
  }

  /// Sends a stream. It ends where the caller, as `asked` says, loses the right to it.
  task<void> send_stream(response& x, const admission& asked) {
    error_code bad;
    const bool chunked = http_.version() >= 11, head_only = http_.head_only();
    if (!chunked)
      http_.end_after_answer();
    auto seen = core_.clock.version();
    const auto next = [&] {
      seen = core_.clock.version();
      return x.stream->next(core_.options.now());
    };
    std::optional<result<body_stream::piece>> first; // shows whether there is enough to compress
    std::optional<gzip_stream> zip;
    if (std::exchange(zips_, false) && chunked && !head_only && x.status == 200)
      if (first = next();
          *first && worth_gzip(x, (*first)->bytes.size(), !(*first)->last && x.ends_by_itself))
        zip = gzip_stream::of(x);
    wire::response<wire::empty_body> m;
    fill(m, x);
    if (chunked)
      m.chunked(true);
    wire::response_serializer<wire::empty_body> out{m};
    http_.lowest().expires_after(core_.options.write_time);
    co_await wire::async_write_header(http_.stream(), out, into(bad));
    bool whole = head_only, here = !bad;
    const duration at_most = core_.options.rights_time;
    auto looked = std::chrono::steady_clock::now();
    while (here && !whole && !core_.stopping) {
      if (const auto time = std::chrono::steady_clock::now(); time - looked >= at_most) {
        if (!core_.api.still_lets_in(asked))
          break;
        looked = time;
      }
      auto piece = first ? *std::exchange(first, std::nullopt) : next();
      if (!piece)
        break;
      whole = piece->last;
      if (zip)
        piece->bytes = zip->add(piece->bytes, whole);
      if (!piece->bytes.empty() && chunked) {
        auto framed = wire::make_chunk(net::buffer(piece->bytes));
        here = co_await http_.send_piece(framed);
      } else if (!piece->bytes.empty()) {
        const auto plain = net::buffer(piece->bytes);
        here = co_await http_.send_piece(plain);
      } else if (!whole) {
        here = co_await doze(seen, std::min(piece->pause.value_or(at_most), at_most));
      }
    }
    if (here && (whole || core_.stopping) && chunked && !head_only) {
      if (zip && !whole) {
        const auto rest = zip->add({}, true);
        auto framed = wire::make_chunk(net::buffer(rest));
        here = co_await http_.send_piece(framed);
      }
      auto end = wire::make_chunk_last();
      here = co_await http_.send_piece(end);
    }
    if (!here || !whole)
      http_.end_after_answer();
    if (!whole && !core_.stopping)
      http_.close(); // the last chunk is missing, so the reader sees that the body is incomplete
  }

  /// Waits for a commit after `seen`, for the time `pause`, or for the end of the server or of the client.
  /// False where the client has gone.
  task<bool> doze(std::uint64_t seen, duration pause) {
    auto who = std::make_shared<sleeper>(http_.stream().get_executor());
    if (!core_.clock.enter(who, seen))
      co_return true;
    struct awake {
      alarm_clock& clock;
      const std::shared_ptr<sleeper>& who;
      ~awake() { clock.leave(who); }
    } guard{core_.clock, who};
    if (core_.stopping)
      co_return true;
    http_.watch([sleeping = std::weak_ptr<sleeper>(who)] {
      if (auto one = sleeping.lock())
        one->timer.cancel();
    });
    who->timer.expires_after(pause);
    error_code canceled;
    co_await who->timer.async_wait(into(canceled));
    http_.unwatch();
    co_return !http_.gone();
  }

  /// Empty: no `Host` was sent, as by clients that are not browsers. ":", which is the name of no server: an
  /// empty one was sent, or several.
  static std::string named_host(const wire::request_header<>& h) {
    const auto sent = h.count(wire::field::host);
    const std::string host(h[wire::field::host]);
    return sent > 1 || (sent == 1 && host.empty()) ? ":" : host;
  }

  request_head head_of(const wire::request_header<>& h) const {
    const auto text = [&](auto field) { return std::string(h[field]); };
    request_head out;
    out.method = std::string(h.method_string());
    out.target = std::string(h.target());
    out.headers = {text(wire::field::authorization),
                   text(wire::field::cookie),
                   text("Grpc-Metadata-x-user-token"),
                   text("Grpc-Metadata-x-allocation-token"),
                   text(wire::field::accept),
                   text(wire::field::content_type),
                   text("Last-Event-ID"),
                   http_.wants_upgrade() ? text(wire::field::upgrade) : std::string(),
                   named_host(h),
                   text(wire::field::origin),
                   text("Sec-Fetch-Site"),
                   text(wire::field::if_none_match),
                   text(wire::field::accept_encoding),
                   text(wire::field::sec_websocket_key),
                   from_};
    return out;
  }

  server_core& core_;
  const entrance at_;
  http::session<Stream> http_;
  std::shared_ptr<open_connection> entry_;
  bool taken_ = false; ///< the connection was taken over from HTTP, and has ended
  std::string from_;   ///< IP address that the connection comes from
  bool zips_ = false;  ///< the answer to the present request may be compressed
};

template <class Stream>
void start(server_core& core, Stream stream, entrance at, std::function<void()> over) {
  auto on = stream.get_executor();
  auto one = std::make_shared<connection<Stream>>(core, std::move(stream), at);
  auto work = one->run(); // the completion below owns the frame and the connection
  net::co_spawn(on, std::move(work), [one, over = std::move(over)](std::exception_ptr) mutable {
    one.reset(); // closes the socket before another connection may take its place
    over();
  });
}

} // namespace

void serve(server_core& core, tcp::socket socket, entrance at, std::function<void()> over) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  beast::tcp_stream stream{std::move(socket)};
  if (core.tls)
    start(core, beast::ssl_stream<beast::tcp_stream>{std::move(stream), *core.tls}, at, std::move(over));
  else
    start(core, std::move(stream), at, std::move(over));
}

} // namespace troupe::api
