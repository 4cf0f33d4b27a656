#include "workers/collectives/tcp.hpp"

#include "workers/collectives/operation_mark.hpp"
#include "workers/collectives/operation_queue.hpp"
#include "workers/collectives/reductions.hpp"
#include "workers/collectives/tcp_links.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace troupe {
namespace {

constexpr std::size_t small_bytes =
  32 * 1024; // bytes: up to this length every rank sends everything to all ranks, in one way instead of two
constexpr std::size_t part_bytes = 4 * 1024 * 1024; // of each rank, in one stretch
constexpr std::size_t step_bytes = 64 * 1024;       // reduced at a time, and sent while more comes
constexpr int spins = 50;                           // polls before it sleeps

struct wire_mark { // what goes before the data of an operation
  std::uint32_t number = 0;
  std::uint8_t what = 0, type = 0, how = 0, zero = 0;
  std::int32_t root = 0;
  std::uint32_t zero2 = 0;
  std::uint64_t bytes = 0, buffers = 0;
};
static_assert(sizeof(wire_mark) == 32);

wire_mark to_wire(const operation_mark& x, std::uint32_t number) {
  return {number,   std::uint8_t(x.what), std::uint8_t(x.type), std::uint8_t(x.how), 0, x.root, 0, x.bytes,
          x.buffers};
}
operation_mark from_wire(const wire_mark& x) {
  return {x.bytes, std::uint32_t(x.buffers), x.root, reduce(x.how), operation_kind(x.what), element(x.type)};
}

// One way of a connection during a stretch: memory that is sent or filled in this order.
struct stream {
  enum class role { plain, mark, gated, staged };
  struct piece {
    std::byte* at;
    std::size_t bytes;
    role what;
  };
  std::vector<piece> pieces;
  std::size_t next = 0, offset = 0;
  std::size_t gated = 0;  ///< bytes of gated pieces that were sent
  std::size_t staged = 0; ///< bytes of staged pieces that have arrived

  void clear() {
    pieces.clear();
    next = offset = gated = staged = 0;
  }
  void add(const std::byte* at, std::size_t bytes, role what = role::plain) {
    if (bytes > 0)
      pieces.push_back({const_cast<std::byte*>(at), bytes, what});
  }
  bool done() const { return next == pieces.size(); }

  // Takes up to 16 pieces, and of these at most `gate` gated bytes.
  std::size_t fill(iovec* to, std::size_t gate) const {
    std::size_t n = 0, from = offset, open = gate - std::min(gate, gated);
    for (std::size_t i = next; i < pieces.size() && n < 16; ++i, from = 0) {
      std::size_t bytes = pieces[i].bytes - from;
      if (pieces[i].what == role::gated) {
        bytes = std::min(bytes, open);
        open -= bytes;
        if (bytes == 0)
          break;
      }
      to[n++] = {pieces[i].at + from, bytes};
      if (bytes < pieces[i].bytes - from)
        break;
    }
    return n;
  }
  void advance(std::size_t bytes) {
    while (bytes > 0) {
      const piece& p = pieces[next];
      const std::size_t n = std::min(bytes, p.bytes - offset);
      (p.what == role::gated ? gated : staged) += p.what == role::gated || p.what == role::staged ? n : 0;
      bytes -= n;
      if (offset += n; offset == p.bytes) {
        ++next;
        offset = 0;
      }
    }
  }
};

// A large reduction goes in two ways. Each rank has a part of the elements: it gets this part from all other
// ranks, reduces it in order of rank, and sends the result to all while the rest still comes. Every byte
// crosses as often as in a ring, but in two steps, and every rank ends with the same bits.
class tcp final : public collective {
public:
  tcp(const tcp_group& group, std::unique_ptr<tcp_links> links)
      : group_(group), links_(std::move(links)), lanes_(std::size_t(group.size)),
        queue_({.execute = [this](const operation& x) { return execute(x); }}) {}

  int rank() const override { return group_.rank; }
  int size() const override { return group_.size; }
  const char* member() const override { return "tcp"; }
  void abort(const std::string& why) override { links_->break_group(errc::unreachable, why); }
  result<void> perform(const operation& x) override { return queue_.perform(x); }
  pending start(operation x) override { return queue_.start(std::move(x)); }

