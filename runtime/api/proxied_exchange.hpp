#pragma once
// One proxied request on its connection: to the service and back, in pieces both ways. No body is ever held
// whole: a piece is read when the last one has been taken. Only for connection.cpp.

#include "runtime/api/connection.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/proxy_door.hpp"
#include "runtime/http/session.hpp"
#include "runtime/http/socket_link.hpp"
#include "runtime/http/splice.hpp"
#include "runtime/proxy/bridge.hpp"

#include <atomic>

namespace troupe::api {

/// To a client whose body is malformed.
inline response not_http(const http::error_code& bad) {
  return failure({errc::invalid, "the body of the request is no HTTP: " + bad.message()});
}

template <class Stream>
class proxied_exchange {
  using error_code = http::error_code;
  template <class T>
  using task = http::task<T>;
  using milliseconds = std::chrono::milliseconds;
  using response_reader = http::wire::response_parser<http::wire::buffer_body>;

public:
  /// `taken`: set as soon as the connection is no HTTP any more.
  proxied_exchange(server_core& core, http::session<Stream>& viewer, proxied& what, bool& taken)
      : core_(core), http_(viewer), what_(what), taken_(taken), table_(core.api.parts().proxy->junctions),
        method_(viewer.head().method_string()), length_(viewer.content_length()), chunked_(viewer.chunked()),
        expects_(http::beast::iequals(viewer.head()[http::wire::field::expect], "100-continue")),
        is_head_(viewer.head_only()) {}
  ~proxied_exchange() { unwatch(); }
  proxied_exchange(const proxied_exchange&) = delete;
  proxied_exchange& operator=(const proxied_exchange&) = delete;

  bool has_body() const { return chunked_ || length_.value_or(0) > 0; }

  /// The answer to send where nothing was sent yet.
  task<std::optional<response>> run() {
    core_.keep_watch();
    switch (what_.how) {
    case proxied::way::http:
    case proxied::way::websocket:
      co_return co_await forward();
    case proxied::way::frames:
    case proxied::way::bytes:
      break;
    }
    co_return co_await tunnel();
  }

private:
  /// One of the two is there.
  struct upstream {
    std::unique_ptr<http::socket_stream> socket; ///< of this connection's own executor
    proxy::link_ptr link;
    proxy::junctions::place held;

    explicit operator bool() const { return socket || link; }
  };
  /// How long nothing has passed, either way, and whether the viewer may still be here. The table asks for it
  /// from its own thread.
  struct pulse final : proxy::junctions::watched, std::enable_shared_from_this<pulse> {
    explicit pulse(proxied_exchange& x) : of(&x), on(x.http_.stream().get_executor()) { touch(); }
    void touch() { last = std::chrono::steady_clock::now(); }
    proxy::steady_time last_byte() const override {
      if (!stays)
        stays = of->stays();
      return stays() ? last.load() : last.load() - proxy::junctions::idle;
    }
    void end_idle() override {
      net::post(on, [weak = this->weak_from_this()] {
        if (const auto me = weak.lock(); me && me->of)
          me->of->end_silent();
      });
    }
    proxied_exchange* of; ///< null once it is over; of its executor
    const net::any_io_executor on;
    std::atomic<proxy::steady_time> last;
    mutable std::function<bool()> stays; ///< made for who lasts
  };
  /// Where the answer of a call on another executor arrives; on the viewer's.
  template <class T>
  struct box {
    explicit box(net::any_io_executor on) : timer(std::move(on)) {}
    std::optional<T> got;
    net::steady_timer timer;
    void take(T x) {
      if (!got)
        got = std::move(x);
      timer.cancel();
    }
  };
  template <class T>
  std::shared_ptr<box<T>> make_box() {
    return std::make_shared<box<T>>(http_.stream().get_executor());
  }
  template <class T>
  static auto into_box(const std::shared_ptr<box<T>>& to) {
    return [to](T x) {
      net::post(to->timer.get_executor(), [to, x = std::move(x)]() mutable { to->take(std::move(x)); });
    };
  }
  template <class T>
  static task<T> wait_for(std::shared_ptr<box<T>> at) {
    error_code canceled;
    while (!at->got) {
      at->timer.expires_at(std::chrono::steady_clock::time_point::max());
      co_await at->timer.async_wait(http::into(canceled));
    }
    co_return std::move(*at->got);
  }

  // ---- the connection to the service

