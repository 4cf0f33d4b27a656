#include "workers/collectives/tcp_links.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;
using workers::owned_fd;

constexpr int most_ranks = 1024;
constexpr std::size_t longest_frame = 256 * 1024; // bytes; holds the places of 1,024 ranks

error failed(errc code, const std::string& what) { return {code, "collective tcp: " + what}; }

void raise(const owned_fd& event) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = write(event.get(), &one, sizeof one);
}

bool is_numeric(const std::string& host) {
  addrinfo wish{}, *found = nullptr;
  wish.ai_flags = AI_NUMERICHOST;
  const bool yes = getaddrinfo(host.c_str(), nullptr, &wish, &found) == 0;
  if (yes)
    freeaddrinfo(found);
  return yes;
}

bool is_loopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

std::string text_of(const std::vector<tcp_place>& places) {
  std::string text;
  for (const auto& p : places)
    text += p.host + " " + std::to_string(p.port) + "\n";
  return text;
}

std::vector<tcp_place> places_in(std::string_view text) {
  std::vector<tcp_place> places;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    const auto space = std::min(line.find(' '), line.size());
    tcp_place p{std::string(line.substr(0, space)), 0};
    std::from_chars(line.data() + std::min(space + 1, line.size()), line.data() + line.size(), p.port);
    places.push_back(std::move(p));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return places;
}

} // namespace

tcp_links::tcp_links(const tcp_group& group)
    : group_(group), hash_(hash_of(group.name)), peers_(std::size_t(group.size)),
      alarm_(eventfd(0, EFD_CLOEXEC)), stop_(eventfd(0, EFD_CLOEXEC)),
      beat_every_(std::clamp<milliseconds>(milliseconds(group.size * 8), 100ms, 1000ms)) {}

tcp_links::~tcp_links() {
  for (int r = 0; r < group_.size; ++r)
    send_frame(r, frame::left, {});
  if (thread_.joinable()) {
    raise(stop_);
    thread_.join();
  }
}

std::string tcp_links::who(int rank) const {
  return "rank " + std::to_string(rank) + " of " + std::to_string(group_.size);
}

tcp_guest tcp_links::myself(tcp_channel which) const {
  return {hash_, std::uint32_t(group_.rank), which, std::uint32_t(door_ ? door_->port() : 0), {}, {}};
}

// ---- joining

result<std::unique_ptr<tcp_links>> tcp_links::meet(const tcp_group& group) {
  if (group.size < 1 || group.size > most_ranks || group.rank < 0 || group.rank >= group.size)
    return failed(errc::invalid, "rank " + std::to_string(group.rank) + " of " + std::to_string(group.size) +
                                   ": at most 1,024 ranks, counted from 0");
  if (group.name.empty() || group.secret.empty())
    return failed(errc::invalid, "a group needs a name and a secret");
  if (group.host.empty() || group.port < 1 || group.port > 65535)
    return failed(errc::invalid, "the meeting at '" + group.host + "', port " + std::to_string(group.port) +
                                   ": a host and a port from 1 to 65535 are needed");
  std::unique_ptr<tcp_links> links(new tcp_links(group));
  if (!links->alarm_ || !links->stop_)
    return failed(errc::io, std::string("cannot make an event: ") + std::strerror(errno));
  const auto until = clock::now() + group.join_within;
  auto met = group.rank == 0 ? links->gather(until) : links->report(until);
  if (met)
    met = links->connect_all(until);
  if (!met)
    return met.error();
  links->start();
  return links;
}

result<std::unique_ptr<tcp_links>> tcp_links::join(const tcp_group& group, std::shared_ptr<tcp_door> door,
                                                   std::vector<tcp_place> places) {
  std::unique_ptr<tcp_links> links(new tcp_links(group));
  links->door_ = std::move(door);
  links->places_ = std::move(places);
  if (auto ok = links->connect_all(clock::now() + group.join_within); !ok)
    return ok.error();
  links->start();
  return links;
}

// The other ranks come to rank 0, each with the port of its door.
result<void> tcp_links::gather(tcp_deadline until) {
  for (std::string last;;) { // the port may still belong to a run that is ending
    auto door = tcp_door::open(is_numeric(group_.host) ? group_.host : "", group_.port, group_.secret);
    if (door) {
      door_ = std::move(*door);
      break;
    }
    if (clock::now() > until)
      return failed(errc::io, "rank 0 cannot be met: " + door.error().what);
    std::this_thread::sleep_for(50ms);
  }
  places_.assign(peers_.size(), {group_.host, group_.port});
  for (int come = 1; come < group_.size; ++come)
    if (auto ok = take_next(until, false); !ok)
      return ok;
  const auto text = text_of(places_);
  for (int r = 1; r < group_.size; ++r)
    send_frame(r, frame::places, text);
  return {};
}