  result<std::unique_ptr<collective>> group(std::span<const int> ranks) override {
    const std::vector<int> list(ranks.begin(), ranks.end());
    const auto name = name_of_inner_group(group_.name, ranks, group_.rank, group_.size, groups_[list], "tcp");
    if (!name)
      return name.error();
    ++groups_[list];
    auto inner = group_;
    inner.name = *name;
    inner.rank = int(std::find(ranks.begin(), ranks.end(), group_.rank) - ranks.begin());
    inner.size = int(ranks.size());
    std::vector<tcp_place> places;
    for (const int r : ranks)
      places.push_back(links_->places()[std::size_t(r)]);
    auto links = tcp_links::join(inner, links_->door(), std::move(places));
    if (!links)
      return links.error();
    return std::unique_ptr<collective>(std::make_unique<tcp>(inner, std::move(*links)));
  }

private:
  struct lane {
    stream out, in;
    wire_mark mark; ///< the operation of the other rank
    std::vector<std::byte> staging;
  };

  result<void> execute(const operation& x);
  void plan(const operation& x, std::size_t from, std::size_t count);
  result<void> carry(const operation& x, const operation_mark& mark);
  result<bool> send_some(int rank);
  result<bool> read_some(int rank, const operation_mark& mine);
  void reduce_some(const operation& x);
  void reduce_range(const operation& x, std::size_t from, std::size_t upto);

  bool is_other(int r) const { return r != group_.rank; }
  lane& of(int r) { return lanes_[std::size_t(r)]; }

  tcp_group group_;
  std::unique_ptr<tcp_links> links_;
  std::vector<lane> lanes_;
  std::map<std::vector<int>, int> groups_;
  std::uint32_t number_ = 0; ///< number of the operation
  wire_mark mark_;           ///< this rank's operation, as it is sent

