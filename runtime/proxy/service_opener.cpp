#include "runtime/proxy/service_opener.hpp"

#include "runtime/http/master_dial.hpp"

#include <boost/asio/local/stream_protocol.hpp>

#include <atomic>
#include <fcntl.h>
#include <linux/openat2.h>
#include <mutex>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace troupe::proxy {
namespace {

namespace net = http::net;
namespace beast = http::beast;
namespace wire = http::wire;
using http::error_code;
using http::into;
using http::milliseconds;
using http::task;

constexpr milliseconds connect_time{5'000};
/// Time in which a piece must be taken; it is long because the master ends idle connections.
constexpr milliseconds patience = std::chrono::hours{1};

using port_stream = beast::tcp_stream;
using socket_stream =
  beast::basic_stream<net::local::stream_protocol, net::any_io_executor, beast::unlimited_rate_policy>;

std::string escaped(const std::string& text) {
  constexpr const char* digits = "0123456789abcdef";
  std::string out;
  for (unsigned char c : text.substr(0, 300))
    if (std::isalnum(c) || c == '-' || c == '.' || c == '_')
      out += static_cast<char>(c);
    else
      out += std::string{'%', digits[c >> 4], digits[c & 15]};
  return out;
}

} // namespace

struct service_opener::inside {
  explicit inside(opener_options how_) : how(std::move(how_)) {}

  opener_options how;
  std::atomic<std::size_t> open{0};
  std::mutex mutex; ///< guards `thread`
  std::thread thread;
  http::trust_store trust;
  net::io_context io{1}; ///< last: what runs in it uses the other members while it ends

  void start() {
    std::lock_guard lock(mutex);
    if (!thread.joinable())
      thread = std::thread([this] {
        auto work = net::make_work_guard(io);
        io.run();
      });
  }

  task<void> serve(order x) {
    std::string fault;
    bool absent = false;
    port_stream by_port{io};
    socket_stream by_socket{io};
    const auto target = x.runs ? how.find(x.allocation, x.service)
                               : result<service_target>(error{errc::busy, "its task does not run"});
    if (!target) {
      fault = target.error().what;
      absent = target.error().code == errc::not_found;
    } else if (target->socket.empty()) {
      if (auto fine = how.own ? how.own(x.allocation, target->port) : result<void>(); !fine)
        fault = fine.error().what;
      else
        fault = co_await connect(by_port, target->port);
    } else {
      fault = co_await connect(by_socket, *target);
    }
    if (how.hand_over) {
      error_code bad;
      if (!fault.empty())
        how.hand_over(x.connection, x.secret,
                      error{absent ? errc::not_found : errc::busy, "the service does not answer: " + fault});
      else if (const int fd = target->socket.empty() ? by_port.release_socket().release(bad)
                                                     : by_socket.release_socket().release(bad);
               !bad)
        how.hand_over(x.connection, x.secret, workers::owned_fd{fd});
      co_return;
    }
    const auto where = how.master();
    http::master_connection master;
    if (!where || where->port == 0)
      co_return;
    const bool dialled = co_await master.dial(io, trust, *where, connect_time);
    if (!dialled)
      co_return;
    std::string path = "/troupe/v1/connections/" + x.connection;
    if (!fault.empty())
      path += std::string("?absent=") + (absent ? "true" : "false") + "&fault=" + escaped(fault);
    const bool by_tcp = target && target->socket.empty();
    if (master.plain && by_tcp)
      co_await bring(*master.plain, by_port, path, x.secret, master.host, !fault.empty());
    else if (master.plain)
      co_await bring(*master.plain, by_socket, path, x.secret, master.host, !fault.empty());
    else if (by_tcp)
      co_await bring(*master.tls, by_port, path, x.secret, master.host, !fault.empty());
    else
      co_await bring(*master.tls, by_socket, path, x.secret, master.host, !fault.empty());
    master.close();
  }

  /// Returns what prevented the connection; empty: it is connected.
  task<std::string> connect(port_stream& to, int port) {
    error_code bad;
    to.expires_after(connect_time);
    const net::ip::tcp::endpoint at{net::ip::address_v4::loopback(), static_cast<std::uint16_t>(port)};
    co_await to.async_connect(at, into(bad));
    if (bad)
      co_return "port " + std::to_string(port) + ": " + bad.message();
    to.socket().set_option(net::ip::tcp::no_delay(true), bad);
    to.expires_never();
    co_return std::string();
  }

  /// Connects to the task's Unix socket. No link is followed, because the folder is the task's, which may put
  /// links there. The address names the open file, because a path may be longer than an address has room for.
  task<std::string> connect(socket_stream& to, service_target at) {
    const int folder = ::open(at.folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    open_how how{};
    how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    const auto socket = static_cast<int>(::syscall(SYS_openat2, folder, at.socket.c_str(), &how, sizeof how));
    ::close(folder);
    struct stat about {};
    if (socket < 0 || ::fstat(socket, &about) != 0 || !S_ISSOCK(about.st_mode)) {
      ::close(socket);
      co_return "its socket is not there";
    }
    error_code bad;
    to.expires_after(connect_time);
    const net::local::stream_protocol::endpoint end{"/proc/self/fd/" + std::to_string(socket)};
    co_await to.async_connect(end, into(bad));
    ::close(socket);
    if (bad)
      co_return "its socket: " + bad.message();
    to.expires_never();
    co_return std::string();
  }

  template <class Master, class Service>
  task<void> bring(Master& master, Service& service, const std::string& path, const std::string& secret,
                   const std::string& host, bool fault) {
    error_code bad;
    wire::request<wire::empty_body> ask{wire::verb::get, path, 11};
    ask.set(wire::field::host, host);
    ask.set(wire::field::authorization, "Bearer " + secret);
    if (!fault) {
      ask.set(wire::field::connection, "Upgrade");
      ask.set(wire::field::upgrade, "troupe-connection");
    }
    auto& lowest = beast::get_lowest_layer(master);
    lowest.expires_after(connect_time);
    co_await wire::async_write(master, ask, into(bad));
    if (bad)
      co_return;
    beast::flat_buffer waiting, nothing;
    wire::response_parser<wire::empty_body> answer;
    answer.skip(true);
    co_await wire::async_read_header(master, waiting, answer, into(bad));
    if (bad || fault || answer.get().result() != wire::status::switching_protocols)
      co_return; // the secret is not valid, or no longer: nobody waits for the connection
    // Without this the master would read the death of this process as the end of the service.
    http::close_as_break(master, true);
    co_await http::join(master, waiting, service, nothing, patience);
    error_code ignored;
    service.socket().close(ignored);
  }
};

service_opener::service_opener(opener_options how) : inside_(std::make_unique<inside>(std::move(how))) {}

service_opener::~service_opener() {
  inside_->io.stop();
  if (inside_->thread.joinable())
    inside_->thread.join();
}

void service_opener::open(order x) {
  auto& in = *inside_;
  if (in.open >= in.how.most)
    return; // the master has the same limit, and gets no answer
  ++in.open;
  in.start();
  net::post(in.io, [&in, x = std::move(x)]() mutable {
    net::co_spawn(in.io, in.serve(std::move(x)), [&in](std::exception_ptr) { --in.open; });
  });
}

} // namespace troupe::proxy