result<void> tcp_links::report(tcp_deadline until) {
  auto first = dial({group_.host, group_.port}, 0, tcp_channel::control, until);
  if (!first)
    return first.error();
  peers_[0].control = std::move(*first);
  while (places_.empty()) {
    pollfd one{peers_[0].control.get(), POLLIN, 0};
    poll(&one, 1, 100);
    listen_to_all();
    if (auto ok = unbroken(); !ok)
      return ok;
    if (clock::now() > until + 1s) // rank 0 says which ranks are missing
      return missing("did not say where the others are");
  }
  if (places_.size() != peers_.size())
    return failed(errc::invalid,
                  "the ranks of " + group_.name + " differ in their number or in the version of Troupe");
  return {};
}

// Of two ranks the higher one dials.
result<void> tcp_links::connect_all(tcp_deadline until) {
  for (int r = 0; r < group_.rank; ++r) {
    peer& p = peers_[std::size_t(r)];
    for (const auto which : {tcp_channel::control, tcp_channel::data}) {
      auto& fd = which == tcp_channel::data ? p.data : p.control;
      if (fd)
        continue;
      auto made = dial(places_[std::size_t(r)], r, which, until);
      if (!made)
        return made.error();
      fd = std::move(*made);
    }
  }
  const auto lacking = [&] {
    return std::any_of(peers_.begin() + group_.rank + 1, peers_.end(),
                       [](const peer& p) { return !p.control || !p.data; });
  };
  while (lacking())
    if (auto ok = take_next(until, true); !ok)
      return ok;
  return {};
}

result<workers::owned_fd> tcp_links::dial(const tcp_place& to, int rank, tcp_channel which,
                                          tcp_deadline until) {
  for (;;) {
    auto fd = dial_tcp(to.host, to.port, std::min(until, clock::now() + 5s));
    result<void> ok = fd ? result<void>{} : result<void>{fd.error()};
    if (fd && !door_) { // other ranks reach this rank on the path by which it reaches rank 0
      auto door = tcp_door::open(local_address(fd->get()), 0, group_.secret);
      if (!door)
        return door.error();
      door_ = std::move(*door);
    }
    if (ok)
      ok = greet(fd->get(), group_.secret, myself(which), std::min(until, clock::now() + 5s));
    if (ok)
      return std::move(*fd);
    listen_to_all();
    if (auto whole = unbroken(); !whole)
      return whole.error();
    if (clock::now() > until)
      return failed(errc::timeout, who(rank) + " was not met at " + to.host + ":" + std::to_string(to.port) +
                                     " within " + std::to_string(group_.join_within.count()) + " ms (" +
                                     ok.error().what + ")");
    std::this_thread::sleep_for(20ms); // the other side may not listen yet
  }
}

result<void> tcp_links::take_next(tcp_deadline until, bool with_data) {
  for (;;) {
    auto guest = door_->take(hash_, 100ms);
    if (guest && guest->rank < peers_.size() && int(guest->rank) > group_.rank) {
      peer& p = peers_[guest->rank];
      auto& fd = guest->channel == tcp_channel::data ? p.data : p.control;
      if (!fd && (with_data || guest->channel == tcp_channel::control)) {
        fd = std::move(guest->fd);
        if (group_.rank == 0 && guest->channel == tcp_channel::control)
          places_[guest->rank] = {is_loopback(guest->address) ? group_.host : guest->address,
                                  int(guest->port)};
        return {};
      }
      peer second; // a second connection of the same rank: it is refused, and the first one stays
      std::swap(second.control, guest->fd);
      std::swap(p.control, second.control);
      send_frame(int(guest->rank), frame::broken,
                 std::string(1, char(errc::conflict)) + who(int(guest->rank)) + " has joined already");
      std::swap(p.control, second.control);
    }
    listen_to_all();
    if (auto ok = unbroken(); !ok)
      return ok;
    if (clock::now() > until)
      return missing("did not join");
  }
}

result<void> tcp_links::missing(const std::string& what) {
  std::string ranks;
  for (int r = 0; r < group_.size; ++r)
    if (r != group_.rank && !peers_[std::size_t(r)].control)
      ranks += (ranks.empty() ? "" : ", ") + std::to_string(r);
  break_group(errc::timeout, "rank " + (ranks.empty() ? "0" : ranks) + " of " + std::to_string(group_.size) +
                               " " + what + " within " + std::to_string(group_.join_within.count()) + " ms");
  return unbroken();
}

// ---- while the group lives

void tcp_links::start() {
  thread_ = std::thread([this] { watch(); });
}