  task<result<upstream>> open_service() {
    using opened = result<proxy::service_end>;
    auto at = make_box<opened>();
    const auto arrived = [to = std::weak_ptr<box<opened>>(at), core = core_.weak_from_this()](opened x) {
      const auto alive = core.lock(); // the box's timer must not outlive the server
      if (const auto box = to.lock(); alive && box)
        into_box<opened>(box)(std::move(x));
    };
    auto ticket = table_->expect(what_.at.service.id, arrived, what_.most);
    if (!ticket)
      co_return ticket.error();
    const allocation_id run{what_.at.task.id, what_.at.task.run};
    commands::allocation_connect order;
    order.allocation = to_string(run);
    order.experiment = what_.at.task.experiment;
    order.service = what_.at.service.id;
    order.connection = ticket->connection;
    order.secret = ticket->secret;
    const principal by{.user = what_.at.task.owner, .admin = false, .allocation = to_string(run)};
    core_.api.parts().cluster.order(
      by, std::move(order), [table = table_, name = ticket->connection](const result<value>& done) {
        if (!done)
          table->give_up(name, done.error().code == errc::conflict ? error{errc::busy, done.error().what}
                                                                   : done.error());
      });
    error_code canceled;
    const auto until = std::chrono::steady_clock::now() + proxy::junctions::arrival_time;
    while (!at->got && std::chrono::steady_clock::now() < until) {
      at->timer.expires_at(until);
      co_await at->timer.async_wait(http::into(canceled));
    }
    table_->give_up(ticket->connection, {errc::timeout, ""});
    if (!at->got)
      co_return error{errc::timeout, "the agent of service " + what_.at.service.id +
                                       " has not answered: it is away, or its host is busy"};
    if (!*at->got)
      co_return at->got->error();
    co_return here(std::move(**at->got), std::move(ticket->held));
  }

  result<upstream> here(proxy::service_end end, proxy::junctions::place held) {
    upstream out;
    out.held = std::move(held);
    out.link = std::move(end.link);
    if (out.link)
      out.link->be_patient(proxy::junctions::idle);
    if (!out.link) {
      error_code bad;
      out.socket = std::make_unique<http::socket_stream>(
        http::on_executor(http_.stream().get_executor(), std::move(end.socket), bad));
      if (bad)
        return error{errc::unreachable, "the connection to the service: " + bad.message()};
    }
    return out;
  }
  static proxy::service_end rested(upstream& x) {
    if (const auto socket = std::exchange(x.socket, nullptr))
      return proxy::service_end(http::off_executor(*socket));
    return std::move(x.link);
  }
  /// For who joins it with the viewer's.
  static proxy::link_ptr link_of(upstream& x) {
    if (const auto socket = std::exchange(x.socket, nullptr))
      return std::make_shared<http::socket_link>(std::move(*socket));
    return std::move(x.link);
  }

  /// Reads what comes next to the end of `waiting_`; false at the service's end, or where it is gone (`bad`).
  task<bool> read(error_code& bad) {
    if (up_.socket) {
      // Small as long as little comes at once.
      const auto room = waiting_.prepare(filled_ ? 65536 : 16384);
      up_.socket->expires_never();
      const auto got = co_await up_.socket->async_read_some(room, http::into(bad));
      filled_ = got == room.size();
      waiting_.commit(bad ? 0 : got);
      pulse_->touch();
      const bool over = bad == net::error::eof;
      if (over)
        bad = {};
      co_return !bad && !over;
    }
    auto at = make_box<result<std::string>>();
    reading_ = at;
    up_.link->read(into_box<result<std::string>>(at));
    auto got = co_await wait_for<result<std::string>>(at);
    reading_.reset();
    if (!got)
      bad = net::error::connection_reset;
    else
      waiting_.commit(net::buffer_copy(waiting_.prepare(got->size()), net::buffer(*got)));
    pulse_->touch();
    co_return got && !got->empty();
  }
  task<result<void>> write(std::string bytes) {
    if (up_.socket) {
      error_code bad;
      const auto sent = sent_at_once(up_.socket->socket().native_handle(), bytes);
      if (sent < bytes.size()) {
        up_.socket->expires_never();
        co_await net::async_write(*up_.socket, net::buffer(bytes) + sent, http::into(bad));
      }
      if (bad)
        co_return error{errc::unreachable, bad.message()};
      pulse_->touch();
      co_return result<void>();
    }
    auto at = make_box<result<void>>();
    writing_ = at;
    up_.link->write(std::move(bytes), into_box<result<void>>(at));
    auto done = co_await wait_for<result<void>>(at);
    writing_.reset();
    pulse_->touch();
    co_return done;
  }
  /// How many bytes the socket takes without waiting: mostly all of what is short, which then needs neither
  /// timer nor reactor. A fault shows with the next write.
  static std::size_t sent_at_once(int socket, std::string_view bytes) {
    const auto sent = ::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent > 0 ? static_cast<std::size_t>(sent) : 0;
  }
  /// After it no call of the link is answered any more.
  void hang_up() {
    const error gone{errc::unreachable, "the connection to the service has ended"};
    if (up_.link)
      up_.link->abort();
    if (up_.socket) {
      http::close_as_break(*up_.socket, true);
      up_.socket->close();
    }
    if (reading_)
      reading_->take(gone);
    if (writing_)
      writing_->take(gone);
  }

