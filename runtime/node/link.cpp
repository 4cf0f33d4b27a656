#include "runtime/node/link.hpp"

#include "runtime/api/server.hpp"
#include "runtime/client/http.hpp"
#include "system/random.hpp"
#include "system/whole_file.hpp"
#include "workers/owned_fd.hpp"

#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/openssl/all.hpp>

#include <arpa/inet.h>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <fcntl.h>
#include <fstream>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <random>
#include <sys/socket.h>
#include <thread>

namespace troupe::node {
namespace {

namespace fs = std::filesystem;
constexpr auto dial_limit = std::chrono::seconds(5);

/// CAF 0.17 derives node ids from the host and the pid, which may be equal in two containers; our ids are
/// random.
class random_node_id final : public caf::actor_system::module {
public:
  explicit random_node_id(caf::actor_system& sys) : sys_(sys) {}
  static caf::actor_system::module* make(caf::actor_system& sys, caf::detail::type_list<>) {
    return new random_node_id(sys);
  }
  void init(caf::actor_system_config&) override {
    caf::node_id::default_data::host_id_type host;
    std::uint32_t process = 0;
    const auto bytes = random_bytes(host.size() + sizeof process);
    std::copy_n(bytes.begin(), host.size(), host.begin());
    std::memcpy(&process, bytes.data() + host.size(), sizeof process);
    auto id = caf::make_node_id(process | 1u, host);
    // Allowed, because the node id is a member of an object that is not const.
    const_cast<caf::node_id&>(sys_.node()).swap(id);
  }
  void start() override {}
  void stop() override {}
  id_t id() const override { return network_manager; } // CAF 0.17 does not use this slot
  void* subtype_ptr() override { return this; }

private:
  caf::actor_system& sys_;
};

/// Returns a connected, blocking socket, or errc::unreachable. CAF's own connect would block all its other
/// connections.
result<int> tcp_dial(const std::string& host, std::uint16_t port, std::chrono::milliseconds limit) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  auto where = host + ":" + std::to_string(port);
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    return error{errc::unreachable, "cannot resolve " + where};
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> guard{found, ::freeaddrinfo};
  auto end = std::chrono::steady_clock::now() + limit;
  for (auto* a = found; a; a = a->ai_next) {
    workers::owned_fd fd{::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (fd.get() < 0)
      continue;
    int outcome = ::connect(fd.get(), a->ai_addr, a->ai_addrlen);
    if (outcome != 0 && errno == EINPROGRESS) {
      pollfd waiting{fd.get(), POLLOUT, 0};
      auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
      if (::poll(&waiting, 1, left > 0 ? static_cast<int>(left) : 0) == 1) {
        socklen_t size = sizeof outcome;
        ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &outcome, &size);
      }
    }
    if (outcome != 0)
      continue;
    int silence_ms = 15'000;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &silence_ms, sizeof silence_ms);
    ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
    return fd.release();
  }
  return error{errc::unreachable, "nothing answers at " + where};
}

caf::expected<caf::actor> dial_plain(caf::actor_system& sys, const std::string& host, std::uint16_t port) {
  auto fd = tcp_dial(host, port, dial_limit);
  if (!fd)
    return to_caf(fd.error());
  auto& network = sys.middleman();
  auto broker = network.named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  caf::io::scribe_ptr scribe = network.backend().new_scribe(*fd);
  caf::scoped_actor self{sys, true};
  caf::expected<caf::actor> out{caf::sec::cannot_connect_to_node};
  self->request(broker, dial_limit, caf::connect_atom_v, std::move(scribe), port)
    .receive(
      [&](caf::node_id&, caf::strong_actor_ptr& peer, std::set<std::string>& interface) {
        if (!peer)
          out = caf::make_error(caf::sec::no_actor_published_at_port, port);
        else if (!sys.assignable(interface, sys.message_types(caf::detail::type_list<cluster_actor>{})))
          out = to_caf({errc::unsupported, "the master is of another version"});
        else
          out = caf::actor_cast<caf::actor>(peer);
      },
      [&](caf::error& why) { out = std::move(why); });
  return out;
}

caf::expected<caf::actor> dial_tls(caf::actor_system& sys, const std::string& host, std::uint16_t port) {
  if (auto probe = tcp_dial(host, port, dial_limit)) // otherwise CAF would block for minutes
    ::close(*probe);
  else
    return to_caf(probe.error());
  auto remote = caf::openssl::remote_actor<cluster_actor>(sys, host, port);
  if (!remote)
    return remote.error();
  return caf::actor_cast<caf::actor>(*remote);
}

} // namespace