// Silence is counted in beats that this process has looked for: a process that was itself stopped blames no
// other rank.
void tcp_links::watch() {
  std::vector<pollfd> polled;
  auto next = clock::now();
  for (;;) {
    polled.assign(1, {stop_.get(), POLLIN, 0});
    for (auto& p : peers_)
      polled.push_back({p.gone ? -1 : p.control.get(), POLLIN, 0});
    const auto left = std::chrono::ceil<milliseconds>(next - clock::now()).count();
    poll(polled.data(), polled.size(), int(std::max<std::int64_t>(left, 0)));
    if (polled[0].revents != 0)
      return;
    for (int r = 0; r < group_.size; ++r)
      if (polled[std::size_t(r) + 1].revents != 0)
        hear(r);
    if (clock::now() < next)
      continue;
    next = clock::now() + beat_every_;
    for (int r = 0; r < group_.size; ++r) {
      peer& p = peers_[std::size_t(r)];
      if (!p.control || p.gone || p.left)
        continue;
      send_frame(r, frame::beat, {});
      if (++p.silent * beat_every_ > group_.silence)
        break_group(errc::unreachable,
                    who(r) + " has not answered for " + std::to_string(group_.silence.count()) + " ms");
    }
  }
}

void tcp_links::listen_to_all() {
  for (int r = 0; r < group_.size; ++r)
    if (peers_[std::size_t(r)].control && !peers_[std::size_t(r)].gone)
      hear(r);
}

void tcp_links::hear(int rank) {
  peer& p = peers_[std::size_t(rank)];
  char bytes[4096];
  for (;;) {
    const auto n = recv(p.control.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    if (n <= 0) {
      if (!p.left)
        break_group(errc::unreachable, who(rank) + " died");
      p.gone = true;
      return;
    }
    p.heard.append(bytes, std::size_t(n));
    std::uint32_t head[2];
    while (p.heard.size() >= sizeof head) {
      std::memcpy(head, p.heard.data(), sizeof head);
      if (head[1] > longest_frame) {
        break_group(errc::unreachable, who(rank) + " sent no frame of Troupe's");
        p.gone = true;
        return;
      }
      if (p.heard.size() < sizeof head + head[1])
        break;
      take_frame(rank, frame(head[0]), std::string_view(p.heard).substr(sizeof head, head[1]));
      p.heard.erase(0, sizeof head + head[1]);
    }
  }
}

void tcp_links::take_frame(int rank, frame kind, std::string_view body) {
  peer& p = peers_[std::size_t(rank)];
  p.silent = 0;
  switch (kind) {
  case frame::beat:
    return;
  case frame::left:
    p.left = true;
    return;
  case frame::places:
    if (places_.empty())
      places_ = places_in(body);
    return;
  case frame::broken:
    if (!body.empty())
      break_group(errc(static_cast<unsigned char>(body[0])), std::string(body.substr(1)));
    return;
  }
}

// A frame that does not fit is for a rank that has read nothing for long; that rank will count as silent.
void tcp_links::send_frame(int rank, frame kind, std::string_view body) {
  peer& p = peers_[std::size_t(rank)];
  if (!p.control || p.gone)
    return;
  const std::uint32_t head[2] = {std::uint32_t(kind), std::uint32_t(body.size())};
  std::string text(reinterpret_cast<const char*>(head), sizeof head);
  text += body;
  std::lock_guard held(lock_);
  for (std::string_view rest = text; !rest.empty();) {
    const auto n = send(p.control.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0)
      rest.remove_prefix(std::size_t(n));
    pollfd one{p.control.get(), POLLOUT, 0};
    if (n < 0 && (errno != EAGAIN || kind != frame::places ||
                  poll(&one, 1, 5000) <= 0)) // only that frame is longer than a buffer
      return;
  }
}

void tcp_links::break_group(errc code, const std::string& why) {
  {
    std::lock_guard held(lock_);
    if (broken_)
      return;
    code_ = code;
    why_ = why;
    broken_ = true;
  }
  for (int r = 0; r < group_.size; ++r)
    send_frame(r, frame::broken, std::string(1, char(code)) + why.substr(0, 4000));
  raise(alarm_);
}

result<void> tcp_links::unbroken() const {
  if (!broken_)
    return {};
  std::lock_guard held(lock_);
  return failed(code_, group_.name + ": " + why_);
}

result<void> tcp_links::lost(int rank) {
  peer& p = peers_[std::size_t(rank)];
  for (const auto until = clock::now() + 1s;
       !broken_ && !p.left && clock::now() < until;) // the other connection says why
    std::this_thread::sleep_for(2ms);
  break_group(errc::unreachable, who(rank) + (p.left ? " left the group" : " died"));
  return unbroken();
}

} // namespace troupe
