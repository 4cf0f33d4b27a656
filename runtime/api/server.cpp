#include "runtime/api/connection.hpp"
#include "system/background_thread.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <charconv>
#include <list>
#include <thread>

namespace troupe::api {
namespace {

time_point system_now() { return std::chrono::floor<duration>(std::chrono::system_clock::now()); }

error listen_fault(const std::string& where, const boost::system::error_code& bad) {
  if (bad == net::error::address_in_use)
    return {errc::conflict,
            where + " is taken by another process; choose another port, or stop that process"};
  if (bad == net::error::access_denied)
    return {errc::denied, where + ": this user may not listen there; choose a port above 1023"};
  return {errc::invalid, "cannot listen on " + where + ": " + bad.message()};
}

result<tcp::endpoint> resolve(net::io_context& io, const std::string& host, std::uint16_t port) {
  if (host.empty())
    return tcp::endpoint{tcp::v4(), port};
  boost::system::error_code bad;
  auto address = net::ip::make_address(host, bad);
  if (!bad)
    return tcp::endpoint{address, port};
  auto found = tcp::resolver{io}.resolve(host, "", bad);
  if (bad || found.empty())
    return error{errc::invalid, "no address is known for the host '" + host + "'"};
  return tcp::endpoint{found.begin()->endpoint().address(), port};
}

} // namespace

result<listen_address> parse_listen(std::string_view text) {
  const error wrong{errc::invalid, "'" + std::string(text.substr(0, 100)) +
                                     "' is not an address to listen on; write HOST:PORT, as 127.0.0.1:8080"};
  auto colon = text.rfind(':');
  if (colon == text.npos || colon + 1 == text.size())
    return wrong;
  listen_address a;
  auto host = text.substr(0, colon), digits = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != host.npos)
    return wrong; // an IPv6 address needs its brackets
  auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), a.port);
  if (fault != std::errc{} || end != digits.data() + digits.size() || host.find_first_of(" /@") != host.npos)
    return wrong;
  a.host = host;
  return a;
}

std::string to_string(const listen_address& at) {
  const auto host = at.host.empty()                          ? "0.0.0.0"
                    : at.host.find(':') == std::string::npos ? at.host
                                                             : "[" + at.host + "]";
  return host + ":" + std::to_string(at.port);
}

bool is_loopback(const std::string& host) {
  net::io_context io;
  auto at = resolve(io, host, 0);
  return at && at->address().is_loopback();
}

// ---- alarm_clock

void alarm_clock::committed() {
  ++version_;
  if (waiting_ != 0 && !ringing_.exchange(true))
    net::post(core_.first(), [this] { ring(); });
}

void alarm_clock::ring() {
  ringing_ = false;
  std::lock_guard lock{mutex_};
  for (const auto& who : sleepers_)
    net::post(who->timer.get_executor(), [who] { who->timer.cancel(); });
}

bool alarm_clock::enter(const std::shared_ptr<sleeper>& who, std::uint64_t seen) {
  std::lock_guard lock{mutex_};
  sleepers_.insert(who);
  ++waiting_;
  if (version_ == seen)
    return true;
  sleepers_.erase(who);
  --waiting_;
  return false;
}

void alarm_clock::leave(const std::shared_ptr<sleeper>& who) {
  std::lock_guard lock{mutex_};
  if (sleepers_.erase(who) > 0)
    --waiting_;
}

net::thread_pool& server_core::slow_thread() {
  std::lock_guard lock{mutex};
  if (!slow)
    slow = std::make_unique<net::thread_pool>(1);
  return *slow;
}

void server_core::keep_watch() {
  if (watches.exchange(true))
    return;
  struct round {
    static void next(const std::shared_ptr<server_core>& core,
                     const std::shared_ptr<net::steady_timer>& timer, proxy::steady_time due) {
      timer->expires_at(std::min(due, std::chrono::steady_clock::now() + std::chrono::seconds{5}));
      timer->async_wait([weak = core->weak_from_this(), timer](const boost::system::error_code& bad) {
        const auto core = weak.lock();
        if (!core || bad)
          return;
        auto& table = *core->api.parts().proxy->junctions;
        const auto due = table.sweep(std::chrono::steady_clock::now());
        core->watches = table.busy();
        if (core->watches)
          next(core, timer, due);
      });
    }
  };
  round::next(shared_from_this(), std::make_shared<net::steady_timer>(first()), proxy::steady_time::max());
}

// ---- server

struct server::inside {
  /// A port that the server listens at.
  struct door {
    explicit door(net::io_context& io) : acceptor(io), pause(io) {}
    tcp::acceptor acceptor;
    net::steady_timer pause; ///< pauses accepting where the process has no free descriptors
    entrance leads = entrance::api;
    bool accepting = false; ///< guarded by core->mutex
    std::uint16_t port = 0;
  };
  std::shared_ptr<server_core> core;
  std::list<door> doors;
  std::size_t open = 0; ///< number of connections; guarded by core->mutex
  std::vector<std::thread> threads;
  bool stopped = false;

  result<void> listen(const listen_address& at, entrance leads);
  void accept(door& by);
  void accepted(door& by, loop& in, const boost::system::error_code& bad, tcp::socket socket);
  void closed(loop& in);
};