link_config::link_config(const fs::path& tls_dir, bool master, bool link) : tls_dir_(tls_dir) {
  load<random_node_id>();
  if (!link)
    return;
  load<caf::io::middleman>();
  set("middleman.app-identifiers", std::vector<std::string>{"troupe-" + std::to_string(link_protocol)});
  // With each heartbeat, CAF 0.17 checks whether a connection is silent, and it takes a connection that was
  // just made for silent since ever. A handshake during such a check fails and is tried again.
  set("middleman.heartbeat-interval", caf::timespan{std::chrono::seconds(3)});
  set("middleman.connection-timeout", caf::timespan{std::chrono::seconds(10)});
  set("middleman.workers", std::size_t{0});
  if (tls_dir.empty())
    return;
  load<caf::openssl::manager>();
  auto own = master ? "master" : "agent";
  openssl_certificate = (tls_dir / (std::string(own) + ".pem")).string();
  openssl_key = (tls_dir / (std::string(own) + ".key")).string();
  openssl_cafile = (tls_dir / "ca.pem").string();
}

result<void> link_config::check() const {
  if (tls_dir_.empty())
    return {};
  for (const auto& file : {openssl_certificate, openssl_key, openssl_cafile})
    if (!fs::exists(file))
      return error{errc::invalid, "the TLS folder '" + tls_dir_.string() + "' lacks " +
                                    fs::path(file).filename().string() + "\nhint: troupe tls init --dir " +
                                    tls_dir_.string()};
  return {};
}

result<std::uint16_t> publish(caf::actor_system& sys, const cluster_actor& cluster, const std::string& host,
                              std::uint16_t port, const fs::path& tls_dir) {
  auto address = host.empty() || host == "0.0.0.0" ? nullptr : host.c_str();
  // Needs SO_REUSEADDR: otherwise the connections of a master that was killed would hold the port for a
  // minute.
  auto got = tls_dir.empty() ? sys.middleman().publish(cluster, port, address, true)
                             : caf::openssl::publish(cluster, port, address, true);
  if (!got)
    return error{errc::conflict, "the address of the node link, " + host + ":" + std::to_string(port) +
                                   ", cannot be used: " + sys.render(got.error()) +
                                   "\nhint: choose another one with --agent-listen HOST:PORT"};
  return *got;
}

void unpublish(caf::actor_system& sys, std::uint16_t port) { sys.middleman().close(port); }

result<std::string> read_join_token(const fs::path& tls_dir) {
  if (tls_dir.empty())
    return std::string();
  std::ifstream in(tls_dir / "join-token");
  std::string token;
  if (!std::getline(in, token) || token.empty())
    return error{errc::invalid, "the TLS folder '" + tls_dir.string() +
                                  "' lacks join-token\nhint: troupe tls init --dir " + tls_dir.string()};
  return token;
}

struct master_link::inside {
  caf::actor_system& sys;
  std::string host;
  std::uint16_t port = 0;
  fs::path tls_dir;
  std::string token;
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<agent_actor> waiting;
  bool stopping = false;
  std::thread thread;

  inside(caf::actor_system& system, std::string name, std::uint16_t at, fs::path dir, std::string secret)
      : sys(system), host(std::move(name)), port(at), tls_dir(std::move(dir)), token(std::move(secret)) {}

  std::atomic<std::uint16_t> http_port{0}; ///< 0: not known yet
  bool said = false, linked = false;       ///< only the dialling thread uses these
  int refusals = 0;
  std::optional<error> refusal; ///< guarded by the mutex

  std::string url(std::uint16_t to) const {
    auto name = host.find(':') == std::string::npos ? host : "[" + host + "]";
    return (tls_dir.empty() ? "http://" : "https://") + name + ":" + std::to_string(to);
  }
  client::http make_http() const {
    client::transport_options how;
    if (!tls_dir.empty())
      how.ca_file = (tls_dir / "ca.pem").string();
    how.connect_timeout = dial_limit;
    return client::http{how};
  }

