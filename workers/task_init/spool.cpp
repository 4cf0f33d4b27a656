#include "workers/task_init/spool.hpp"

#include <fcntl.h>
#include <sys/stat.h>

namespace troupe::task_init {

using namespace task_format;

void spool_writer::limit(std::int64_t file_bytes, std::int64_t files) {
  file_bytes_ = file_bytes;
  files_ = files;
}

void spool_writer::open(int folder_fd) {
  mkdirat(folder_fd, log_folder, 0755);
  folder_ = openat(folder_fd, log_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool spool_writer::open_next() {
  char name[24];
  snprintf(name, sizeof name, "%08llu", static_cast<unsigned long long>(index_ + 1));
  int fd = openat(folder_, name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  spool_header header{};
  memcpy(header.magic, spool_magic, sizeof header.magic);
  header.first_line = line_ - buffered_lines_ + 1;
  if (fd < 0 || write(fd, &header, sizeof header) != static_cast<ssize_t>(sizeof header)) {
    why_lost_ = errno ? errno : ENOSPC;
    if (fd >= 0) {
      close(fd);
      unlinkat(folder_, name, 0);
    }
    return false;
  }
  if (file_ >= 0)
    close(file_);
  file_ = fd;
  written_ = sizeof header;
  ++index_;
  if (files_ > 0 && index_ > static_cast<std::uint64_t>(files_)) {
    snprintf(name, sizeof name, "%08llu",
             static_cast<unsigned long long>(index_ - static_cast<std::uint64_t>(files_)));
    unlinkat(folder_, name, 0);
  }
  return true;
}

void spool_writer::add(unsigned rank, spool_stream stream, std::uint8_t flags, const char* bytes,
                       std::size_t size) {
  if (used_ + sizeof(spool_record) + size > sizeof buffer_)
    flush();
  spool_record record{.bytes = static_cast<std::uint32_t>(size),
                      .rank = static_cast<std::uint16_t>(rank),
                      .stream = static_cast<std::uint8_t>(stream),
                      .flags = flags,
                      .at_us = wall_us(),
                      .line = ++line_};
  ++buffered_lines_;
  memcpy(buffer_ + used_, &record, sizeof record);
  memcpy(buffer_ + used_ + sizeof record, bytes, size);
  used_ += sizeof record + size;
}

bool spool_writer::write_out() {
  bool full = written_ + static_cast<std::int64_t>(used_) > file_bytes_ &&
              written_ > static_cast<std::int64_t>(sizeof(spool_header));
  if ((file_ < 0 || full) && !open_next())
    return false;
  std::size_t done = 0;
  while (done < used_) {
    auto n = write(file_, buffer_ + done, used_ - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      // Half a record would end the reading of this file, so its bytes are removed.
      why_lost_ = n < 0 ? errno : ENOSPC;
      if (ftruncate(file_, written_) != 0)
        open_next();
      return false;
    }
    done += static_cast<std::size_t>(n);
  }
  written_ += static_cast<std::int64_t>(used_);
  return true;
}

void spool_writer::flush() {
  if (used_ == 0 || folder_ < 0)
    return;
  bool ok = write_out();
  if (!ok)
    lost_ += buffered_lines_;
  used_ = 0;
  buffered_lines_ = 0;
  if (ok && lost_ > 0) {
    char text[160];
    int n = snprintf(text, sizeof text, "troupe-task: %llu lines were lost before this one: %s",
                     static_cast<unsigned long long>(lost_), strerror(why_lost_));
    lost_ = 0;
    add(0, spool_stream::notice, 0, text, static_cast<std::size_t>(n));
    flush();
  }
}

} // namespace troupe::task_init
