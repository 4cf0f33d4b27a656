// Determined's streaming updates: GET /stream becomes a WebSocket. One thread serves all open streams: it
// looks for new facts, and tells each client those that it has subscribed to.

#include "runtime/api/errors.hpp"
#include "runtime/api/origin.hpp"
#include "runtime/api/route.hpp"
#include "runtime/api/service.hpp"
#include "runtime/api/update_book.hpp"
#include "runtime/api/websocket.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <thread>

namespace troupe::api {
namespace {

constexpr std::size_t most_message_bytes = 1 << 20, most_outgoing_bytes = 8u << 20, most_streams = 10'000,
                      most_drained_bytes = 8u << 20;
constexpr std::size_t piece_bytes = 512u << 10; ///< limit of one piece of the answer to a subscription
constexpr std::chrono::milliseconds look_every{50}, rights_every{5000}, drain_time{3000};

/// One connection. Its messages arrive on the connection's thread, and the hub's thread answers them.
class client : public std::enable_shared_from_this<client> {
public:
  client(std::shared_ptr<http::byte_link> link, std::string token)
      : link_(std::move(link)), token_(std::move(token)) {}

  /// Begins to read. `news` is called when the client has sent a message, or has taken what was sent and
  /// waits for more.
  void begin(std::function<void()> news) {
    news_ = std::move(news);
    read();
  }
  void read() {
    // The hub owns the client, so the link holds it weakly.
    link_->read([weak = weak_from_this()](result<std::string> got) {
      const auto self = weak.lock();
      if (!self)
        return;
      if (!got || got->empty())
        return self->end(), self->news_();
      if (self->refused())
        return self->no_more_is_taken(), self->news_();
      if (self->take(*got))
        self->read();
      else
        self->no_more_is_taken();
      self->news_();
    });
  }
  void send(std::string bytes) {
    {
      const std::scoped_lock lock(mutex_);
      outgoing_bytes_ += bytes.size();
      outgoing_.push_back(std::move(bytes));
      if (outgoing_bytes_ > most_outgoing_bytes)
        ended_ = true; // the client reads too slowly; it will connect again
    }
    if (ended())
      return link_->close();
    write();
  }
  void refuse(int code, const std::string& why) {
    {
      const std::scoped_lock lock(mutex_);
      if (std::exchange(ends_after_, true))
        return;
      refused_at_ = std::chrono::steady_clock::now();
    }
    send(websocket_close(code, why));
  }
  std::size_t outgoing_bytes() {
    const std::scoped_lock lock(mutex_);
    return outgoing_bytes_;
  }
  std::deque<std::string> messages() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(messages_, {});
  }
  bool ended() {
    const std::scoped_lock lock(mutex_);
    return ended_;
  }
  bool refused() {
    const std::scoped_lock lock(mutex_);
    return ends_after_;
  }
  /// Whether the client was refused so long ago that the hub stops waiting for its end.
  bool lingers(std::chrono::steady_clock::time_point now) {
    const std::scoped_lock lock(mutex_);
    return ends_after_ && now - refused_at_ > drain_time;
  }
  void end() {
    {
      const std::scoped_lock lock(mutex_);
      ended_ = true;
    }
    link_->close();
  }
  const std::string& token() const { return token_; }

  std::atomic<bool> waits_for_more = false; ///< the answer to the client's subscription is not complete

