#include "workers/collectives/shm_segment.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <linux/futex.h>
#include <new>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace troupe {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t magic = 0x34307075'6f727475; // changes with the layout
constexpr milliseconds look{50};                     // between two checks of a rank that is waited for
constexpr int most_ranks = 1024;

enum rank_state : std::uint32_t { absent = 0, claimed = 1, present = 2, left = 3 };

error failed(errc code, const std::string& what) { return {code, "collective shm: " + what}; }
error failed_call(const std::string& what) {
  const int why = errno;
  return failed(why == ENOSPC ? errc::no_space : errc::io, what + ": " + std::strerror(why));
}

void wait_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, milliseconds at_most) {
  const timespec limit{at_most.count() / 1000, (at_most.count() % 1000) * 1'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}
void wake(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool is_name(const std::string& x) {
  return !x.empty() && x.size() <= 200 && std::all_of(x.begin(), x.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '-' || c == '_';
  });
}

} // namespace

struct alignas(4096) shm_segment::header {
  std::uint64_t layout = 0;
  std::int32_t size = 0;
  std::uint64_t chunk_bytes = 0;
  std::atomic<std::uint32_t> entered_ranks{0}; // the last of them takes the name away
  std::atomic<std::uint32_t> present_ranks{0}; // reaches `size` only after the name has gone
  std::atomic<std::uint32_t> broken{0};        // 0: no, 1: the text is being written, 2: yes
  errc code{};
  char why[256]{};
};

void shm_segment::locate() {
  auto* const first = reinterpret_cast<std::byte*>(header_) + sizeof(header);
  broken_ = &header_->broken;
  places_ = reinterpret_cast<place*>(first);
  rings_ = first + (sizeof(place) * std::size_t(group_.size) + 4095) / 4096 * 4096;
}

// The segment gets its name only when it is complete, so that a rank that finds the name finds it usable.
result<std::unique_ptr<shm_segment>> shm_segment::open(const shm_group& group) {
  if (!is_name(group.name))
    return failed(errc::invalid,
                  "the name '" + group.name +
                    "' is empty, too long or has other characters than letters, digits and .-_");
  if (group.size < 1 || group.size > most_ranks || group.rank < 0 || group.rank >= group.size)
    return failed(errc::invalid, "rank " + std::to_string(group.rank) + " of " + std::to_string(group.size) +
                                   ": at most 1,024 ranks, counted from 0");
  if (group.chunk_bytes == 0 || group.chunk_bytes % 4096 != 0)
    return failed(errc::invalid,
                  "chunks of " + std::to_string(group.chunk_bytes) + " bytes: a multiple of 4,096 is needed");

  std::unique_ptr<shm_segment> s(new shm_segment);
  s->group_ = group;
  s->path_ = "/dev/shm/troupe-" + group.name;
  const std::size_t places = (sizeof(place) * std::size_t(group.size) + 4095) / 4096 * 4096;
  s->bytes_ = sizeof(header) + places + std::size_t(group.size) * slots * group.chunk_bytes;
  // Where there are more ranks than processors, a waiting rank had better sleep; otherwise the answer comes
  // soon.
  s->spins_ = group.size <= int(std::thread::hardware_concurrency()) ? 4000 : 50;

  const auto map = [&](int fd) -> result<void> {
    void* at = mmap(nullptr, s->bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
      return failed_call("cannot map " + s->path_);
    s->header_ = static_cast<header*>(at);
    s->locate();
    return {};
  };

  for (int attempt = 0; attempt < 100; ++attempt) {
    int fd = ::open(s->path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) {
      struct stat about {};
      const bool whole = fstat(fd, &about) == 0 && std::size_t(about.st_size) == s->bytes_;
      auto mapped =
        whole ? map(fd)
              : failed(errc::invalid, "the ranks of " + group.name + " differ in their number or chunk size");
      close(fd);
      if (!mapped)
        return mapped.error();
      if (s->header_->layout != magic || s->header_->size != group.size ||
          s->header_->chunk_bytes != group.chunk_bytes)
        return failed(errc::invalid,
                      "the ranks of " + group.name + " differ in their settings or in the version of Troupe");
      return s;
    }
    if (errno != ENOENT)
      return failed_call("cannot open " + s->path_);

    // A process id would not do as a name: ranks in different sandboxes may have the same one.
    std::string draft = s->path_ + ".XXXXXX";
    fd = mkostemp(draft.data(), O_CLOEXEC);
    if (fd < 0)
      return failed_call("cannot make " + draft);
    result<void> made;
    if (const int why = posix_fallocate(fd, 0, off_t(s->bytes_));
        why != 0) { // otherwise a full /dev/shm becomes a SIGBUS later
      errno = why;
      made = failed_call("/dev/shm has no room for " + std::to_string(s->bytes_) + " bytes");
    } else {
      made = map(fd);
    }
    close(fd);
    if (made) {
      new (s->header_) header;
      s->header_->layout = magic;
      s->header_->size = group.size;
      s->header_->chunk_bytes = group.chunk_bytes;
      pthread_mutexattr_t kind;
      pthread_mutexattr_init(&kind);
      pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
      pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
      for (int r = 0; r < group.size; ++r)
        pthread_mutex_init(&(new (&s->places_[r]) place)->alive, &kind);
      pthread_mutexattr_destroy(&kind);
      if (link(draft.c_str(), s->path_.c_str()) != 0) {
        const bool taken = errno == EEXIST; // another rank made the segment first: this one uses it
        made = failed_call("cannot name " + s->path_);
        munmap(s->header_, s->bytes_);
        s->header_ = nullptr;
        if (taken) {
          unlink(draft.c_str());
          continue;
        }
      }
    }
    unlink(draft.c_str());
    if (!made)
      return made.error();
    return s;
  }
  return failed(errc::conflict, s->path_ + " comes and goes: another group uses the same name");
}

shm_segment::~shm_segment() {
  if (header_)
    munmap(header_, bytes_);
}

result<void> shm_segment::claim() {
  std::uint32_t expected = absent;
  if (places_[group_.rank].state.compare_exchange_strong(expected, claimed))
    return {};
  return failed(errc::conflict,
                "rank " + std::to_string(group_.rank) + " of " + group_.name + " has already joined");
}

void shm_segment::enter() {
  place& mine = places_[group_.rank];
  if (pthread_mutex_lock(&mine.alive) == EOWNERDEAD)
    pthread_mutex_consistent(&mine.alive);
  mine.state = present;
  if (header_->entered_ranks.fetch_add(1) + 1 == std::uint32_t(group_.size))
    unlink(path_.c_str()); // no other rank will look for it
  header_->present_ranks.fetch_add(1);
  wake(header_->present_ranks);
}

void shm_segment::leave() {
  place& mine = places_[group_.rank];
  mine.state = left;
  pthread_mutex_unlock(&mine.alive);
  wake(mine.published);
  if (header_->present_ranks < std::uint32_t(group_.size)) {
    break_group(errc::unreachable, "rank " + std::to_string(group_.rank) + " left before all had joined");
    unlink(path_.c_str());
  }
}

result<void> shm_segment::wait_for_all() {
  const auto size = std::uint32_t(group_.size);
  const auto until = std::chrono::steady_clock::now() + group_.join_within;
  std::vector<int> silent(size, 0);
  std::vector<std::uint32_t> beats(size, 0);
  for (;;) {
    const std::uint32_t here = header_->present_ranks;
    if (here == size)
      return {};
    if (auto ok = unbroken(); !ok)
      return ok;
    for (int r = 0; r < group_.size; ++r)
      if (places_[r].state >= present && r != group_.rank)
        if (auto ok = check(r, silent[std::size_t(r)], beats[std::size_t(r)]); !ok)
          return ok;
    if (std::chrono::steady_clock::now() >= until) {
      std::string missing;
      for (int r = 0; r < group_.size; ++r)
        if (places_[r].state < present)
          missing += (missing.empty() ? "" : ", ") + std::to_string(r);
      break_group(errc::timeout, "rank " + missing + " of " + std::to_string(group_.size) +
                                   " did not join within " + std::to_string(group_.join_within.count()) +
                                   " ms");
      return unbroken();
    }
    wait_on(header_->present_ranks, here, look);
  }
}

void shm_segment::beat() { places_[group_.rank].beats.fetch_add(1, std::memory_order_relaxed); }

void shm_segment::wake_waiters() { wake(places_[group_.rank].published); }

result<void> shm_segment::wait_long_for(int rank, std::uint32_t upto) {
  place& other = places_[rank];
  int silent = 0;
  std::uint32_t beats = other.beats;
  for (;;) {
    other.waiters.fetch_add(1);
    const std::uint32_t seen = other.published;
    if (!reached(seen, upto))
      wait_on(other.published, seen, look);
    other.waiters.fetch_sub(1);
    if (reached(other.published, upto))
      return {};
    beat();
    if (auto ok = unbroken(); !ok)
      return ok;
    if (other.published == seen)
      if (auto ok = check(rank, silent, beats); !ok)
        return reached(other.published, upto) ? result<void>{} : ok; // it may have answered and left
  }
}

// `silent` counts checks, not time: a process that was itself stopped must not blame other ranks for it.
result<void> shm_segment::check(int rank, int& silent, std::uint32_t& last_beat) {
  place& other = places_[rank];
  const std::string who = "rank " + std::to_string(rank) + " of " + std::to_string(group_.size);
  if (other.state == left) {
    break_group(errc::unreachable, who + " left the group");
    return unbroken();
  }
  const int lock = pthread_mutex_trylock(&other.alive);
  if (lock == EOWNERDEAD || lock == ENOTRECOVERABLE || (lock == 0 && other.state == present)) {
    break_group(errc::unreachable, who + " died");
    if (lock != ENOTRECOVERABLE)
      pthread_mutex_unlock(&other.alive); // never consistent again: every rank sees the death
    return unbroken();
  }
  if (lock == 0) { // the rank left between the two checks
    pthread_mutex_unlock(&other.alive);
    return {};
  }
  const std::uint32_t beats = other.beats;
  if (std::exchange(last_beat, beats) != beats)
    silent = 0;
  else if (++silent * look >= group_.silence) {
    break_group(errc::unreachable,
                who + " has not run for " + std::to_string(group_.silence.count()) + " ms");
    return unbroken();
  }
  return {};
}

void shm_segment::break_group(errc code, const std::string& why) {
  std::uint32_t expected = 0;
  if (!header_->broken.compare_exchange_strong(expected, 1))
    return;
  header_->code = code;
  std::strncpy(header_->why, why.c_str(), sizeof header_->why - 1);
  header_->broken = 2;
  wake(header_->present_ranks);
  for (int r = 0; r < group_.size; ++r)
    wake(places_[r].published);
}

result<void> shm_segment::why_broken() const {
  std::uint32_t broken = header_->broken;
  for (int looks = 0; broken == 1 && looks < 1000; broken = header_->broken, ++looks)
    std::this_thread::sleep_for(std::chrono::microseconds(500)); // the text will be there soon
  if (broken == 1)                                               // the process that was writing it has died
    return failed(errc::unreachable, group_.name + " is broken");
  return failed(header_->code,
                group_.name + ": " + std::string(header_->why, strnlen(header_->why, sizeof header_->why)));
}

std::string group_of_task(const std::string& allocation, const std::string& token) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char c : token)
    hash = (hash ^ c) * 0x100000001b3;
  return "task-" + allocation + "-" + std::to_string(hash);
}

void remove_left_memory(const std::string& group) {
  std::error_code fault;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", fault)) {
    const auto name = entry.path().filename().string();
    if (name == "troupe-" + group || name.starts_with("troupe-" + group + "."))
      std::filesystem::remove(entry.path(), fault);
  }
}

} // namespace troupe
