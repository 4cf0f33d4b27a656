#include "workers/collectives/shm.hpp"

#include "workers/collectives/operation_mark.hpp"
#include "workers/collectives/operation_queue.hpp"
#include "workers/collectives/reductions.hpp"
#include "workers/collectives/shared_copy.hpp"
#include "workers/collectives/shm_segment.hpp"

#include <algorithm>
#include <cstring>
#include <map>

namespace troupe {
namespace {

// Every operation moves in chunks, numbered through the life of the group: a rank writes what others want of
// its chunk into its slot, publishes it, and reads theirs. It writes some chunks ahead, so that few of them
// wait for a process that the system has put aside. The slot that it writes next was read by all: before
// chunk m it has waited for m - ahead - 1 of all, and who has published that one has read m - 2 * ahead - 2.
class shm final : public collective {
public:
  shm(const shm_group& group, std::unique_ptr<shm_segment> segment)
      : group_(group), segment_(std::move(segment)),
        queue_({.execute = [this](const operation& x) { return execute(x); },
                .begin = [this] { segment_->enter(); },
                .tick = [this] { segment_->beat(); },
                .end = [this] { segment_->leave(); }}) {}

  result<void> wait_for_all() { return segment_->wait_for_all(); }

  int rank() const override { return group_.rank; }
  int size() const override { return group_.size; }
  const char* member() const override { return "shm"; }
  void abort(const std::string& why) override { segment_->break_group(errc::unreachable, why); }
  result<void> perform(const operation& x) override { return queue_.perform(x); }
  pending start(operation x) override { return queue_.start(std::move(x)); }

  result<std::unique_ptr<collective>> group(std::span<const int> ranks) override {
    const std::vector<int> list(ranks.begin(), ranks.end());
    const auto name = name_of_inner_group(group_.name, ranks, group_.rank, group_.size, groups_[list], "shm");
    if (!name)
      return name.error();
    ++groups_[list];
    auto inner = group_;
    inner.name = *name;
    inner.rank = int(std::find(ranks.begin(), ranks.end(), group_.rank) - ranks.begin());
    inner.size = int(ranks.size());
    return join_shm(inner);
  }

private:
  result<void> execute(const operation& x);
  void write(const operation& x, std::size_t from, std::size_t count, std::byte* slot, bool past_caches) const;
  void read(const operation& x, std::size_t from, std::size_t count, std::uint32_t chunk);
  result<void> compare_marks(const operation_mark& mine);

