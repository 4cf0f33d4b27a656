#include "workers/collectives/tcp_door.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <vector>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using workers::owned_fd;
using mac = std::array<unsigned char, 32>;

static_assert(std::endian::native == std::endian::little, "the handshake is sent as it lies in memory");

constexpr std::size_t most_newcomers = 256, most_waiting = 4096;

// The dialler sends hello, the door its answer, the dialler its proof.
struct hello {
  char magic[4] = {'T', 'R', 'P', 'C'};
  std::uint32_t version = 1;
  std::array<unsigned char, 32> nonce{};
  std::uint64_t group = 0;
  std::uint32_t rank = 0, channel = 0, port = 0, zero = 0;
};
static_assert(sizeof(hello) == 64);
struct answer {
  std::array<unsigned char, 32> nonce{};
  mac proof{};
};

error fault(const std::string& what) { return {errc::io, "collective tcp: " + what}; }
error failed_call(const std::string& what) { return fault(what + ": " + std::strerror(errno)); }

mac prove(const std::string& secret, const char* who, const hello& h,
          const std::array<unsigned char, 32>& nonce) {
  std::string text(who);
  text.append(reinterpret_cast<const char*>(&h), sizeof h);
  text.append(reinterpret_cast<const char*>(nonce.data()), nonce.size());
  mac out{};
  unsigned length = 0;
  HMAC(EVP_sha256(), secret.data(), int(secret.size()), reinterpret_cast<const unsigned char*>(text.data()),
       text.size(), out.data(), &length);
  return out;
}
bool same(const mac& a, const mac& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

std::string numeric(const sockaddr_storage& of, socklen_t length) {
  char text[NI_MAXHOST] = "";
  getnameinfo(reinterpret_cast<const sockaddr*>(&of), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

void be_quick(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int milliseconds_to(tcp_deadline until) {
  return int(std::clamp<std::int64_t>(
    std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()).count(), 0, 60'000));
}

result<void> wait_for(int fd, short what, tcp_deadline until) {
  pollfd one{fd, what, 0};
  const int ready = poll(&one, 1, milliseconds_to(until));
  return ready > 0 ? result<void>{} : fault("no answer in time");
}

template <class T>
result<void> send_whole(int fd, const T& x, tcp_deadline until) {
  const char* at = reinterpret_cast<const char*>(&x);
  for (std::size_t done = 0; done < sizeof x;) {
    const auto n = send(fd, at + done, sizeof x - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0)
      done += std::size_t(n);
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
      return failed_call("the connection broke");
    else if (auto ok = wait_for(fd, POLLOUT, until); !ok)
      return ok;
  }
  return {};
}

template <class T>
result<void> read_whole(int fd, T& x, tcp_deadline until) {
  char* at = reinterpret_cast<char*>(&x);
  for (std::size_t done = 0; done < sizeof x;) {
    const auto n = recv(fd, at + done, sizeof x - done, MSG_DONTWAIT);
    if (n == 0)
      return fault("the peer closed the connection: it is of another version of Troupe, or not a rank");
    if (n > 0)
      done += std::size_t(n);
    else if (errno != EAGAIN && errno != EINTR)
      return failed_call("the connection broke");
    else if (auto ok = wait_for(fd, POLLIN, until); !ok)
      return ok;
  }
  return {};
}

struct addresses {
  addrinfo* first = nullptr;
  ~addresses() {
    if (first)
      freeaddrinfo(first);
  }
};

} // namespace

std::uint64_t hash_of(const std::string& group) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char c : group)
    hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

struct tcp_door::newcomer {
  owned_fd fd;
  std::string address;
  tcp_deadline until;
  hello said;
  answer told;
  mac proof{};
  std::size_t got = 0; ///< bytes of hello, then of the proof
  bool answered = false;
};

result<std::unique_ptr<tcp_door>> tcp_door::open(const std::string& address, int port, std::string secret) {
  addrinfo wish{};
  wish.ai_flags = AI_NUMERICHOST | AI_PASSIVE;
  wish.ai_socktype = SOCK_STREAM;
  addresses found;
  const char* host = address.empty() ? "0.0.0.0" : address.c_str();
  if (const int why = getaddrinfo(host, std::to_string(port).c_str(), &wish, &found.first); why != 0)
    return fault("cannot listen on " + std::string(host) + ": " + gai_strerror(why));
  std::unique_ptr<tcp_door> door(new tcp_door);
  door->secret_ = std::move(secret);
  door->listener_ = owned_fd(socket(found.first->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  setsockopt(door->listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!door->listener_ || bind(door->listener_.get(), found.first->ai_addr, found.first->ai_addrlen) != 0 ||
      listen(door->listener_.get(), 1024) != 0) {
    if (errno == EADDRNOTAVAIL && !address.empty())
      return open("", port, std::move(door->secret_)); // the address lies beyond a translation
    return failed_call("cannot listen on " + std::string(host) + ":" + std::to_string(port));
  }
  sockaddr_storage at{};
  socklen_t length = sizeof at;
  getsockname(door->listener_.get(), reinterpret_cast<sockaddr*>(&at), &length);
  door->port_ = ntohs(at.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(at).sin6_port
                                               : reinterpret_cast<sockaddr_in&>(at).sin_port);
  door->stop_ = owned_fd(eventfd(0, EFD_CLOEXEC));
  if (!door->stop_)
    return failed_call("cannot make an event");
  door->thread_ = std::thread([d = door.get()] { d->serve(); });
  return door;
}

tcp_door::~tcp_door() {
  if (!thread_.joinable())
    return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = write(stop_.get(), &one, sizeof one);
  thread_.join();
}

std::optional<tcp_guest> tcp_door::take(std::uint64_t group, std::chrono::milliseconds at_most) {
  const auto until = clock::now() + at_most;
  std::unique_lock held(lock_);
  for (;;) {
    const auto it =
      std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& g) { return g.group == group; });
    if (it != waiting_.end()) {
      auto guest = std::move(*it);
      waiting_.erase(it);
      return guest;
    }
    if (come_.wait_until(held, until) == std::cv_status::timeout)
      return std::nullopt;
  }
}

void tcp_door::serve() {
  std::list<newcomer> newcomers;
  std::vector<pollfd> polled;
  for (;;) {
    polled.assign(
      {{stop_.get(), POLLIN, 0}, {newcomers.size() < most_newcomers ? listener_.get() : -1, POLLIN, 0}});
    for (auto& x : newcomers)
      polled.push_back({x.fd.get(), POLLIN, 0});
    poll(polled.data(), polled.size(), newcomers.empty() ? -1 : 1000);
    if (polled[0].revents != 0)
      return;
    std::size_t i = 2;
    for (auto it = newcomers.begin(); it != newcomers.end(); ++i)
      it = (polled[i].revents != 0 && !advance(*it)) || clock::now() > it->until ? newcomers.erase(it)
                                                                                 : std::next(it);
    if (polled[1].revents == 0)
      continue;
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    owned_fd fd(
      accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from), &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      auto& x = newcomers.emplace_back();
      x.fd = std::move(fd);
      x.address = numeric(from, length);
      x.until = clock::now() + 10s;
    } else if (errno == EMFILE || errno == ENFILE) {
      std::this_thread::sleep_for(50ms); // the listener stays readable: do not spin
    }
  }
}

bool tcp_door::advance(newcomer& x) {
  for (;;) {
    char* at = x.answered ? reinterpret_cast<char*>(&x.proof) : reinterpret_cast<char*>(&x.said);
    const std::size_t whole = x.answered ? sizeof x.proof : sizeof x.said;
    const auto n = recv(x.fd.get(), at + x.got, whole - x.got, MSG_DONTWAIT);
    if (n <= 0)
      return n < 0 && (errno == EAGAIN || errno == EINTR);
    if (x.got += std::size_t(n); x.got < whole)
      continue;
    x.got = 0;
    if (!x.answered) {
      const hello ours;
      if (std::memcmp(x.said.magic, ours.magic, sizeof ours.magic) != 0 || x.said.version != ours.version ||
          RAND_bytes(x.told.nonce.data(), int(x.told.nonce.size())) != 1)
        return false;
      x.told.proof = prove(secret_, "door", x.said, x.told.nonce);
      x.answered = true;
      if (send(x.fd.get(), &x.told, sizeof x.told, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof x.told)
        return false; // the first bytes of a connection always fit
      continue;
    }
    if (!same(x.proof, prove(secret_, "guest", x.said, x.told.nonce)))
      return false;
    be_quick(x.fd.get());
    std::lock_guard held(lock_);
    if (waiting_.size() >= most_waiting)
      waiting_.pop_front();
    waiting_.push_back({x.said.group, x.said.rank, tcp_channel(x.said.channel), x.said.port, std::move(x.fd),
                        std::move(x.address)});
    come_.notify_all();
    return false;
  }
}

result<owned_fd> dial_tcp(const std::string& host, int port, tcp_deadline until) {
  addrinfo wish{};
  wish.ai_socktype = SOCK_STREAM;
  addresses found;
  if (const int why = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wish, &found.first); why != 0)
    return fault("cannot find the host '" + host + "': " + gai_strerror(why));
  result<owned_fd> last = fault("'" + host + "' has no address");
  for (auto* a = found.first; a; a = a->ai_next) {
    owned_fd fd(socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    int why = 0;
    socklen_t length = sizeof why;
    if (!fd || (connect(fd.get(), a->ai_addr, a->ai_addrlen) != 0 && errno != EINPROGRESS)) {
      last = failed_call("connect");
    } else if (auto ok = wait_for(fd.get(), POLLOUT, until); !ok) {
      last = ok.error();
    } else if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &why, &length) != 0 || why != 0) {
      errno = why;
      last = failed_call("connect");
    } else {
      be_quick(fd.get());
      return fd;
    }
  }
  return last;
}

std::string local_address(int fd) {
  sockaddr_storage at{};
  socklen_t length = sizeof at;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&at), &length) == 0 ? numeric(at, length)
                                                                         : std::string();
}

result<void> greet(int fd, const std::string& secret, const tcp_guest& me, tcp_deadline until) {
  hello h;
  h.group = me.group;
  h.rank = me.rank;
  h.channel = std::uint32_t(me.channel);
  h.port = me.port;
  answer told;
  if (RAND_bytes(h.nonce.data(), int(h.nonce.size())) != 1)
    return fault("no random bytes");
  if (auto ok = send_whole(fd, h, until); !ok)
    return ok;
  if (auto ok = read_whole(fd, told, until); !ok)
    return ok;
  if (!same(told.proof, prove(secret, "door", h, told.nonce)))
    return error{errc::denied, "collective tcp: the listener there belongs to another run"};
  return send_whole(fd, prove(secret, "guest", h, told.nonce), until);
}

} // namespace troupe
