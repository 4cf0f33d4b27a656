#pragma once
// Writes the lines of all ranks to a bounded series of files; the oldest file is removed when there are too
// many.

#include "workers/task_init/base.hpp"
#include "workers/task_init/task_format.hpp"

namespace troupe::task_init {

class spool_writer {
public:
  /// Makes the folder `log` in `folder_fd`; the first lines make a file in it. Where that fails, lines are
  /// counted as lost and the next flush tries again: output never stops a task.
  void open(int folder_fd);
  void limit(std::int64_t file_bytes, std::int64_t files);

  void add(unsigned rank, task_format::spool_stream stream, std::uint8_t flags, const char* bytes,
           std::size_t size);

  /// Writes the lines added since the last flush, without a sync: they survive a kill, not a power failure.
  void flush();

private:
  bool open_next();
  bool write_out();

  int folder_ = -1, file_ = -1;
  std::int64_t file_bytes_ = 0, files_ = 0, written_ = 0;
  std::uint64_t index_ = 0, line_ = 0, lost_ = 0, buffered_lines_ = 0;
  int why_lost_ = 0;
  std::size_t used_ = 0;
  char buffer_[128 << 10];
};

} // namespace troupe::task_init