  shm_group group_;
  std::unique_ptr<shm_segment> segment_;
  std::uint32_t next_chunk_ = 0;
  std::uint32_t number_ = 0; // of the operation
  copy_choice copies_;
  std::vector<const std::byte*> sources_; // of the reduction under way, in order of rank
  std::map<std::vector<int>, int> groups_;
  operation_queue queue_; // last: its thread uses what stands above
};

result<void> shm::execute(const operation& x) {
  if (auto ok = segment_->unbroken(); !ok)
    return ok;
  const std::uint32_t base = next_chunk_;
  const auto mark = mark_of(x);
  const std::size_t total = elements_of(x);
  const std::size_t shares = x.what == operation_kind::reduce_scatter ? std::size_t(group_.size) : 1;
  const std::size_t room = std::max<std::size_t>(1, group_.chunk_bytes / size_of(x.type) / shares);
  const std::size_t chunks = std::max<std::size_t>(1, (total + room - 1) / room);
  const auto count_of = [&](std::size_t k) { return std::min(room, total - k * room); };
  const auto time_of = [&](std::uint32_t chunk, auto work) {
    if (!copies_.timed(chunk)) {
      work();
      return copy_choice::duration{};
    }
    const auto from = std::chrono::steady_clock::now();
    work();
    return std::chrono::steady_clock::now() - from;
  };
  const auto offer = [&](std::size_t k) {
    const auto chunk = base + std::uint32_t(k);
    const bool past_caches = copies_.past_caches(chunk, count_of(k) * shares * size_of(x.type));
    copies_.wrote(chunk, time_of(chunk, [&] { write(x, k * room, count_of(k), segment_->slot(group_.rank, chunk), past_caches); }));
    if (k == 0)
      segment_->mark(group_.rank, number_) = mark;
    segment_->publish(chunk + 1);
  };

  std::size_t offered = 0;
  for (std::size_t k = 0; k < chunks; ++k) {
    const auto chunk = base + std::uint32_t(k);
    for (; offered < std::min(chunks, k + 1 + shm_segment::ahead); ++offered)
      offer(offered);
    for (int r = 0; r < group_.size; ++r)
      if (r != group_.rank)
        if (auto ok = segment_->wait_for(r, chunk + 1); !ok)
          return error{ok.error().code, ok.error().what + ", during " + show(mark)};
    if (k == 0)
      if (auto ok = compare_marks(mark); !ok)
        return ok;
    copies_.read(chunk, time_of(chunk, [&] { read(x, k * room, count_of(k), chunk); }));
  }
  ++number_;
  next_chunk_ = base + std::uint32_t(chunks);
  take_early(segment_->slot(group_.rank, next_chunk_), std::min(total * size_of(x.type), shm_segment::taken_early));
  return {};
}

void shm::write(const operation& x, std::size_t from, std::size_t count, std::byte* slot, bool past_caches) const {
  const std::size_t width = size_of(x.type);
  const auto copy = [&](std::size_t to, const std::byte* mine, std::size_t bytes) {
    if (past_caches)
      copy_past_caches(slot + to, mine, bytes);
    else
      std::memcpy(slot + to, mine, bytes);
  };
  switch (x.what) {
  case operation_kind::barrier:
    return;
  case operation_kind::broadcast:
    if (x.root != group_.rank)
      return;
    [[fallthrough]];
  case operation_kind::all_reduce:
  case operation_kind::all_gather:
    each_part(x, from, count,
              [&](const operation_buffer& b, std::size_t at, std::size_t n, std::size_t done) {
                copy(done * width, b.in + at * width, n * width);
              });
    return;
  case operation_kind::reduce_scatter:
    for (int r = 0; r < group_.size && count > 0; ++r)
      if (r != group_.rank)
        copy(std::size_t(r) * count * width, x.first.in + (std::size_t(r) * x.first.count + from) * width, count * width);
    return;
  }
}

void shm::read(const operation& x, std::size_t from, std::size_t count, std::uint32_t chunk) {
  const std::size_t width = size_of(x.type);
  const auto reduce_from = [&](const std::byte* mine, std::size_t offset, std::size_t n, std::byte* out) {
    sources_.clear();
    for (int r = 0; r < group_.size; ++r)
      sources_.push_back(r == group_.rank ? mine : segment_->slot(r, chunk) + offset * width);
    reduce_elements(x.type, x.how, sources_, out, n);
  };
  switch (x.what) {
  case operation_kind::barrier:
    return;
  case operation_kind::broadcast:
    if (x.root != group_.rank && count > 0)
      copy_evenly(x.first.out + from * width, segment_->slot(x.root, chunk), count * width);
    return;
  case operation_kind::all_reduce:
    each_part(x, from, count,
              [&](const operation_buffer& b, std::size_t at, std::size_t n, std::size_t done) {
                reduce_from(b.in + at * width, done, n, b.out + at * width);
              });
    return;
  case operation_kind::all_gather:
    for (int r = 0; r < group_.size && count > 0; ++r) {
      std::byte* to = x.first.out + (std::size_t(r) * x.first.count + from) * width;
      if (r != group_.rank)
        copy_evenly(to, segment_->slot(r, chunk), count * width);
      else if (to != x.first.in + from * width)
        std::memmove(to, x.first.in + from * width, count * width);
    }
    return;
  case operation_kind::reduce_scatter:
    if (count > 0)
      reduce_from(x.first.in + (std::size_t(group_.rank) * x.first.count + from) * width,
                  std::size_t(group_.rank) * count, count, x.first.out + from * width);
    return;
  }
}

result<void> shm::compare_marks(const operation_mark& mine) {
  for (int r = 0; r < group_.size; ++r) {
    const auto& other = segment_->mark(r, number_);
    if (r == group_.rank || other == mine)
      continue;
    segment_->break_group(errc::conflict, "rank " + std::to_string(r) + " called " + show(other) +
                                              " where rank " + std::to_string(group_.rank) + " called " +
                                              show(mine));
    return segment_->unbroken();
  }
  return {};
}

} // namespace

result<std::unique_ptr<collective>> join_shm(const shm_group& group) {
  auto segment = shm_segment::open(group);
  if (!segment)
    return segment.error();
  if (auto mine = (*segment)->claim(); !mine)
    return mine.error();
  auto joined = std::make_unique<shm>(group, std::move(*segment));
  if (auto all = joined->wait_for_all(); !all)
    return all.error();
  return std::unique_ptr<collective>(std::move(joined));
}

} // namespace troupe