  std::string address() const { return host + ":" + std::to_string(port); }

  /// Returns the link's port, as the master's HTTP port tells it, or the given port itself if that does not
  /// speak HTTP. Only errc::unreachable may go away without a change.
  result<std::uint16_t> link_port() {
    auto http = make_http();
    client::request ask;
    ask.url = url(port) + "/troupe/v1/link";
    ask.timeout = dial_limit;
    auto got = http.send(ask);
    if (got)
      return read_link(*got);
    switch (http.last_fault()) {
    case client::transport_fault::no_trust:
      return error{
        errc::denied,
        "the master at " + address() + " shows a certificate that '" + (tls_dir / "ca.pem").string() +
          "' does not vouch for: " + first_line(got.error().what) +
          "\nhint: take ca.pem, agent.pem, agent.key and join-token from the master's own `troupe tls"
          " init`, and dial it by a name given there with --host; where the master shows a certificate of"
          " another authority (cluster.tls.cert), add that authority's to ca.pem"};
    case client::transport_fault::no_tls:
      return error{errc::denied, "what listens at " + address() +
                                   " speaks no TLS\nhint: for a plain master leave --tls-dir out"};
    case client::transport_fault::no_http:
      if (tls_dir.empty() && speaks_tls(ask))
        return error{errc::denied, "the master at " + address() +
                                     " needs TLS\nhint: --tls-dir DIR, with ca.pem, agent.pem,"
                                     " agent.key and join-token of its `troupe tls init`"};
      return port;
    default:
      return error{errc::unreachable, first_line(got.error().what)};
    }
  }

  static std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

  /// The system trusts no cluster's CA, so that a server with TLS shows itself when its certificate is
  /// refused.
  bool speaks_tls(client::request ask) const {
    client::http http;
    ask.url.replace(0, 4, "https");
    return http.send(ask) || http.last_fault() == client::transport_fault::no_trust;
  }

  result<std::uint16_t> read_link(const client::reply& got) {
    auto body = parse_json(got.body);
    if (got.status >= 500)
      return error{errc::unreachable, "it answers " + std::to_string(got.status)};
    if (got.status != 200 || !body || !body->is_object() ||
        !body->value("protocol", value()).is_number_unsigned())
      return error{errc::unsupported, "what listens at " + address() +
                                        " is not a master of Troupe\nhint: --master HOST:PORT as"
                                        " `troupe master` was given with --listen"};
    if (auto theirs = body->value("protocol", 0u); theirs != link_protocol)
      return error{errc::unsupported, "the master speaks link protocol " + std::to_string(theirs) +
                                        ", this agent " + std::to_string(link_protocol) +
                                        "\nhint: install the same version on both"};
    if (body->value("tls", false) != !tls_dir.empty())
      return error{errc::denied, tls_dir.empty() ? "the master's link needs TLS\nhint: --tls-dir DIR"
                                                 : "the master's link is plain; leave --tls-dir out"};
    http_port = port;
    return static_cast<std::uint16_t>(body->value("port", 0));
  }

  /// A refusal that another try would not change.
  master_found refused(error why) {
    master_found answer;
    answer.why = why.what;
    answer.final = true;
    std::lock_guard lock(mutex);
    refusal = std::move(why);
    return answer;
  }

  master_found find() {
    master_found answer;
    auto link = link_port();
    if (!link) {
      answer.why = link.error().what;
      return link.error().code == errc::unreachable ? answer : refused(link.error());
    }
    auto dialled = tls_dir.empty() ? dial_plain(sys, host, *link) : dial_tls(sys, host, *link);
    if (dialled) {
      answer.cluster = std::move(*dialled);
      linked = true;
      return answer;
    }
    auto why = from_caf(dialled.error());
    if (why.code == errc::unsupported)
      return refused({why.code, why.what + "\nhint: install the same version on both"});
    // A master that ends closes the connection as well, so that only the third refusal counts.
    if (why.code != errc::unreachable && !linked && ++refusals == 3)
      return refused(
        {tls_dir.empty() ? errc::unsupported : errc::denied,
         "what listens at " + host + ":" + std::to_string(*link) +
           " takes no agent: " + first_line(why.what) + "\nhint: " +
           (tls_dir.empty() ? "--master HOST:PORT as `troupe master` was given with --listen"
                            : "the files in --tls-dir have to be of the master's own `troupe tls init`")});
    answer.why = why.what;
    return answer;
  }