  // Only the hub's thread uses the following members.
  update_subscription wants;
  std::chrono::steady_clock::time_point looked_at_rights;
  /// Roles that decided what the client was told; null: roles decide nothing.
  std::shared_ptr<const authority::grants> rights;

private:
  bool take(const std::string& bytes) {
    std::vector<websocket_reader::message> all;
    const auto fine = reader_.take(bytes, all);
    for (auto& one : all)
      switch (one.what) {
      case websocket_reader::kind::ping:
        send(websocket_pong(one.bytes));
        break;
      case websocket_reader::kind::close:
        refuse(1000, "");
        return false;
      case websocket_reader::kind::binary:
        refuse(1002, "messages are texts");
        return false;
      case websocket_reader::kind::text: {
        const std::scoped_lock lock(mutex_);
        messages_ = {std::move(one.bytes)}; // a later message replaces one that was not answered yet
      }
      }
    if (!fine) {
      refuse(fine.error().code == errc::no_space ? 1009 : 1002, fine.error().what);
      return false;
    }
    return true;
  }
  void write() {
    std::string bytes;
    {
      const std::scoped_lock lock(mutex_);
      if (writing_ || outgoing_.empty())
        return;
      writing_ = true;
      while (!outgoing_.empty() && bytes.size() < (64u << 10)) {
        bytes += outgoing_.front();
        outgoing_.pop_front();
      }
    }
    const auto count = bytes.size();
    link_->write(std::move(bytes), [weak = weak_from_this(), count](result<void> done) {
      const auto self = weak.lock();
      if (!self)
        return;
      bool over = !done;
      {
        const std::scoped_lock lock(self->mutex_);
        self->writing_ = false;
        self->outgoing_bytes_ -= count;
        over |= self->ends_after_ && self->outgoing_.empty();
      }
      if (!over) {
        self->write();
        if (self->waits_for_more && self->outgoing_bytes() < piece_bytes)
          self->news_();
        return;
      }
      if (!done || self->ended())
        return self->end();
      {
        const std::scoped_lock lock(self->mutex_);
        self->said_why_ = true;
      }
      self->link_->end_writing();
      self->drain_if_due();
    });
  }
  void no_more_is_taken() {
    {
      const std::scoped_lock lock(mutex_);
      takes_no_more_ = true;
    }
    drain_if_due();
  }
  /// Starts `drain` once the reason has been written and no read is under way.
  void drain_if_due() {
    {
      const std::scoped_lock lock(mutex_);
      if (!said_why_ || !takes_no_more_ || std::exchange(draining_, true))
        return;
    }
    drain(most_drained_bytes);
  }
  /// Reads what a refused client still sends, up to a limit. If a connection is closed with unread bytes, its
  /// end may overtake the reason.
  void drain(std::size_t left) {
    link_->read([weak = weak_from_this(), left](result<std::string> got) {
      const auto self = weak.lock();
      if (!self)
        return;
      if (!got || got->empty() || got->size() >= left)
        return self->end();
      self->drain(left - got->size());
    });
  }

  const std::shared_ptr<http::byte_link> link_;
  const std::string token_;
  websocket_reader reader_{most_message_bytes};
  std::function<void()> news_;
  std::mutex mutex_;
  std::deque<std::string> messages_, outgoing_;
  std::size_t outgoing_bytes_ = 0;
  bool writing_ = false, ended_ = false, ends_after_ = false, said_why_ = false, takes_no_more_ = false,
       draining_ = false;
  std::chrono::steady_clock::time_point refused_at_;
};

class hub {
public:
  ~hub() {
    {
      const std::scoped_lock lock(inside_->mutex);
      inside_->ending = true;
      inside_->wake.notify_all();
    }
    if (thread_.joinable())
      thread_.join();
    for (auto& one : inside_->fresh)
      one->end();
  }

  void add(const std::shared_ptr<const services>& parts, std::shared_ptr<client> one) {
    {
      const std::scoped_lock lock(inside_->mutex);
      inside_->fresh.push_back(one);
      ++inside_->count;
      if (!thread_.joinable())
        thread_ = std::thread([parts, in = inside_] { run(*parts, *in); });
    }
    one->begin([in = inside_] {
      const std::scoped_lock lock(in->mutex);
      in->news = true;
      in->wake.notify_all();
    });
  }
  std::size_t count() {
    const std::scoped_lock lock(inside_->mutex);
    return inside_->count;
  }

private:
  struct inside {
    std::mutex mutex;
    std::condition_variable wake;
    std::vector<std::shared_ptr<client>> fresh;
    std::size_t count = 0;
    bool ending = false, news = false;
  };

  static void catch_up(const storage::reader& storage, update_book& book, std::uint64_t& next) {
    auto facts = storage.facts_of(cluster_entity, next);
    if (!facts)
      return; // the next round reads these facts
    for (const auto& bytes : *facts) {
      if (auto one = decode(bytes))
        book.take(*one, next);
      ++next;
    }
  }

