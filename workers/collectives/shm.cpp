#include "workers/collectives/shm.hpp"

#include "workers/collectives/common_memory.hpp"
#include "workers/collectives/operation_mark.hpp"
#include "workers/collectives/operation_queue.hpp"
#include "workers/collectives/reductions.hpp"
#include "workers/collectives/shared_copy.hpp"
#include "workers/collectives/shm_segment.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <unistd.h>

namespace troupe {
namespace {

void copy(std::byte* to, const std::byte* from, std::size_t bytes, bool past_caches) {
  if (past_caches)
    copy_past_caches(to, from, bytes);
  else if (bytes > 0)
    std::memcpy(to, from, bytes);
}

constexpr std::uint32_t begun_in_vain =
  shm_segment::ahead + 1; // chunks to skip where some ranks have passed on the first ones and others none
constexpr std::size_t least_in_common =
  2048; // bytes of an operation: for fewer, meeting twice takes longer than copying
constexpr std::size_t common_block = 2048; // bytes: while one block is reduced, the next one is on its way

// Every operation moves in chunks, which are numbered through the life of the group. A rank writes into its
// slot what other ranks want of its chunk, publishes it, and reads their slots. It writes some chunks ahead,
// so that few chunks wait for a process that the system has put aside. The slot that a rank writes next was
// read by all: before chunk m it has waited for m - ahead - 1 of all ranks, and a rank that has published
// that one has read m - 2 * ahead - 2.
// Where all ranks reduce the same part of memory that they have in common, chunk 0 says that each rank has
// come, and moves nothing. Each rank then reduces its share of the elements for all of them, and chunk 1 says
// that it has.
class shm final : public collective {
public:
  shm(const shm_group& group, std::unique_ptr<shm_segment> segment)
      : group_(group), segment_(std::move(segment)), common_(group.rank, group.size),
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
  result<std::shared_ptr<std::byte>> memory(std::size_t bytes) override;

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
  result<void> reduce_at_once(const operation& x, const operation_mark& mark);
  result<void> pass_on(const operation& x, const operation_mark& mark, bool met);
  result<void> wait_for_others(std::uint32_t upto, const operation_mark& mark);
  bool others_are_at(std::uint32_t spot) const;
  void reduce_in_common(const operation& x);
  template <class F>
  void timed(std::uint32_t chunk, F work, void (copy_choice::*note)(std::uint32_t, copy_choice::duration)) {
    if (!copies_.timed(chunk))
      return work();
    const auto from = std::chrono::steady_clock::now();
    work();
    (copies_.*note)(chunk, std::chrono::steady_clock::now() - from);
  }
  void reduce_from(const operation& x, const std::byte* mine, std::size_t offset, std::size_t count,
                   std::byte* out, std::uint32_t chunk);
  void write(const operation& x, std::size_t from, std::size_t count, std::byte* slot,
             bool past_caches) const;
  void read(const operation& x, std::size_t from, std::size_t count, std::uint32_t chunk);
  result<void> compare_marks(const operation_mark& mine);