  void loop() {
    for (;;) {
      agent_actor who;
      {
        std::unique_lock lock(mutex);
        wake.wait(lock, [this] { return stopping || !waiting.empty(); });
        if (stopping)
          return;
        who = std::move(waiting.front());
        waiting.pop_front();
      }
      auto answer = find();
      if (answer.cluster)
        said = false;
      else if (!answer.final && !std::exchange(said, true))
        std::fprintf(stderr, "the master at %s cannot be reached yet (%s); trying until it can\n",
                     address().c_str(), first_line(answer.why).c_str());
      caf::anon_send(who, std::move(answer));
    }
  }
};

result<std::shared_ptr<master_link>> master_link::to(caf::actor_system& sys, const std::string& address,
                                                     const fs::path& tls_dir, const std::string& join_token) {
  auto where = api::parse_listen(address);
  if (!where || where->host.empty() || where->port == 0)
    return error{
      errc::invalid,
      "--master '" + address +
        "' is not an address: " + (where ? "the host or the port is missing" : where.error().what) +
        "\nhint: troupe agent --master HOST:PORT, with the port of its HTTP server or of its node link"};
  auto token = join_token.empty() ? read_join_token(tls_dir) : result<std::string>{join_token};
  if (!token)
    return token.error();
  auto out = std::make_shared<master_link>();
  out->inside_ = std::make_unique<inside>(sys, where->host, where->port, tls_dir, *token);
  out->join_token_ = *token;
  out->inside_->thread = std::thread([in = out->inside_.get()] { in->loop(); });
  return out;
}

master_link::master_link() = default;
master_link::~master_link() { stop(); }

void master_link::dial(const agent_actor& who) {
  std::lock_guard lock(inside_->mutex);
  if (inside_->waiting.empty())
    inside_->waiting.push_back(who);
  inside_->wake.notify_one();
}

result<std::string> master_link::fetch(const std::string& blob) const {
  auto http = inside_->make_http();
  client::request ask;
  const std::uint16_t from = inside_->http_port;
  ask.url = inside_->url(from ? from : inside_->port) + "/troupe/v1/blobs/" + blob;
  ask.headers.push_back("Authorization: Bearer " + inside_->token);
  ask.timeout = std::chrono::minutes(10);
  auto got = http.send(ask);
  if (!got)
    return got.error();
  if (got->status != 200)
    return error{errc::unreachable,
                 "the master answered " + std::to_string(got->status) + " for blob " + blob};
  return std::move(got->body);
}

std::optional<error> master_link::refusal() const {
  std::lock_guard lock(inside_->mutex);
  return inside_->refusal;
}

void master_link::learn_http_port(std::uint16_t port) {
  if (port)
    inside_->http_port = port;
}

workers::fence_spec master_link::fence() const {
  const auto& in = *inside_;
  const std::uint16_t port = in.http_port;
  workers::fence_spec at;
  if (port && !in.tls_dir.empty()) {
    std::error_code bad;
    auto ca = read_whole(in.tls_dir / "ca.pem");
    at.program = fs::read_symlink("/proc/self/exe", bad).string();
    if (bad || !ca || !*ca)
      return {};
    at.address = in.url(port);
    at.ca = std::move(**ca);
    return at;
  }
  if (!port || !api::is_loopback(in.host))
    return {};
  auto address = in.host.find(':') == std::string::npos ? std::string("127.0.0.1") : "[" + in.host + "]";
  in6_addr ignored;
  if (::inet_pton(AF_INET, in.host.c_str(), &ignored) == 1)
    address = in.host;
  at.address = address + ":" + std::to_string(port);
  return at;
}

std::optional<forward::master_address> master_link::http_address() const {
  const auto& in = *inside_;
  const std::uint16_t port = in.http_port;
  if (!port)
    return {};
  return forward::master_address{in.host, port, in.tls_dir.empty() ? fs::path() : in.tls_dir / "ca.pem"};
}

void master_link::stop() {
  if (!inside_ || !inside_->thread.joinable())
    return;
  {
    std::lock_guard lock(inside_->mutex);
    inside_->stopping = true;
    inside_->wake.notify_all();
  }
  inside_->thread.join();
}

} // namespace troupe::node