  /// Nothing has passed for too long, or the viewer may no longer be here.
  void end_silent() {
    silent_ = true;
    http_.end_after_answer();
    http_.close();
    hang_up();
  }
  void watch() {
    if (pulse_)
      return;
    pulse_ = std::make_shared<pulse>(*this);
    table_->watch(pulse_);
  }
  void unwatch() {
    if (!pulse_)
      return;
    table_->unwatch(*pulse_);
    pulse_->of = nullptr;
  }

  std::function<bool()> stays() const {
    return [core = core_.weak_from_this(), right = lasting_right(what_)]() mutable {
      const auto alive = core.lock();
      return !alive || right.holds(alive->api, alive->options.now());
    };
  }

  // ---- tunnels

  task<std::optional<response>> tunnel() {
    auto opened = co_await open_service();
    if (!opened)
      co_return service_fault(opened.error(), false);
    const bool frames = what_.how == proxied::way::frames;
    http::wire::response<http::wire::empty_body> answer;
    answer.set(http::wire::field::server, "troupe");
    answer.set(http::wire::field::upgrade, frames ? "websocket" : "troupe-tunnel");
    if (frames)
      answer.set(http::wire::field::sec_websocket_accept, what_.accept);
    taken_ = true;
    co_await http_.lend(answer, [&](proxy::link_ptr viewer) {
      proxy::bridge_ends ends{std::move(viewer), link_of(*opened), {}, std::move(opened->held), table_,
                              what_.first_byte,  stays()};
      frames ? proxy::join_frames(std::move(ends)) : proxy::join_bytes(std::move(ends));
    });
    co_return std::nullopt;
  }

  // ---- HTTP

  enum class outcome { done, stale, fault };
  static constexpr std::size_t most_at_once = 16384; ///< of a body

  task<std::optional<response>> forward() {
    const bool repeatable = !has_body() && what_.how == proxied::way::http &&
                            (method_ == "GET" || method_ == "HEAD" || method_ == "OPTIONS");
    if (repeatable)
      if (auto rested = table_->take(what_.at.service.id)) {
        auto kept = here(std::move(rested->end), std::move(rested->held));
        auto went = outcome::stale;
        if (kept) {
          up_ = std::move(*kept);
          went = co_await exchange();
        }
        if (went != outcome::stale || silent_)
          co_return std::move(fault_);
        hang_up();
        up_ = {};
      }
    auto opened = co_await open_service();
    if (!opened)
      co_return service_fault(opened.error(), what_.page);
    up_ = std::move(*opened);
    const auto went = co_await exchange();
    if (went == outcome::stale)
      co_return service_fault({errc::unreachable, "the service ended the connection without an answer"},
                              what_.page);
    co_return std::move(fault_);
  }

  std::string head_text() const {
    std::string out = method_ + " " + what_.target + " HTTP/1.1\r\n";
    for (const auto& [name, text] : what_.head)
      out += name + ": " + text + "\r\n";
    if (what_.how == proxied::way::websocket)
      out += "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    if (chunked_)
      out += "Transfer-Encoding: chunked\r\n";
    else if (length_)
      out += "Content-Length: " + std::to_string(*length_) + "\r\n";
    return out + "\r\n";
  }

  /// `stale`: nothing came back. `fault`: fault_ says what to answer, if anything was not sent yet.
  task<outcome> exchange() {
    watch();
    auto sent = co_await write(head_text());
    if (!sent)
      co_return outcome::stale;
    if (has_body())
      start_upload();
    else
      http_.watch([this] { hang_up(); }, true);
    auto went = co_await answer();
    http_.unwatch();
    co_await end_upload(began_);
    if (went == outcome::done && reusable_ && !http_.gone())
      table_->keep(what_.at.service.id, {rested(up_), std::move(up_.held)});
    else if (!taken_)
      hang_up();
    co_return went;
  }