result<void> server::inside::listen(const listen_address& at, entrance leads) {
  const auto end = resolve(core->first(), at.host, at.port);
  if (!end)
    return end.error();
  auto& by = doors.emplace_back(core->first());
  by.leads = leads;
  boost::system::error_code bad;
  by.acceptor.open(end->protocol(), bad);
  if (!bad)
    by.acceptor.set_option(net::socket_base::reuse_address(true), bad);
  if (!bad)
    by.acceptor.bind(*end, bad);
  if (!bad)
    by.acceptor.listen(net::socket_base::max_listen_connections, bad);
  if (bad)
    return listen_fault(to_string(at), bad);
  by.port = by.acceptor.local_endpoint(bad).port();
  return {};
}

void server::inside::accept(door& by) {
  loop* in = nullptr;
  {
    std::lock_guard lock{core->mutex};
    if (by.accepting || core->stopping || open >= core->options.max_connections)
      return;
    by.accepting = true;
    in = &*std::min_element(core->loops.begin(), core->loops.end(),
                            [](const loop& a, const loop& b) { return a.open < b.open; });
  }
  by.acceptor.async_accept(in->io, [this, &by, in](const boost::system::error_code& bad, tcp::socket socket) {
    accepted(by, *in, bad, std::move(socket));
  });
}

void server::inside::accepted(door& by, loop& in, const boost::system::error_code& bad, tcp::socket socket) {
  {
    std::lock_guard lock{core->mutex};
    by.accepting = false;
    open += bad ? 0 : 1;
    in.open += bad ? 0 : 1;
  }
  if (core->stopping) {
    if (!bad)
      closed(in);
    return;
  }
  if (!bad) {
    serve(*core, std::move(socket), by.leads, [this, &in] { closed(in); });
    return accept(by);
  }
  // The process is out of descriptors or memory. Both become free when connections end, so try again after a
  // while.
  by.pause.expires_after(std::chrono::milliseconds{100});
  by.pause.async_wait([this, &by](const boost::system::error_code& canceled) {
    if (!canceled)
      accept(by);
  });
}

void server::inside::closed(loop& in) {
  {
    std::lock_guard lock{core->mutex};
    --open;
    --in.open;
    core->all_closed.notify_all();
    if (core->stopping)
      return;
  }
  for (auto& by : doors)
    net::post(by.acceptor.get_executor(), [this, &by] { accept(by); });
}

result<std::unique_ptr<server>> server::start(server_options how, gate& cluster,
                                              std::shared_ptr<storage::reader> storage,
                                              std::shared_ptr<accounts> users) {
  if (!how.now)
    how.now = system_now;
  auto x = std::make_unique<inside>();
  how.browsers.tls = how.tls.has_value();
  how.browsers.loopback = is_loopback(how.host);
  if (how.browsers.loopback)
    how.browsers.hosts.push_back(how.host);
  how.browsers.proxy_port = how.pages ? how.pages->port : 0;
  services parts{cluster, std::move(storage), std::move(users), how.about, how.now};
  parts.empty_journal = how.empty_journal;
  parts.browsers = how.browsers;
  parts.roles = how.roles;
  if (how.junctions)
    parts.proxy->junctions = how.junctions;
  parts.strict_queue = how.strict_queue;
  parts.tokens = how.tokens;
  x->core = std::make_shared<server_core>(how, std::move(parts));
  boost::system::error_code bad;
  if (how.tls) {
    auto& context = x->core->tls.emplace(net::ssl::context::tls_server);
    SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
    context.use_certificate_chain_file(how.tls->certificate.string(), bad);
    if (bad)
      return error{errc::invalid,
                   how.tls->certificate.string() + ": not a PEM certificate: " + bad.message()};
    context.use_private_key_file(how.tls->key.string(), net::ssl::context::pem, bad);
    if (bad)
      return error{errc::invalid,
                   how.tls->key.string() + ": not the key of the certificate: " + bad.message()};
  }
  if (auto ok = x->listen({how.host, how.port}, entrance::api); !ok)
    return ok.error();
  if (how.pages)
    if (auto ok = x->listen(*how.pages, entrance::pages); !ok)
      return ok.error();
  for (auto& by : x->doors)
    x->accept(by);
  for (auto& one : x->core->loops) {
    // Opens the loop's descriptors now, so that the number of open descriptors later depends only on
    // connections.
    net::steady_timer{one.io};
    x->threads.emplace_back([&one, work = net::make_work_guard(one.io)] {
      take_short_slices(); // a request is answered beside a removal, and not after its slice
      one.io.run();
    });
  }
  return std::unique_ptr<server>(new server(std::move(x)));
}

server::server(std::unique_ptr<inside> x) : inside_(std::move(x)) {}
server::~server() { stop(); }
std::uint16_t server::port() const { return inside_->doors.front().port; }
void server::committed(const storage::commit_summary&) { inside_->core->clock.committed(); }

void server::stop(std::chrono::milliseconds grace) {
  auto& x = *inside_;
  if (std::exchange(x.stopped, true))
    return;
  auto& core = *x.core;
  core.stopping = true;
  for (auto& by : x.doors)
    net::post(by.acceptor.get_executor(), [&by] {
      boost::system::error_code ignored;
      by.acceptor.close(ignored);
      by.pause.cancel();
    });
  core.clock.committed(); // streams see `stopping` and end
  std::unique_lock lock{core.mutex};
  for (const auto& one : core.connections)
    net::post(one->on, [one] {
      if (one->idle && one->idle())
        one->close();
    });
  core.all_closed.wait_for(lock, grace, [&] { return x.open == 0; });
  lock.unlock();
  for (auto& one : core.loops)
    one.io.stop();
  for (auto& thread : x.threads)
    thread.join();
  if (core.slow) {
    core.slow->stop();
    core.slow->join();
  }
}

} // namespace troupe::api
