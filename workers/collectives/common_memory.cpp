#include "workers/collectives/common_memory.hpp"

#include "workers/owned_fd.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace troupe {
namespace {

constexpr std::size_t page = 4096;

error failed(const std::string& what, int why) {
  return {why == ENOSPC ? errc::no_space : errc::io, "collective shm: " + what + ": " + std::strerror(why)};
}

} // namespace

std::size_t common_memory::stride(std::size_t bytes) const {
  return std::max<std::size_t>(1, (bytes + page - 1) / page) * page;
}

result<std::shared_ptr<std::byte>> common_memory::map(const std::string& path, std::size_t bytes,
                                                      bool make) const {
  const std::size_t whole = stride(bytes) * std::size_t(size_);
  if (make)
    unlink(path.c_str()); // may be left from a group of this name that died before this line
  const workers::owned_fd file(
    ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT | O_EXCL : 0), 0600));
  if (file.get() < 0)
    return failed("cannot open " + path, errno);
  if (make)
    if (const int why = posix_fallocate(file.get(), 0, off_t(whole));
        why != 0) { // otherwise a full /dev/shm becomes a SIGBUS later
      unlink(path.c_str());
      return failed("/dev/shm has no room for " + std::to_string(whole) + " bytes", why);
    }
  void* const at = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED)
    return failed("cannot map " + path, errno);
  auto* const mine = static_cast<std::byte*>(at) + std::size_t(rank_) * stride(bytes);
  return std::shared_ptr<std::byte>(mine, [at, whole](std::byte*) { munmap(at, whole); });
}

void common_memory::add(const std::shared_ptr<std::byte>& mine, std::size_t bytes) {
  std::erase_if(entries_, [](const entry& x) { return x.owner.expired(); });
  entries_.push_back({mine, mine.get(), bytes, added_++});
}

const common_memory::entry* common_memory::holder(const std::byte* at, std::size_t bytes) const {
  for (const auto& x : entries_)
    if (at >= x.first && at + bytes <= x.first + x.bytes && !x.owner.expired())
      return &x;
  return nullptr;
}

std::uint32_t common_memory::spot_of(const operation& x) const {
  if (entries_.empty() || x.what != operation_kind::all_reduce)
    return 0;
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
  bool any = false;
  const auto add = [&](const operation_buffer& b) {
    if (b.count == 0)
      return true;
    const auto* const found = b.in == b.out ? holder(b.out, b.count * size_of(x.type)) : nullptr;
    if (!found)
      return false;
    mix(found->number);
    mix(std::uint64_t(b.out - found->first));
    mix(b.count);
    return any = true;
  };
  if (!add(x.first))
    return 0;
  for (const auto& b : x.more)
    if (!add(b))
      return 0;
  return any ? std::uint32_t(hash >> 32) | 1 : 0;
}

common_memory::parts common_memory::parts_of(const std::byte* mine) const {
  const auto* const found = holder(mine, 1);
  const std::size_t each = stride(found->bytes);
  return {const_cast<std::byte*>(mine) - std::size_t(rank_) * each, each};
}

} // namespace troupe