  task<outcome> answer() {
    std::optional<response_reader> reader;
    bool heard = false;
    do {
      reader.emplace();
      reader->header_limit(64u << 10);
      reader->body_limit(std::numeric_limits<std::uint64_t>::max());
      if (is_head_)
        reader->skip(true);
      while (!reader->is_header_done()) {
        error_code bad;
        if (waiting_.size() > 0)
          waiting_.consume(reader->put(waiting_.data(), bad));
        if (bad && bad != http::wire::error::need_more)
          co_return broken("the service answers what is no HTTP: " + bad.message());
        if (reader->is_header_done())
          break;
        bad = {};
        const bool more = co_await read(bad);
        if (http_.gone() || upload_failed_ || silent_)
          co_return gone();
        if (!more)
          co_return heard ? broken("the service ended the connection within its answer") : outcome::stale;
        heard = true;
      }
    } while (reader->get().result_int() < 200 && reader->get().result_int() != 101);
    if (reader->get().result() == http::wire::status::switching_protocols)
      co_return co_await switched(reader);
    co_return co_await relay(*reader);
  }

  outcome broken(std::string why) {
    http::close_as_break(http_.lowest(), false); // the fault itself is an answer that is whole
    fault_ = service_fault({errc::unreachable, std::move(why)}, what_.page);
    return outcome::fault;
  }
  outcome gone() {
    http_.end_after_answer();
    if (upload_fault_)
      fault_ = not_http(upload_fault_);
    return outcome::fault;
  }

  template <class Message>
  void fill(Message& to, const response_reader& from) {
    const auto& came = from.get();
    to.result(came.result_int());
    to.reason(came.reason());
    proxy::header_list all;
    for (const auto& field : came)
      all.emplace_back(std::string(field.name_string()), std::string(field.value()));
    for (const auto& [name, text] : proxy::to_viewer(all))
      to.insert(name, text);
    if (what_.sandboxed) // the API's own origin: whatever this is, it is no page of the cluster
      to.set("Content-Security-Policy", "sandbox");
    if (to.find("Referrer-Policy") == to.end())
      to.set("Referrer-Policy", "no-referrer");
  }

  task<outcome> switched(std::optional<response_reader>& reader) {
    if (what_.how != proxied::way::websocket ||
        !http::beast::iequals(reader->get()[http::wire::field::upgrade], "websocket"))
      co_return broken("the service changes to a protocol that nobody asked for");
    http::wire::response<http::wire::empty_body> answer;
    fill(answer, *reader);
    answer.set(http::wire::field::upgrade, "websocket");
    taken_ = began_ = true;
    unwatch(); // who joins the two watches them
    // A connection may last for days without a byte: only what it needs is kept.
    auto early = http::beast::buffers_to_string(waiting_.data());
    waiting_.clear();
    waiting_.shrink_to_fit();
    reader.reset();
    what_.head = {};
    co_await http_.lend(answer, [&](proxy::link_ptr viewer) {
      proxy::join_bytes(
        {std::move(viewer), link_of(up_), std::move(early), std::move(up_.held), table_, {}, stays()});
    });
    co_return outcome::done;
  }