  shm_group group_;
  std::unique_ptr<shm_segment> segment_;
  std::uint32_t next_chunk_ = 0;
  std::uint32_t number_ = 0; // number of the operation
  common_memory common_;
  std::uint32_t memories_ = 0; // memories that were ever asked for
  copy_choice copies_;
  std::vector<const std::byte*> sources_; // sources of the running reduction, in order of rank
  std::vector<std::byte*> targets_;
  std::map<std::vector<int>, int> groups_;
  operation_queue queue_; // the last member, because its thread uses those above
};

result<void> shm::execute(const operation& x) {
  if (auto ok = segment_->unbroken(); !ok)
    return ok;
  const auto mark = mark_of(x);
  const auto spot = mark.bytes < least_in_common ? 0 : common_.spot_of(x);
  segment_->mark(group_.rank, number_) = mark;
  segment_->spot(group_.rank, number_) = spot;
  if (spot != 0) {
    segment_->publish(next_chunk_ + 1);
    if (auto ok = wait_for_others(next_chunk_ + 1, mark); !ok)
      return ok;
    if (auto ok = compare_marks(mark); !ok)
      return ok;
    if (others_are_at(spot)) {
      reduce_in_common(x);
      segment_->publish(next_chunk_ + 2);
      if (auto ok = wait_for_others(next_chunk_ + 2, mark); !ok)
        return ok;
      next_chunk_ += 2;
      ++number_;
      return {};
    }
    next_chunk_ += begun_in_vain;
  }
  const bool short_one =
    spot == 0 && x.what == operation_kind::all_reduce && x.more.empty() && mark.bytes <= group_.chunk_bytes;
  if (auto ok = short_one ? reduce_at_once(x, mark) : pass_on(x, mark, spot != 0); !ok)
    return ok;
  ++number_;
  return {};
}

// Does for one chunk what pass_on does, in four fifths of the time where the chunk is 1 KiB.
result<void> shm::reduce_at_once(const operation& x, const operation_mark& mark) {
  const auto chunk = next_chunk_;
  std::byte* const slot = segment_->slot(group_.rank, chunk);
  const bool past_caches = copies_.past_caches(chunk, mark.bytes);
  timed(
    chunk, [&] { copy(slot, x.first.in, mark.bytes, past_caches); }, &copy_choice::wrote);
  segment_->publish(chunk + 1);
  if (auto ok = wait_for_others(chunk + 1, mark); !ok)
    return ok;
  if (auto ok = compare_marks(mark); !ok)
    return ok;
  if (!others_are_at(0)) { // the other ranks have passed nothing on yet
    next_chunk_ += begun_in_vain;
    return pass_on(x, mark, true);
  }
  timed(
    chunk, [&] { reduce_from(x, x.first.in, 0, x.first.count, x.first.out, chunk); }, &copy_choice::read);
  next_chunk_ = chunk + 1;
  take_early(segment_->slot(group_.rank, next_chunk_),
             std::min<std::size_t>(mark.bytes, shm_segment::taken_early));
  return {};
}

result<void> shm::wait_for_others(std::uint32_t upto, const operation_mark& mark) {
  for (int r = 0; r < group_.size; ++r)
    if (r != group_.rank)
      if (auto ok = segment_->wait_for(r, upto); !ok)
        return error{ok.error().code, ok.error().what + ", during " + show(mark)};
  return {};
}

bool shm::others_are_at(std::uint32_t spot) const {
  for (int r = 0; r < group_.size; ++r)
    if (r != group_.rank && segment_->spot(r, number_) != spot)
      return false;
  return true;
}

// `met` says that the ranks have compared their marks, and know that their memory is not the same.
result<void> shm::pass_on(const operation& x, const operation_mark& mark, bool met) {
  const std::uint32_t base = next_chunk_;
  const std::size_t total = elements_of(x);
  const std::size_t shares = x.what == operation_kind::reduce_scatter ? std::size_t(group_.size) : 1;
  const std::size_t room = std::max<std::size_t>(1, group_.chunk_bytes / size_of(x.type) / shares);
  const std::size_t chunks = std::max<std::size_t>(1, (total + room - 1) / room);
  const auto count_of = [&](std::size_t k) { return std::min(room, total - k * room); };
  const auto offer = [&](std::size_t k) {
    const auto chunk = base + std::uint32_t(k);
    const bool past_caches = copies_.past_caches(chunk, count_of(k) * shares * size_of(x.type));
    timed(
      chunk, [&] { write(x, k * room, count_of(k), segment_->slot(group_.rank, chunk), past_caches); },
      &copy_choice::wrote);
    segment_->publish(chunk + 1);
  };

  std::size_t offered = 0;
  for (std::size_t k = 0; k < chunks; ++k) {
    const auto chunk = base + std::uint32_t(k);
    for (; offered < std::min(chunks, k + 1 + shm_segment::ahead); ++offered)
      offer(offered);
    if (auto ok = wait_for_others(chunk + 1, mark); !ok)
      return ok;
    if (k == 0 && !met) {
      if (auto ok = compare_marks(mark); !ok)
        return ok;
      if (!others_are_at(0)) { // the other ranks have passed nothing on yet
        next_chunk_ += begun_in_vain;
        return pass_on(x, mark, true);
      }
    }
    timed(
      chunk, [&] { read(x, k * room, count_of(k), chunk); }, &copy_choice::read);
  }
  next_chunk_ = base + std::uint32_t(chunks);
  take_early(segment_->slot(group_.rank, next_chunk_),
             std::min(total * size_of(x.type), shm_segment::taken_early));
  return {};
}

void shm::reduce_in_common(const operation& x) {
  const std::size_t width = size_of(x.type), line = 64 / width, total = elements_of(x),
                    ranks = std::size_t(group_.size);
  const std::size_t share = (total + ranks * line - 1) / (ranks * line) * line;
  const std::size_t from = std::min(total, share * std::size_t(group_.rank));
  each_part(x, from, std::min(share, total - from),
            [&](const operation_buffer& b, std::size_t at, std::size_t count, std::size_t) {
              const auto parts = common_.parts_of(b.out + at * width);
              sources_.resize(ranks);
              targets_.resize(ranks);
              for (std::size_t done = 0; done < count; done += common_block / width) {
                const std::size_t n = std::min(count - done, common_block / width);
                const std::size_t next = std::min(count - done - n, common_block / width);
                for (std::size_t r = 0; r < ranks; ++r) {
                  sources_[r] = targets_[r] = parts.first + r * parts.stride + done * width;
                  take_early(targets_[r] + n * width, next * width);
                }
                reduce_elements(x.type, x.how, sources_, targets_, n);
              }
            });
}

// An operation of the group compares the lengths, so that all ranks get the same answer.
result<std::shared_ptr<std::byte>> shm::memory(std::size_t bytes) {
  std::int64_t lengths[] = {std::int64_t(bytes), -std::int64_t(bytes)};
  if (auto ok = all_reduce(lengths, reduce::min); !ok)
    return ok.error();
  if (lengths[0] != -lengths[1])
    return error{errc::conflict, "collective shm: the ranks allocate between " + std::to_string(lengths[0]) +
                                   " and " + std::to_string(-lengths[1]) + " bytes"};
  const std::string path = segment_->path() + ".memory-" + std::to_string(memories_++);
  result<std::shared_ptr<std::byte>> mine = std::shared_ptr<std::byte>();
  std::int32_t mapped[] = {1};
  if (group_.rank == 0) {
    mine = common_.map(path, bytes, true);
    mapped[0] = bool(mine);
  }
  if (auto ok = broadcast(mapped, 0); !ok)
    return ok.error();
  if (mapped[0] != 0 && group_.rank != 0) {
    mine = common_.map(path, bytes, false);
    mapped[0] = bool(mine);
  }
  auto all = all_reduce(mapped, reduce::min);
  if (group_.rank == 0)
    unlink(path.c_str());
  if (!all)
    return all.error();
  if (mapped[0] == 0)
    return collective::memory(bytes);
  common_.add(*mine, bytes);
  return mine;
}

void shm::write(const operation& x, std::size_t from, std::size_t count, std::byte* slot,
                bool past_caches) const {
  const std::size_t width = size_of(x.type);
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
                copy(slot + done * width, b.in + at * width, n * width, past_caches);
              });
    return;
  case operation_kind::reduce_scatter:
    for (int r = 0; r < group_.size && count > 0; ++r)
      if (r != group_.rank)
        copy(slot + std::size_t(r) * count * width,
             x.first.in + (std::size_t(r) * x.first.count + from) * width, count * width, past_caches);
    return;
  }
}

// Reduces `mine` and what lies `offset` bytes into the other ranks' slots into `out`.
void shm::reduce_from(const operation& x, const std::byte* mine, std::size_t offset, std::size_t count,
                      std::byte* out, std::uint32_t chunk) {
  sources_.resize(std::size_t(group_.size));
  for (int r = 0; r < group_.size; ++r)
    sources_[std::size_t(r)] = r == group_.rank ? mine : segment_->slot(r, chunk) + offset;
  reduce_elements(x.type, x.how, sources_, {&out, 1}, count);
}

void shm::read(const operation& x, std::size_t from, std::size_t count, std::uint32_t chunk) {
  const std::size_t width = size_of(x.type);
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
                reduce_from(x, b.in + at * width, done * width, n, b.out + at * width, chunk);
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
      reduce_from(x, x.first.in + (std::size_t(group_.rank) * x.first.count + from) * width,
                  std::size_t(group_.rank) * count * width, count, x.first.out + from * width, chunk);
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
