#include "workers/log_spool.hpp"

#include "workers/task_init/task_format.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>

namespace troupe::workers {
namespace {

namespace format = task_format;

std::string file_name(std::uint64_t file) {
  char name[24];
  std::snprintf(name, sizeof name, "%08llu", static_cast<unsigned long long>(file));
  return name;
}

/// The numbers of the spool's files, oldest first.
result<std::vector<std::uint64_t>> files_of(const std::filesystem::path& spool) {
  DIR* entries = ::opendir(spool.c_str());
  if (!entries)
    return error{errno == ENOENT ? errc::not_found : errc::io,
                 "log " + spool.string() + ": " + strerror(errno)};
  std::vector<std::uint64_t> files;
  while (auto* entry = ::readdir(entries))
    if (auto number = std::strtoull(entry->d_name, nullptr, 10); number > 0)
      files.push_back(number);
  ::closedir(entries);
  std::sort(files.begin(), files.end());
  return files;
}

/// Reads `file` from `batch.next.offset` on into `batch`. False when the batch is full; true when the file
/// has no more whole record.
result<bool> read_file(const std::filesystem::path& path, log_batch& batch, std::size_t max_lines,
                       std::size_t max_bytes, std::size_t& bytes_taken) {
  owned_fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file)
    return errno == ENOENT ? result<bool>(true)
                           : result<bool>(error{errc::io, "log " + path.string() + ": " + strerror(errno)});
  auto& next = batch.next;
  if (next.offset == 0) {
    format::spool_header header{};
    if (::pread(file.get(), &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header))
      return true;
    if (std::memcmp(header.magic, format::spool_magic, sizeof header.magic) != 0)
      return error{errc::corrupt, "log " + path.string() + ": not a spool file"};
    next.offset = sizeof header;
  }
  std::string buffer(256 << 10, '\0');
  while (true) {
    auto n = ::pread(file.get(), buffer.data(), buffer.size(), static_cast<off_t>(next.offset));
    if (n < 0)
      return error{errc::io, "log " + path.string() + ": " + strerror(errno)};
    std::size_t have = static_cast<std::size_t>(n), at = 0;
    while (true) {
      format::spool_record record{};
      if (have - at < sizeof record)
        break;
      std::memcpy(&record, buffer.data() + at, sizeof record);
      if (record.bytes > format::max_payload_bytes || record.stream < 1 || record.stream > 3)
        return error{errc::corrupt,
                     "log " + path.string() + ": no record at offset " + std::to_string(next.offset)};
      if (have - at < sizeof record + record.bytes)
        break;
      if (batch.lines.size() >= max_lines || (!batch.lines.empty() && bytes_taken + record.bytes > max_bytes))
        return false;
      if (record.line > next.line + 1)
        batch.lost += record.line - next.line - 1;
      batch.lines.push_back(
        {record.line, record.rank, static_cast<log_stream>(record.stream - 1),
         time_point{std::chrono::microseconds{record.at_us}}, buffer.substr(at + sizeof record, record.bytes),
         (record.flags & format::line_continues) != 0, (record.flags & format::line_unended) != 0});
      next.line = record.line;
      next.offset += sizeof record + record.bytes;
      at += sizeof record + record.bytes;
      bytes_taken += record.bytes;
    }
    if (at == 0)
      return true;
  }
}

} // namespace

result<log_batch> read_log(const std::filesystem::path& spool, const log_position& from,
                           std::size_t max_lines, std::size_t max_bytes) {
  log_batch batch;
  batch.next = from;
  std::size_t bytes_taken = 0;
  auto files = files_of(spool);
  if (!files)
    return files.error();
  while (true) {
    auto here = std::lower_bound(files->begin(), files->end(), std::max<std::uint64_t>(batch.next.file, 1));
    if (here == files->end()) {
      batch.at_end = true;
      return batch;
    }
    if (*here != batch.next.file)
      batch.next = {*here, 0, batch.next.line};
    auto drained = read_file(spool / file_name(*here), batch, max_lines, max_bytes, bytes_taken);
    if (!drained) {
      if (batch.lines.empty())
        return drained.error();
      return batch; // the next call starts at the damage and says so
    }
    if (!*drained)
      return batch;
    if (here + 1 == files->end()) {
      // If a later file was begun meanwhile, it holds what follows: this file already had its last record.
      auto later = files_of(spool);
      if (!later || later->empty() || later->back() <= *here) {
        batch.at_end = true;
        return batch;
      }
      files = std::move(later);
      if (auto rest = read_file(spool / file_name(batch.next.file), batch, max_lines, max_bytes, bytes_taken);
          !rest || !*rest)
        return batch;
      here = std::find(files->begin(), files->end(), batch.next.file);
      if (here == files->end()) {
        batch.next.file += 1;
        batch.next.offset = 0;
        continue;
      }
    }
    batch.next = {*(here + 1), 0, batch.next.line};
  }
}

result<log_position> skip_damage(const std::filesystem::path& spool, const log_position& at) {
  auto files = files_of(spool);
  if (!files)
    return files.error();
  auto after = std::upper_bound(files->begin(), files->end(), at.file);
  return log_position{after == files->end() ? at.file + 1 : *after, 0, at.line};
}

result<log_watch> log_watch::open() {
  log_watch watch;
  watch.inotify_.reset(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!watch.inotify_)
    return error{errc::io, std::string("inotify: ") + strerror(errno)};
  return watch;
}

result<int> log_watch::add(const std::filesystem::path& spool) {
  int watch = ::inotify_add_watch(inotify_.get(), spool.c_str(), IN_MODIFY | IN_CREATE | IN_ONLYDIR);
  if (watch < 0)
    return error{errno == ENOENT ? errc::not_found : errc::io,
                 "watching " + spool.string() + ": " + strerror(errno)};
  return watch;
}

void log_watch::remove(int watch) { ::inotify_rm_watch(inotify_.get(), watch); }

std::vector<int> log_watch::changed() {
  std::vector<int> watches;
  alignas(inotify_event) char bytes[8192];
  ssize_t n;
  while ((n = ::read(inotify_.get(), bytes, sizeof bytes)) > 0)
    for (char* p = bytes; p < bytes + n;) {
      inotify_event event;
      std::memcpy(&event, p, sizeof event);
      watches.push_back(event.wd);
      p += sizeof event + event.len;
    }
  std::sort(watches.begin(), watches.end());
  watches.erase(std::unique(watches.begin(), watches.end()), watches.end());
  return watches;
}

} // namespace troupe::workers