  task<outcome> relay(response_reader& reader) {
    http::wire::response<http::wire::buffer_body> out;
    fill(out, reader);
    out.version(http_.version());
    const auto status = reader.get().result_int();
    const bool bodiless = is_head_ || status == 204 || status == 304;
    if (bodiless) {
      if (const auto length = reader.get()[http::wire::field::content_length];
          !length.empty() && status != 204)
        out.set(http::wire::field::content_length, length);
    } else if (const auto length = reader.content_length()) {
      out.content_length(*length);
    } else if (http_.version() >= 11 && !reader.need_eof()) {
      out.chunked(true);
    } else { // its end is that of the connection, as the service said: nobody vouches for it
      until_end_ = true;
      http::close_as_break(http_.lowest(), true); // until it is whole
      http_.end_after_answer();
    }
    reusable_ = !reader.need_eof() && reader.get().keep_alive() && what_.how == proxied::way::http;
    if (what_.how == proxied::way::websocket)
      http_.end_after_answer();
    out.keep_alive(http_.keep_alive());
    error_code bad;
    if (const auto length = reader.content_length();
        !bodiless && length && *length <= most_at_once && *length <= waiting_.size()) {
      began_ = true;
      co_await send_whole(out, static_cast<std::size_t>(*length), bad);
      co_return relayed(bad);
    }
    http::wire::serializer<false, http::wire::buffer_body, http::wire::fields> writer{out};
    http_.lowest().expires_never();
    bool whole = bodiless;
    // What is there already goes out together with the head.
    began_ = bodiless || (waiting_.size() == 0 && !reader.is_done());
    if (began_)
      co_await http::wire::async_write_header(http_.stream(), writer, http::into(bad));
    std::vector<char> piece(
      bodiless ? 0 : std::clamp<std::size_t>(reader.content_length().value_or(65536), 1, 65536));
    while (!bad && !whole) {
      if (const auto left = spliced(reader)) {
        http::splicer moves{up_.socket->socket(), http_.lowest().socket(), proxy::junctions::idle,
                            [this] { pulse_->touch(); }};
        if (moves.ready()) {
          up_.socket->expires_never();
          http_.lowest().expires_never();
          co_await moves.run(left, bad);
          break;
        }
      }
      reader.get().body() = {piece.data(), piece.size(), true};
      bool over = reader.is_done();
      if (!over)
        over = co_await next_piece(reader, bad);
      if (bad && !began_ && is_no_http(bad))
        co_return broken("the service answers what is no HTTP: " + bad.message());
      began_ = true;
      if (bad)
        break;
      const auto produced = piece.size() - reader.get().body().size;
      out.body() = {produced ? piece.data() : nullptr, produced, !over};
      http_.lowest().expires_never();
      co_await http::wire::async_write(http_.stream(), writer, http::into(bad));
      pulse_->touch();
      if (bad == http::wire::error::need_buffer)
        bad = {};
      whole = over;
    }
    co_return relayed(bad);
  }

  outcome relayed(const error_code& bad) {
    if (bad) {
      reusable_ = false;
      http_.end_after_answer();
      http_.close(); // without the last piece: the reader sees that something is missing
      return outcome::fault;
    }
    if (until_end_)
      http::close_as_break(http_.lowest(), false);
    if (waiting_.size() > 0)
      reusable_ = false;
    return outcome::done;
  }

  /// A short answer whose body is here already, in one piece.
  task<void> send_whole(const http::wire::response<http::wire::buffer_body>& head, std::size_t length,
                        error_code& bad) {
    std::string text = head.version() == 10 ? "HTTP/1.0 " : "HTTP/1.1 ";
    text += std::to_string(head.result_int()) + " ";
    text.append(head.reason().data(), head.reason().size()) += "\r\n";
    for (const auto& field : head) {
      text.append(field.name_string().data(), field.name_string().size()) += ": ";
      text.append(field.value().data(), field.value().size()) += "\r\n";
    }
    text += "\r\n";
    const auto at = text.size();
    text.resize(at + length);
    net::buffer_copy(net::buffer(text) + at, waiting_.data());
    waiting_.consume(length);
    std::size_t sent = 0;
    if constexpr (!http::session<Stream>::is_tls)
      sent = sent_at_once(http_.lowest().socket().native_handle(), text);
    if (sent == text.size())
      co_return;
    http_.lowest().expires_never();
    co_await net::async_write(http_.stream(), net::buffer(text) + sent, http::into(bad));
  }

  /// How many bytes of the body are left, where they are many and the kernel can move them itself; else 0.
  std::uint64_t spliced(const response_reader& reader) const {
    if (http::session<Stream>::is_tls || !up_.socket || waiting_.size() > 0 || !reader.content_length())
      return 0;
    const auto left = reader.content_length_remaining();
    return left && *left >= http::worth_splicing ? *left : 0;
  }

  /// Fills the body's piece with what comes next; true where that is the last of it.
  task<bool> next_piece(response_reader& reader, error_code& bad) {
    auto& body = reader.get().body();
    const auto room = body.size;
    while (!bad && !reader.is_done() && body.size == room) {
      std::size_t used = 0;
      if (waiting_.size() > 0)
        used = reader.put(waiting_.data(), bad);
      waiting_.consume(used);
      if (bad == http::wire::error::need_buffer || bad == http::wire::error::need_more)
        bad = {};
      if (bad || reader.is_done() || body.size != room || used > 0)
        continue;
      const bool more = co_await read(bad);
      if (!more && !bad) {
        reader.put_eof(bad);
        if (!bad && !reader.is_done())
          bad = net::error::eof;
      }
    }
    co_return reader.is_done();
  }