  static void run(const services& parts, inside& in) {
    update_book book;
    std::uint64_t next = 0, sequence = std::uint64_t(-1);
    std::vector<std::shared_ptr<client>> all;
    for (;;) {
      {
        std::unique_lock lock(in.mutex);
        if (all.empty())
          in.wake.wait(lock, [&] { return in.ending || !in.fresh.empty(); });
        else
          in.wake.wait_for(lock, look_every, [&] { return in.ending || in.news; });
        in.news = false;
        if (in.ending)
          break;
        for (auto& one : in.fresh)
          all.push_back(std::move(one));
        in.fresh.clear();
      }
      const auto now = parts.storage->sequence();
      const bool changed = std::exchange(sequence, now) != now;
      if (changed)
        catch_up(*parts.storage, book, next);
      for (const auto& one : all)
        serve(parts, book, *one, changed);
      const auto time = std::chrono::steady_clock::now();
      for (const auto& one : all)
        if (one->lingers(time))
          one->end();
      const auto gone = std::erase_if(all, [](const auto& one) { return one->ended(); });
      const std::scoped_lock lock(in.mutex);
      in.count -= gone;
    }
    for (const auto& one : all)
      one->end();
  }

  static void serve(const services& parts, const update_book& book, client& one, bool changed) {
    const auto now = std::chrono::steady_clock::now();
    auto messages = one.messages();
    if (one.refused())
      return;
    const bool takes_more = one.wants.is_answered() || one.outgoing_bytes() < piece_bytes;
    const bool is_owed = changed || !one.wants.is_answered();
    if (messages.empty() && !(is_owed && takes_more) && now - one.looked_at_rights < rights_every)
      return;
    one.looked_at_rights = now;
    const auto by = bearer_of(parts, one.token(), parts.now());
    if (!by)
      return one.refuse(1008, "the token is no longer valid");
    // A client that connects again is told what it may see now.
    if (one.rights && by->roles && *one.rights != *by->roles)
      return one.refuse(1008, "the roles of its user have changed: subscribe again");
    one.rights = by->roles;
    const update_subscription::world in{
      [&](const std::string& owner) {
        auto user = parts.users->owner(owner);
        return user ? user->id : std::uint64_t(0);
      },
      [&](updated kind, const update_entry& x) {
        const auto rights = kind == updated::project ? thing::project : thing::model;
        if (parts.roles) {
          const auto version = kind == updated::version;
          const auto in = version ? parts.roles->workspace_of(model_id{x.parent}) : x.workspace;
          const auto wanted = authority::needed({action::view, rights});
          return wanted && by->roles->holds(*wanted, in);
        }
        return bool(authority::may(by->asks(), action::view, {rights, std::to_string(x.id), x.owner}));
      }};
    std::vector<std::string> out;
    if (!messages.empty())
      if (auto fine = one.wants.subscribe(messages.back(), book, in, out); !fine)
        return one.refuse(1008, fine.error().what);
    if (takes_more)
      one.wants.follow(book, in, out, piece_bytes);
    one.waits_for_more = !one.wants.is_answered();
    for (const auto& text : out)
      one.send(websocket_text(text));
  }

  std::shared_ptr<inside> inside_ = std::make_shared<inside>();
  std::thread thread_;
};

/// The handler of GET /stream. It owns the hub, which lives as long as the routes.
handler open_stream() {
  return [all = std::make_shared<hub>()](const call_ptr& c, const reply& back) {
    const auto accept = websocket_accept(c->headers.websocket_key);
    if (c->headers.upgrade.empty() || accept.empty())
      return back(failure({errc::invalid, "this path speaks WebSocket (RFC 6455): `Upgrade: websocket` and a "
                                          "Sec-WebSocket-Key are missing"}));
    const auto shown = shown_token(c->headers, c->parts->about.cluster_id);
    if (shown.by_cookie)
      if (auto fine = comes_from_own_page(c->headers, c->parts->browsers.tls); !fine)
        return back(failure(fine.error()));
    if (all->count() >= most_streams)
      return back(failure({errc::busy, "too many streams are open; try again"}));
    response out;
    out.headers = {{"Upgrade", "websocket"}, {"Sec-WebSocket-Accept", accept}};
    out.taker = [c, all, token = std::string(shown.token)](std::shared_ptr<http::byte_link> link) {
      all->add(c->parts->all ? c->parts->all : c->parts, std::make_shared<client>(std::move(link), token));
    };
    back(std::move(out));
  };
}

} // namespace

std::vector<route> stream_routes() {
  return {{"GET",
           "/stream",
           {action::view, thing::project},
           open_stream(),
           "",
           "WebSocket",
           "Changes of projects, models and their versions, as Determined's streaming updates."}};
}

} // namespace troupe::api