  // The running stretch.
  bool reduces_ = false;     ///< whether the staged bytes are reduced
  bool at_end_ = false;      ///< whether that waits until all bytes were sent and have arrived
  std::size_t own_from_ = 0; ///< the first element of this rank's share
  std::size_t own_count_ = 0;
  std::size_t reduced_ = 0;
  std::size_t gate_ = 0; ///< bytes of gated pieces that may be sent
  int feeds_gate_ = -1;  ///< the rank whose staged bytes may be passed on at once; -1: none
  std::vector<const std::byte*> sources_;
  std::vector<pollfd> polled_;
  operation_queue queue_; // the last member, because its thread uses those above
};

result<void> tcp::execute(const operation& x) {
  if (auto ok = links_->unbroken(); !ok)
    return ok;
  const auto mark = mark_of(x);
  const std::size_t total = elements_of(x), width = size_of(x.type);
  mark_ = to_wire(mark, number_++);
  const std::size_t most =
    std::max<std::size_t>(1, part_bytes / width) *
    (x.what == operation_kind::all_reduce || x.what == operation_kind::broadcast ? std::size_t(group_.size)
                                                                                 : 1);
  std::size_t from = 0;
  do {
    const std::size_t count = std::min(most, total - from);
    for (auto& l : lanes_) {
      l.out.clear();
      l.in.clear();
    }
    if (from == 0)
      for (int r = 0; r < group_.size; ++r)
        if (is_other(r)) {
          of(r).out.add(reinterpret_cast<const std::byte*>(&mark_), sizeof mark_);
          of(r).in.add(reinterpret_cast<const std::byte*>(&of(r).mark), sizeof(wire_mark),
                       stream::role::mark);
        }
    reduces_ = at_end_ = false;
    reduced_ = own_count_ = gate_ = 0;
    feeds_gate_ = -1;
    plan(x, from, count);
    if (auto ok = carry(x, mark); !ok)
      return ok.error().what.empty()
               ? ok
               : result<void>{error{ok.error().code, ok.error().what + ", during " + show(mark)}};
    from += count;
  } while (from < total);
  return {};
}

void tcp::plan(const operation& x, std::size_t from, std::size_t count) {
  const std::size_t width = size_of(x.type);
  const int me = group_.rank, all = group_.size;
  using role = stream::role;
  const auto add_in = [&](stream& to, std::size_t at, std::size_t n, role what = role::plain) {
    each_part(x, at, n, [&](const operation_buffer& b, std::size_t i, std::size_t k, std::size_t) {
      to.add(b.in + i * width, k * width, what);
    });
  };
  const auto add_out = [&](stream& to, std::size_t at, std::size_t n, role what = role::plain) {
    each_part(x, at, n, [&](const operation_buffer& b, std::size_t i, std::size_t k, std::size_t) {
      to.add(b.out + i * width, k * width, what);
    });
  };
  const auto stage = [&](int r, std::size_t n) {
    of(r).staging.resize(std::max(of(r).staging.size(), n * width));
    of(r).in.add(of(r).staging.data(), n * width, role::staged);
  };
  const auto part_from = [&](std::size_t i, std::size_t parts) { return from + count * i / parts; };

  switch (x.what) {
  case operation_kind::barrier:
    return;
  case operation_kind::all_reduce: {
    reduces_ = true;
    if (count * width * std::size_t(all - 1) <= small_bytes || all == 1) {
      at_end_ = true; // the other ranks' data is sent from where the result goes
      own_from_ = from;
      own_count_ = count;
      for (int r = 0; r < all; ++r)
        if (is_other(r)) {
          add_in(of(r).out, from, count);
          stage(r, count);
        }
      return;
    }
    const auto begin = [&](int r) { return part_from(std::size_t(r), std::size_t(all)); };
    own_from_ = begin(me);
    own_count_ = begin(me + 1) - own_from_;
    for (int r = 0; r < all; ++r)
      if (is_other(r)) {
        add_in(of(r).out, begin(r), begin(r + 1) - begin(r));
        add_out(of(r).out, own_from_, own_count_, role::gated);
        stage(r, own_count_);
        add_out(of(r).in, begin(r), begin(r + 1) - begin(r));
      }
    return;
  }
  case operation_kind::reduce_scatter: {
    reduces_ = true;
    own_from_ = from;
    own_count_ = count;
    for (int r = 0; r < all; ++r)
      if (is_other(r)) {
        of(r).out.add(x.first.in + (std::size_t(r) * x.first.count + from) * width, count * width);
        stage(r, count);
      }
    return;
  }
  case operation_kind::all_gather: {
    const std::byte* mine = x.first.in + from * width;
    const auto place = [&](int r) { return x.first.out + (std::size_t(r) * x.first.count + from) * width; };
    if (place(me) != mine && count > 0)
      std::memmove(place(me), mine, count * width);
    for (int r = 0; r < all; ++r)
      if (is_other(r)) {
        of(r).out.add(mine, count * width);
        of(r).in.add(place(r), count * width);
      }
    return;
  }
  case operation_kind::broadcast: {
    if (all <= 2 || count * width <= small_bytes) {
      for (int r = 0; r < all; ++r)
        if (is_other(r) && me == x.root)
          add_in(of(r).out, from, count);
      if (me != x.root)
        add_out(of(x.root).in, from, count);
      return;
    }
    // The root gives each rank a part, which that rank passes on to the others while it arrives.
    const auto index = [&](int r) { return std::size_t(r < x.root ? r : r - 1); };
    const auto begin = [&](std::size_t i) { return part_from(i, std::size_t(all - 1)); };
    const auto length = [&](int r) { return begin(index(r) + 1) - begin(index(r)); };
    if (me != x.root) {
      add_out(of(x.root).in, begin(index(me)), length(me), role::staged);
      feeds_gate_ = x.root;
    }
    for (int r = 0; r < all; ++r)
      if (is_other(r) && r != x.root) {
        if (me == x.root) {
          add_in(of(r).out, begin(index(r)), length(r));
        } else {
          add_out(of(r).out, begin(index(me)), length(me), role::gated);
          add_out(of(r).in, begin(index(r)), length(r));
        }
      }
    return;
  }
  }
}

result<void> tcp::carry(const operation& x, const operation_mark& mark) {
  for (int idle = 0;;) {
    bool moved = false, whole = true;
    for (int r = 0; r < group_.size; ++r) {
      if (!is_other(r))
        continue;
      if (!of(r).in.done()) {
        auto read = read_some(r, mark);
        if (!read)
          return read.error();
        moved |= *read;
      }
      if (!of(r).out.done()) {
        auto sent = send_some(r);
        if (!sent)
          return sent.error();
        moved |= *sent;
      }
      whole = whole && of(r).in.done() && of(r).out.done();
    }
    const std::size_t before = gate_;
    if (reduces_ && (!at_end_ || whole))
      reduce_some(x);
    if (feeds_gate_ >= 0)
      gate_ = of(feeds_gate_).in.staged;
    if (whole)
      return {};
    if (moved || gate_ != before) {
      idle = 0;
      continue;
    }
    if (++idle < spins)
      continue;
    polled_.assign(1, {links_->alarm(), POLLIN, 0});
    for (int r = 0; r < group_.size; ++r) {
      if (!is_other(r))
        continue;
      iovec ignored[16];
      const bool sends = !of(r).out.done() && of(r).out.fill(ignored, gate_) > 0;
      const short events = short((of(r).in.done() ? 0 : POLLIN) | (sends ? POLLOUT : 0));
      polled_.push_back({events != 0 ? links_->data(r) : -1, events, 0});
    }
    poll(polled_.data(), polled_.size(), 1000);
    if (auto ok = links_->unbroken(); !ok)
      return ok;
  }
}

result<bool> tcp::send_some(int r) {
  iovec parts[16];
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = of(r).out.fill(parts, gate_);
  if (message.msg_iovlen == 0)
    return false;
  const auto n = sendmsg(links_->data(r), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0)
    return errno == EAGAIN || errno == EINTR ? result<bool>(false) : result<bool>(links_->lost(r).error());
  of(r).out.advance(std::size_t(n));
  return true;
}

result<bool> tcp::read_some(int r, const operation_mark& mine) {
  iovec parts[16];
  msghdr message{};
  message.msg_iov = parts;
  const bool marked = of(r).in.next > 0 || of(r).in.pieces[0].what != stream::role::mark;
  message.msg_iovlen = marked ? of(r).in.fill(parts, 0) : 1;
  if (!marked) // the rank's data is taken once it is known to belong to the same operation
    parts[0] = {of(r).in.pieces[0].at + of(r).in.offset, of(r).in.pieces[0].bytes - of(r).in.offset};
  const auto n = recvmsg(links_->data(r), &message, MSG_DONTWAIT);
  if (n == 0)
    return links_->lost(r).error();
  if (n < 0)
    return errno == EAGAIN || errno == EINTR ? result<bool>(false) : result<bool>(links_->lost(r).error());
  of(r).in.advance(std::size_t(n));
  if (!marked && of(r).in.next > 0) {
    const auto theirs = from_wire(of(r).mark);
    if (theirs != mine || of(r).mark.number != mark_.number) {
      links_->break_group(errc::conflict, "rank " + std::to_string(r) + " called " + show(theirs) +
                                            " where rank " + std::to_string(group_.rank) + " called " +
                                            show(mine));
      return links_->unbroken().error();
    }
  }
  return true;
}

// Reduces what all ranks have sent for this rank's share.
void tcp::reduce_some(const operation& x) {
  const std::size_t width = size_of(x.type);
  std::size_t ready = own_count_;
  for (int r = 0; r < group_.size; ++r)
    if (is_other(r))
      ready = std::min(ready, of(r).in.staged / width);
  if (ready == reduced_ || (ready < own_count_ && (ready - reduced_) * width < step_bytes))
    return;
  reduce_range(x, reduced_, ready);
  reduced_ = ready;
  gate_ = reduced_ * width;
}

void tcp::reduce_range(const operation& x, std::size_t from, std::size_t upto) {
  const std::size_t width = size_of(x.type);
  const auto part = [&](const std::byte* mine, std::size_t staged, std::size_t n, std::byte* out) {
    sources_.clear();
    for (int r = 0; r < group_.size; ++r)
      sources_.push_back(is_other(r) ? of(r).staging.data() + staged * width : mine);
    reduce_elements(x.type, x.how, sources_, {&out, 1}, n);
  };
  if (x.what == operation_kind::reduce_scatter)
    return part(x.first.in + (std::size_t(group_.rank) * x.first.count + own_from_ + from) * width, from,
                upto - from, x.first.out + (own_from_ + from) * width);
  each_part(x, own_from_ + from, upto - from,
            [&](const operation_buffer& b, std::size_t at, std::size_t n, std::size_t done) {
              part(b.in + at * width, from + done, n, b.out + at * width);
            });
}

} // namespace

result<std::unique_ptr<collective>> join_tcp(const tcp_group& group) {
  auto links = tcp_links::meet(group);
  if (!links)
    return links.error();
  return std::unique_ptr<collective>(std::make_unique<tcp>(group, std::move(*links)));
}

} // namespace troupe