  // ---- the request's body

  void start_upload() {
    uploading_ = true;
    auto work = upload(http_.take_body());
    net::co_spawn(http_.stream().get_executor(), std::move(work), [this](std::exception_ptr) {
      uploading_ = false;
      uploaded_.cancel();
    });
  }

  task<void> upload(std::unique_ptr<http::wire::request_parser<http::wire::buffer_body>> body) {
    auto& reader = *body;
    error_code bad;
    if (expects_) {
      http_.lowest().expires_after(std::chrono::seconds{30});
      co_await net::async_write(http_.stream(), net::buffer("HTTP/1.1 100 Continue\r\n\r\n", 25),
                                http::into(bad));
    }
    std::vector<char> piece(65536);
    while (!bad && !reader.is_done()) {
      reader.get().body() = {piece.data(), piece.size(), true};
      http_.lowest().expires_never();
      co_await http::wire::async_read_some(http_.stream(), http_.unread(), reader, http::into(bad));
      if (bad == http::wire::error::need_buffer)
        bad = {};
      pulse_->touch();
      const auto produced = piece.size() - reader.get().body().size;
      if (bad || produced == 0 || dropping_)
        continue;
      std::string bytes;
      if (chunked_)
        bytes = chunk_size(produced);
      bytes.append(piece.data(), produced);
      if (chunked_)
        bytes += "\r\n";
      auto taken = co_await write(std::move(bytes));
      if (!taken)
        dropping_ = true; // the service may have answered all the same
    }
    if (bad) {
      upload_failed_ = true;
      if (is_no_http(bad))
        upload_fault_ = bad;
      http_.end_after_answer();
      hang_up();
    } else if (chunked_ && !dropping_) {
      auto taken = co_await write("0\r\n\r\n");
      dropping_ = !taken;
    }
  }
  static std::string chunk_size(std::size_t n) {
    char text[24];
    const int size = std::snprintf(text, sizeof text, "%zx\r\n", n);
    return {text, static_cast<std::size_t>(size)};
  }

  /// What somebody sent, not how the connection went.
  static bool is_no_http(const error_code& bad) {
    using http::wire::error;
    return bad.category() == http::wire::make_error_code(error::bad_chunk).category() &&
           bad != error::end_of_stream && bad != error::partial_message;
  }

  /// Where the answer is out, what is left of the body is read for a moment, so that the client reads it;
  /// else the session does so once it has answered.
  task<void> end_upload(bool answered) {
    if (!uploading_)
      co_return;
    http_.end_after_answer();
    reusable_ = false;
    dropping_ = true;
    hang_up();
    error_code canceled;
    while (uploading_ && !answered) {
      http_.lowest().cancel();
      uploaded_.expires_after(std::chrono::milliseconds{10});
      co_await uploaded_.async_wait(http::into(canceled));
    }
    uploaded_.expires_after(std::chrono::seconds{2});
    co_await uploaded_.async_wait(http::into(canceled));
    while (uploading_) {
      http_.close();
      uploaded_.expires_at(std::chrono::steady_clock::time_point::max());
      co_await uploaded_.async_wait(http::into(canceled));
    }
  }

  server_core& core_;
  http::session<Stream>& http_;
  proxied& what_;
  bool& taken_;
  const std::shared_ptr<proxy::junctions> table_;
  const std::string method_;
  const std::optional<std::uint64_t> length_;
  const bool chunked_, expects_, is_head_;
  upstream up_;
  std::shared_ptr<box<result<std::string>>> reading_;
  std::shared_ptr<box<result<void>>> writing_;
  http::beast::flat_buffer waiting_; ///< bytes of the service that are not parsed yet
  bool filled_ = false;              ///< the last read took all the room there was
  std::optional<response> fault_;
  error_code upload_fault_; ///< of what the client sent
  bool began_ = false;      ///< something of the answer is out
  bool until_end_ = false;  ///< the end of the answer's body is that of the connection
  bool reusable_ = false;
  bool uploading_ = false, upload_failed_ = false, dropping_ = false, silent_ = false;
  std::shared_ptr<pulse> pulse_; ///< while a request is on its way
  net::steady_timer uploaded_{http_.stream().get_executor()};
};

} // namespace troupe::api
